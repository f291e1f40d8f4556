"""The effect of one message on many receivers at the same position.

It is the effect on each of them (`FastSenderState.advance`, `SenderState.overhear`), but what depends on the message alone is
computed once, and the usual case is tried first: one object is incomplete, and no whole block of it is missing.
"""

from math import inf
from typing import Any

from protocols.fast.contract import Applied, Coordinator, FastMessage, Overheard
from protocols.fast.index import PartIndex, QuietQueue
from protocols.norm.backoff import NEVER
from protocols.norm.fast.messages import FastData, FastFlush, is_indexed
from protocols.norm.fast.nack_log import MOST_BLOCKS, FastNackProcess
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.maps import NONE, BlockBitmaps
from protocols.norm.messages import Nack
from protocols.norm.nack_process import MOST_COMPARED, STUBBORN, is_covered
from protocols.norm.position import TransmitPosition, is_before
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.rx_object import RxObject

__all__ = ["apply_to_incomplete", "list_waiting", "overhear_nack", "rewind"]


def apply_to_incomplete(groups: list[list[Any]], message: FastMessage, now: float, coordinator: Coordinator) -> Applied:
    """`FastMachine.apply_to_incomplete` for the receivers of a sender."""
    assert isinstance(message, (FastData, FastFlush))
    redundant = message.redundant
    if redundant and isinstance(message, FastData):
        unchanged, attentive, advanced, rest = _apply_content(groups, message, now, coordinator)
    else:
        unchanged, attentive, advanced, rest = _apply_progress(groups, message, now, coordinator)
    others = []
    for machine in dict.fromkeys(rest) if rest else ():
        state: FastSenderState = machine.fast_state
        result = state.advance(message, now)
        if result == OTHER:
            others.append(machine)
            continue
        if result == RESCHEDULE:
            machine.settle(state)
        # The coordinator counts it, too.
        state.duplicates -= redundant
        advanced.append(machine)
        if state.attentive:
            attentive.append(machine)
    return unchanged, attentive, advanced, others


def _apply_progress(groups: list[list[Any]], message: FastData | FastFlush, now: float, coordinator: Coordinator) -> Applied:
    """Apply the first symbol of a block, or a flush: a NACK process may begin. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    by_group, attentive, advanced, rest = answer
    key, _, reach, _ = message.effect()
    next_state, fti, indexed, suppressed_to, is_covered_to = message.next_state, None, False, None, False
    for group in groups:
        unchanged: list[Any] = []
        by_group.append(unchanged)
        for machine in group:
            state: FastSenderState = machine.fast_state
            if state.coordinator is not coordinator or state.position is next_state:
                continue
            objects, process, item = state.objects, state.nack_process, state.objects.item
            if objects.key != key or item is None:
                rest.append(machine)
                continue
            if item.fti is not fti:
                fti = item.fti
                # Receivers of an indexed object may wait for something else now, or be quiet.
                indexed = is_indexed(fti)
            if process is not None and now < process.holdoff_end and not indexed:
                # As `is_idle_before`; many are suppressed up to the same point.
                if process.suppressed_to is not suppressed_to:
                    suppressed_to = process.suppressed_to
                    is_covered_to = suppressed_to is not None and suppressed_to[0] == key and reach <= suppressed_to
                if suppressed_to is None or is_covered_to or now >= process.backoff_end:
                    unchanged.append(machine)
                    continue
            was_attentive = state.attentive
            state.position, state.last_heard = next_state, now
            if state.check(reach, now):
                machine.settle(state)
                if state.attentive and not was_attentive:
                    attentive.append(machine)
            (advanced if indexed else unchanged).append(machine)
    return answer


def _apply_content(groups: list[list[Any]], message: FastData, now: float, coordinator: Coordinator) -> Applied:
    """Apply a repair or parity of content without bytes. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    by_group, attentive, advanced, rest = answer
    key, block, reach, rewound = message.effect()
    next_state, number = message.next_state, message.symbol - message.block_length
    noted = suppressed_to = None
    is_rewind = is_covered_to = False
    for group in groups:
        unchanged: list[Any] = []
        by_group.append(unchanged)
        for machine in group:
            state: FastSenderState = machine.fast_state
            if state.coordinator is not coordinator or state.position is next_state:
                continue
            objects, process, item = state.objects, state.nack_process, state.objects.item
            if objects.key != key or item is None or item.missing_blocks:
                rest.append(machine)
                continue
            missing = item.missing_symbols
            fills = missing is not None and (missing.key == block or (missing.more is not None and block in missing.more))
            is_idle, backoff_end = False, NEVER
            if process is not None:
                if process.noted is not noted:
                    noted = process.noted
                    is_rewind = rewound is not None and (rewound < noted if noted[0] == key else is_before(rewound, noted))
                if is_rewind and rewound is not None:
                    process.rewind(rewound, now)
                backoff_end = process.backoff_end
                if now < process.holdoff_end:
                    # As `is_idle_before`; many are suppressed up to the same point.
                    if process.suppressed_to is not suppressed_to:
                        suppressed_to = process.suppressed_to
                        is_covered_to = suppressed_to is not None and suppressed_to[0] == key and reach <= suppressed_to
                    is_idle = suppressed_to is None or is_covered_to or now >= backoff_end
                if is_idle and not fills:
                    unchanged.append(machine)
                    continue
            state.position, state.last_heard = next_state, now
            if fills and (item.fill_parity(block, number, None, 0) if number >= 0 else item.fill(block, message.symbol, None)):
                state.duplicates -= 1  # It was of use, but the coordinator counts it as a duplicate.
                if (missing := item.missing_symbols) is None:
                    state.finish(item)
            was_attentive = state.attentive and not fills
            # Nothing new is to be requested if nothing is missing before the block, and no back-off is under way.
            is_waiting = missing is not None and missing.key >= block and not item.wants_info and now >= backoff_end
            if state.attentive if state.is_complete else not (is_idle or is_waiting) and state.check(reach, now):
                machine.settle(state)
            if state.attentive and not was_attentive:
                attentive.append(machine)
            if not state.is_complete:
                advanced.append(machine)
    return answer


def rewind(machines: list[Any], message: FastData, now: float, coordinator: Coordinator) -> None:
    """`FastMachine.rewind` for the receivers of a sender: a hold-off may end."""
    rewound = message.effect()[3]
    noted, is_rewind = None, False
    for machine in machines:
        state: FastSenderState = machine.fast_state
        process = state.nack_process
        if rewound is None or process is None or state.coordinator is not coordinator:
            continue
        if process.noted is not noted:
            noted = process.noted
            is_rewind = is_before(rewound, noted)
        if is_rewind:
            process.rewind(rewound, now)


def overhear_nack(machines: list[Any], nack: Nack, now: float, position: TransmitPosition, last_heard: float) -> Overheard:
    """`FastMachine.overhear_batch` of a NACK to the sender, which its other receivers may be about to send, too."""
    answer: Overheard = [], []
    attentive, others = answer
    has_echo = bool(nack.response_sec or nack.response_usec)
    requested = origin = fti = None
    indexed = False
    boundary, key = position.tx_point, position.tx_point[0]
    # By what was overheard before: the same with this NACK, the symbols of it by block, and how many may be parity.
    merged: dict[RequestedRepairs | None, tuple[RequestedRepairs, dict[int, int], int]] = {}
    for machine in machines:
        state: FastSenderState = machine.fast_state
        process, response, objects = state.nack_process, state.probe_response, state.objects
        item = objects.item
        if (
            (requested is None or state.origin is not origin or objects.key != key)
            or (not isinstance(process, FastNackProcess) or item is None or process.log is not None)
            or (has_echo and response is not None and response.due < inf)
        ):
            state.position, state.last_heard = position, last_heard
            machine.overhear(nack, now)
            others.append(machine)
            if state.is_addressed(nack):
                requested, origin, fti = state.requested_repairs(nack), state.origin, None
        elif now < process.backoff_end and process.suppressed_to is None and process.fruitless < STUBBORN:
            # As `SenderState.overhear`; nearly all have overheard the same before.
            if item.fti is not fti:
                state.position, fti, merged = position, item.fti, {}
                boundary, indexed = state.boundary(), is_indexed(fti)
            known = process.overheard
            if known not in merged:
                overheard = requested if known is None else known.merged(requested)
                usable = 0 if overheard.objects or overheard.blocks else fti.usable
                merged[known] = overheard, overheard.counts(key, fti), usable
            overheard, counts, usable = merged[known]
            process.overheard = overheard
            missing = item.missing_symbols
            if usable and missing is not None and missing.key < boundary[1]:
                # Parity repairs it: usually the first incomplete block decides.
                heard = 0 if item.parity is None else item.parity.get(missing.key, 0)
                count = counts[missing.key]
                if count < missing.item.bit_count() - heard.bit_count():
                    attentive.append(machine)
                    continue
                is_enough: bool | None = None
                if heard.bit_length() + count <= usable and not (
                    item.missing_blocks or (item.wants_info and item.info is None)
                ):
                    more = missing.more
                    is_enough = more is None or _is_enough(counts, more, item.parity, boundary[1], usable)
            else:
                is_enough = None
            if is_covered(objects, boundary, overheard, MOST_COMPARED) if is_enough is None else is_enough:
                state.position, state.last_heard = position, last_heard
                process.suppress(boundary)
                state.note_suppression(process)
                machine.settle(state)
                if indexed:
                    others.append(machine)
        if state.attentive:
            attentive.append(machine)
    return answer


def _is_enough(
    counts: dict[int, int], missing: dict[int, int], parity: BlockBitmaps | None, end: int, usable: int
) -> bool | None:
    """Return whether so many parity symbols by block repair all that is missing before `end`; None if that is not simple."""
    for block, mask in missing.items():
        if block < end:
            count, heard = counts[block], 0 if parity is None else parity.get(block, 0)
            if count < mask.bit_count() - heard.bit_count():
                return False
            if heard.bit_length() + count > usable:
                return None
    return True


def list_waiting(
    machines: list[Any], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
) -> None:
    """`FastMachine.list_waiting` for the receivers of a sender.

    A receiver waits for a block (object, block): only what fills it, or tells that it is over, can begin or resume its NACK
    process. That is the first incomplete one. Of an indexed object it may be the one up to which others have requested
    everything instead, and those in back-off or hold-off are quiet until the end of that.
    """
    fti, indexed = None, False
    key = block = NONE
    together: list[Any] = []
    for machine in machines:
        state: FastSenderState = machine.fast_state
        if state.is_complete:
            continue
        objects, waits_for = state.objects, None
        item = objects.item
        missing = None if item is None else item.missing_symbols
        if (
            # As `simple_item`, without a call.
            (item is not None and missing is not None)
            and not (item.missing_blocks or (item.wants_info and item.info is None))
            and (missing.more is None or len(missing.more) < MOST_BLOCKS)
        ):
            if item.fti is not fti:
                fti = item.fti
                indexed = is_indexed(fti)
            first = missing.key
            if not indexed:
                if first != block or objects.key != key:
                    key, block = objects.key, first
                    together = waiting.setdefault((key, block), [])
                together.append(machine)
                continue
            if not _list_indexed(machine, state, item, now, quiet, lacking):
                continue
            waits_for = _first_awaited(state, first, now)
        if waits_for in waiting:
            waiting[waits_for].append(machine)
        else:
            waiting[waits_for] = [machine]


def _list_indexed(
    machine: Any, state: FastSenderState, item: RxObject, now: float, quiet: QuietQueue, lacking: PartIndex | None
) -> bool:
    """List a receiver by what it lacks, and until when it is quiet; return whether it waits for a block besides."""
    process = state.nack_process
    if lacking is not None:
        _list_lacking(machine, state.objects.key, item, lacking)
    if process is None or now >= process.holdoff_end:
        return True
    quiet.push(machine, process.holdoff_end)
    return process.suppressed_to is not None and now < process.backoff_end


def _first_awaited(state: FastSenderState, block: int, now: float) -> tuple[int, int] | None:
    """Return the (object, block) that an indexed receiver waits for, whose first incomplete block is `block`."""
    process, key = state.nack_process, state.objects.key
    if process is None or now >= process.holdoff_end:
        return key, block
    suppressed_to = process.suppressed_to
    return (key, suppressed_to[1]) if suppressed_to is not None and suppressed_to[0] == key else None


def _list_lacking(machine: Any, key: int, item: RxObject, lacking: PartIndex) -> None:
    """List a receiver by its missing symbols, or by blocks where parity repairs them."""
    if item.missing_symbols is not None:
        for block, mask in item.missing_symbols.items():
            lacking.add((key, block), 0 if item.fti.usable else mask, [machine])
