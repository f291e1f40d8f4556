"""The effect of one message on many receivers at the same position.

It is the effect on each of them (`FastSenderState.advance`, `SenderState.overhear`), but what depends on the message alone is
computed once, and the usual case is tried first: one object is incomplete, and no whole block of it is missing.
"""

from math import inf
from typing import Any

from protocols.fast.contract import Applied, Coordinator, Overheard
from protocols.fast.index import PartIndex, QuietQueue
from protocols.norm.backoff import NEVER
from protocols.norm.fast.messages import FastData, FastFlush, is_indexed
from protocols.norm.fast.nack_log import FastNackProcess, simple_item
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.messages import Nack
from protocols.norm.nack_process import MOST_COMPARED, STUBBORN, is_covered
from protocols.norm.position import TransmitPosition, is_before
from protocols.norm.rx_object import RxObject

__all__ = ["apply_to_incomplete", "list_waiting", "overhear_nack"]


def apply_to_incomplete(machines: list[Any], message: FastData | FastFlush, now: float, coordinator: Coordinator) -> Applied:
    """`FastMachine.apply_to_incomplete` for the receivers of a sender."""
    redundant = message.redundant
    if redundant and type(message) is FastData:
        unchanged, attentive, advanced, rest = _apply_content(machines, message, now, coordinator)
    else:
        unchanged, attentive, advanced, rest = _apply_progress(machines, message, now, coordinator)
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
        (attentive if state.attentive else advanced).append(machine)
    return unchanged, attentive, advanced, others


def _apply_progress(machines: list[Any], message: FastData | FastFlush, now: float, coordinator: Coordinator) -> Applied:
    """Apply the first symbol of a block, or a flush: a NACK process may begin. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    unchanged, attentive, advanced, rest = answer
    key, _, reach, _ = message.effect()
    next_state = message.next_state
    for machine in machines:
        state: FastSenderState = machine.fast_state
        if state.coordinator is not coordinator or state.position is next_state:
            continue
        objects, process = state.objects, state.nack_process
        if objects.key != key or objects.item is None:
            rest.append(machine)
        elif (
            process is not None
            and now < process.holdoff_end
            and (process.suppressed_to is None or process.is_idle_before(reach, now))
        ):
            unchanged.append(machine)
        else:
            state.position, state.last_heard = next_state, now
            was_attentive = state.attentive
            if state.check(reach, now):
                machine.settle(state)
            (attentive if state.attentive and not was_attentive else advanced).append(machine)
    return answer


def _apply_content(machines: list[Any], message: FastData, now: float, coordinator: Coordinator) -> Applied:
    """Apply a repair or parity of content without bytes. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    unchanged, attentive, advanced, rest = answer
    key, block, reach, rewound = message.effect()
    next_state, number, noted, is_rewind = message.next_state, message.symbol - message.block_length, None, False
    for machine in machines:
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
            is_idle = now < process.holdoff_end and (process.suppressed_to is None or process.is_idle_before(reach, now))
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
        if state.attentive or not state.is_complete:
            (attentive if state.attentive and not was_attentive else advanced).append(machine)
    return answer


def overhear_nack(machines: list[Any], nack: Nack, now: float, position: TransmitPosition, last_heard: float) -> Overheard:
    """`FastMachine.overhear_batch` of a NACK to the sender, which its other receivers may be about to send, too."""
    answer: Overheard = [], []
    attentive, others = answer
    has_echo = bool(nack.response_sec or nack.response_usec)
    requested = origin = fti = None
    boundary, key = position.tx_point, position.tx_point[0]
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
            if state.is_addressed(nack):
                requested, origin = state.requested_repairs(nack), state.origin
        elif now < process.backoff_end and process.suppressed_to is None and process.fruitless < STUBBORN:
            # As `SenderState.overhear`; nearly all have overheard the same before.
            known = process.overheard
            overheard = process.overheard = requested if known is None else known.merged(requested)
            if item.fti is not fti:
                state.position, fti = position, item.fti
                boundary = state.boundary()
            if is_covered(objects, boundary, overheard, MOST_COMPARED):
                state.position, state.last_heard = position, last_heard
                process.suppress(boundary)
                state.note_suppression(process)
                machine.settle(state)
        (attentive if state.attentive else others).append(machine)
    return answer


def list_waiting(
    machines: list[Any], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
) -> None:
    """`FastMachine.list_waiting` for the receivers of a sender.

    A NACK process begins or is resumed when the block (object, block) is over that they wait for: the first incomplete one, or
    the one up to which others have requested everything. Those in back-off or hold-off are quiet until the end of that, unless
    a repair concerns most of them anyway.
    """
    fti, indexed = None, False
    for machine in machines:
        state: FastSenderState = machine.fast_state
        if state.is_complete:
            continue
        objects, waits_for = state.objects, None
        item = objects.item
        if item is not None and item.fti is not fti:
            fti = item.fti
            indexed = is_indexed(fti)
        if item is not None and indexed:
            missing = None if simple_item(objects) is None else item.missing_symbols
            if missing is not None and not _list_indexed(machine, state, item, now, quiet, lacking):
                continue
            if missing is not None:
                waits_for = _first_awaited(state, missing.key, now)
        elif state.attentive:
            # It is among `Overhearers.machines`.
            continue
        elif item is not None and not item.missing_blocks and not (item.wants_info and item.info is None):
            process, missing = state.nack_process, item.missing_symbols
            if missing is not None and (process is None or now >= process.holdoff_end):
                waits_for = objects.key, missing.key
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
