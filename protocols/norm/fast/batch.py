"""The effect of one message on many receivers at the same position.

It is the effect on each of them (`FastSenderState.advance`, `SenderState.overhear`), but what depends on the message alone is
computed once, and the usual case is tried first: one object is incomplete, and no whole block of it is missing.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, TypeAlias

from mypy_extensions import trait

from protocols.fast.contract import Applied, Coordinator, FastMachine, FastMessage, Overheard, fan_out
from protocols.fast.index import PartIndex, QuietQueue
from protocols.fast.overhearers import Overhearers, OverhearingGroup
from protocols.machine import Address, Message
from protocols.norm.fast.messages import FastData, FastFlush, FastInfo, FastProbe
from protocols.norm.fast.nack_log import MOST_BLOCKS, FastNackProcess, is_covered_by_count
from protocols.norm.fast.overhearers import NormOverhearers
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.maps import NONE, BlockBitmaps
from protocols.norm.messages import Fti, Nack
from protocols.norm.nack_process import PATIENT, STUBBORN
from protocols.norm.position import TransmitPosition, is_before
from protocols.norm.repair_requests import RequestedRepairs

__all__ = ["NormFollower"]

Merged: TypeAlias = "tuple[RequestedRepairs, dict[int, int], int]"
"""Requested repairs, how many of them by block, and how many parity symbols of a block are compared by count."""

QUIET = (NONE, NONE)
"""Instead of the (object, block) that a receiver waits for: there is none."""


@trait
class NormFollower(FastMachine):
    """The interface of a lockstep group to the receivers of one sender; `fast_state` is a `FastSenderState`."""

    __slots__ = ()

    @abstractmethod
    def overhear(self, message: Any, now: float) -> None:
        """Process a NACK or an ACK of another receiver."""

    @abstractmethod
    def settle(self, sender: Any) -> None:
        """Set the deadline after an input that may have changed when the sender's state, `sender`, is to be woken."""

    @staticmethod
    def receive_batch(machines: Iterable["NormFollower"], message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to many receivers, most of which it advances."""
        if isinstance(message, (FastData, FastFlush)) and message.expects is None and message.expects_if_complete is not None:
            expected, data = message.expects_if_complete, message if isinstance(message, FastData) else None
            for machine in machines:
                state: FastSenderState = machine.fast_state
                if state.position is expected:
                    result = state.advance(message, now)
                else:
                    result = OTHER if data is None else state.take(data, now)
                if result == OTHER:
                    machine.receive(message, source, to, now)
                elif result == RESCHEDULE:
                    machine.settle(state)
        else:
            fan_out(machines, message, source, to, now)

    @staticmethod
    def apply_to_incomplete(
        groups: list[list["NormFollower"]], message: FastMessage, now: float, coordinator: Coordinator
    ) -> Applied:
        """Apply a message of the sender to receivers that are incomplete."""
        redundant = message.redundant
        if isinstance(message, FastData) and redundant:
            answer = _apply_content(groups, message, now, coordinator)
        elif isinstance(message, (FastData, FastFlush)):
            answer = _apply_progress(groups, message, now, coordinator)
        else:
            assert isinstance(message, FastInfo)
            return _apply_info(groups, message, now, coordinator)
        unchanged, attentive, advanced, rest = answer
        if not rest:
            return answer
        others: list[Any] = []
        for machine in dict.fromkeys(rest):
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

    @staticmethod
    def process_in_lockstep(machines: list["NormFollower"], message: FastMessage, now: float) -> list[Any]:
        """Process a CMD(CC), or the first message or the last symbol of an object."""
        others: list[Any] = []
        moves = not isinstance(message, FastProbe)
        for machine in machines:
            state: FastSenderState = machine.fast_state
            if not state.process_in_lockstep(message, now):
                others.append(machine)
                continue
            if moves and (own := state.position) is not message.next_state:
                machine.leave_lockstep()
                state.position = own
            machine.settle(state)
        return others

    @staticmethod
    def list_waiting(
        machines: list["NormFollower"], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
    ) -> None:
        """List receivers by what they wait for.

        A receiver waits for a block (object, block): only what fills it, or shows that it is over, can begin or resume its NACK
        process. That is the first incomplete one. Of an indexed object it may be the first behind what others have requested
        instead, and those in back-off or hold-off are quiet until the end of that.
        """
        fti, indexed = None, False
        waits_for: tuple[int, int] | None
        to_index: list[NormFollower] = []
        for machine in machines:
            state: FastSenderState = machine.fast_state
            if state.is_complete:
                continue
            objects = state.objects
            item = objects.item
            if (item is None or (missing := item.missing_symbols) is None) or item.missing_blocks or item.info is None:
                waits_for = None
            else:
                if item.fti is not fti:
                    fti = item.fti
                    indexed = not fti.is_coded
                if indexed:
                    if missing.has_more_than(MOST_BLOCKS):
                        waits_for = None
                    else:
                        to_index.append(machine)
                        waits_for = _list_indexed(machine, state, missing, now, quiet)
                        if waits_for == QUIET:
                            continue
                else:
                    waits_for = objects.key, missing.key
            if waits_for in waiting:
                waiting[waits_for].append(machine)
            else:
                waiting[waits_for] = [machine]
        if to_index and lacking is not None:
            _index(to_index, lacking)

    @staticmethod
    def rewind(machines: list["NormFollower"], message: FastMessage, now: float, coordinator: Coordinator) -> list[Any]:
        """Note that the sender rewound; return those whose hold-off may have ended."""
        rewound = message.rewound_to() if isinstance(message, (FastData, FastInfo)) else None
        noted, is_rewind = None, False
        roused: list[Any] = []
        if rewound is None:
            return roused
        for machine in machines:
            state: FastSenderState = machine.fast_state
            process = state.nack_process
            if process is None or state.coordinator is not coordinator:
                continue
            if process.noted is not noted:
                noted = process.noted
                is_rewind = is_before(rewound, noted)
            if is_rewind:
                process.rewind(rewound, now)
                if process.holdoff_end <= now:
                    roused.append(machine)
        return roused

    @staticmethod
    def unaware_position(position: TransmitPosition, of_group: Any) -> TransmitPosition | None:
        """Return the position, after repairs, of a receiver that lost the last new symbols."""
        if not isinstance(of_group, TransmitPosition):
            return None
        next_new = position.object_id, position.block, position.symbol
        return TransmitPosition(*next_new, of_group.sequence, of_group.tx_point)

    @staticmethod
    def make_overhearers(group: OverhearingGroup) -> Overhearers:
        """Return the empty list of the attentive receivers of a group."""
        return NormOverhearers(group)

    @staticmethod
    def counts_overheard(feedback: Message) -> bool:
        """Return whether it is a NACK."""
        return isinstance(feedback, Nack)

    @staticmethod
    def overhear_batch(
        machines: list["NormFollower"],
        message: Message,
        source: Address,
        to: Address,
        now: float,
        position: Any,
        last_heard: float,
    ) -> Overheard:
        """Deliver feedback to receivers at one position."""
        if isinstance(message, Nack):
            return _overhear_nack(machines, message, now, position, last_heard)
        attentive: list[Any] = []
        for machine in machines:
            state: FastSenderState = machine.fast_state
            state.position, state.last_heard = position, last_heard
            # An ACK concerns only the answers to a probe.
            machine.overhear(message, now)
            if state.attentive:
                attentive.append(machine)
        return attentive, []


def _apply_info(groups: list[list[NormFollower]], message: FastInfo, now: float, coordinator: Coordinator) -> Applied:
    """Apply a repeated NORM_INFO. Receivers that know nothing else of the object are to be called singly."""
    attentive: list[Any] = []
    advanced: list[Any] = []
    others: list[Any] = []
    for machine in dict.fromkeys([machine for group in groups for machine in group]):
        state: FastSenderState = machine.fast_state
        if state.coordinator is not coordinator:
            continue
        was_attentive = state.attentive
        if not state.take_info_again(message, now):
            others.append(machine)
            continue
        machine.settle(state)
        if not state.is_complete:
            advanced.append(machine)
        if state.attentive and not was_attentive:
            attentive.append(machine)
    return [[] for _ in groups], attentive, advanced, others


def _apply_progress(
    groups: list[list[NormFollower]], message: FastData | FastFlush, now: float, coordinator: Coordinator
) -> Applied:
    """Apply the first symbol of a block, or a flush: a NACK process may begin. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    by_group, attentive, advanced, rest = answer
    key, _, reach = message.effect()
    next_state, suppressed_to, is_covered_to = message.next_state, None, False
    is_flush = isinstance(message, FastFlush)
    # Receivers of an indexed object may wait for something else now, or be quiet.
    indexed = isinstance(message, FastData) and message.fti is not None and not message.fti.is_coded
    for group in groups:
        unchanged: list[Any] = []
        by_group.append(unchanged)
        for machine in group:
            state: FastSenderState = machine.fast_state
            if state.coordinator is not coordinator or state.position is next_state:
                continue
            objects, process = state.objects, state.nack_process
            if objects.item is None:
                rest.append(machine)
                continue
            if is_flush:
                state.shorten_holdoff()
            if process is not None and now < process.holdoff_end and not indexed:
                # As `is_idle_before`; many are suppressed up to the same point.
                if now < process.backoff_end and process.suppressed_to is not suppressed_to:
                    suppressed_to = process.suppressed_to
                    is_covered_to = suppressed_to is not None and suppressed_to[0] == key and reach <= suppressed_to
                if now >= process.backoff_end or suppressed_to is None or is_covered_to:
                    unchanged.append(machine)
                    continue
            if objects.key != key:
                rest.append(machine)
                continue
            was_attentive = state.attentive
            state.position, state.last_heard = next_state, now
            if state.check(reach, now):
                machine.settle(state)
                if state.attentive and not was_attentive:
                    attentive.append(machine)
            (advanced if indexed else unchanged).append(machine)
    return answer


def _apply_content(groups: list[list[NormFollower]], message: FastData, now: float, coordinator: Coordinator) -> Applied:
    """Apply a repair or parity of content without bytes. Receivers in an unusual state come last."""
    answer: Applied = [], [], [], []
    by_group, attentive, advanced, rest = answer
    key, block, reach = message.effect()
    next_state, nth = message.next_state, message.symbol - message.block_length
    indexed = message.fti is not None and not message.fti.is_coded
    for group in groups:
        unchanged: list[Any] = []
        by_group.append(unchanged)
        for machine in group:
            state: FastSenderState = machine.fast_state
            if state.coordinator is not coordinator or state.position is next_state:
                continue
            objects, process, item = state.objects, state.nack_process, state.objects.item
            if item is None or objects.key != key or item.missing_blocks:
                rest.append(machine)
                continue
            missing = item.missing_symbols
            fills = missing is not None and (missing.key == block or (missing.key < block and missing.get(block, 0) > 0))
            if not fills and process is not None and now < process.holdoff_end and process.is_idle_before(reach, now):
                # In hold-off, receivers of an indexed object are quiet.
                (advanced if indexed and now >= process.backoff_end else unchanged).append(machine)
                continue
            was_attentive = state.attentive and not fills
            state.position, state.last_heard, limit = next_state, now, state.session.config.buffer
            if fills and (item.fill_parity(block, nth, None, limit) if nth >= 0 else item.fill(block, message.symbol, None)):
                state.duplicates -= 1  # It was of use, but the coordinator counts it as a duplicate.
                if (missing := item.missing_symbols) is None:
                    state.finish(item)
            if not state.is_complete:
                advanced.append(machine)
                # Nothing new is to be requested if nothing is missing before the block, and no back-off is under way.
                has_earlier = missing is None or missing.key < block or item.info is None
                if (has_earlier or (process is not None and now < process.backoff_end)) and state.check(reach, now):
                    machine.settle(state)
            elif state.attentive:
                machine.settle(state)
            if state.attentive and not was_attentive:
                attentive.append(machine)
    return answer


def _merged(overheard: RequestedRepairs | None, requested: RequestedRepairs, object_id: int, fti: Fti) -> Merged:
    """Return what a receiver has overheard with the repairs that one more NACK requests."""
    both = requested if overheard is None else overheard.merged(requested)
    return both, both.counts(object_id, fti), 0 if both.objects or both.blocks else fti.usable


def _overhear_nack(
    machines: list[NormFollower], nack: Nack, now: float, position: TransmitPosition, last_heard: float
) -> Overheard:
    """Deliver a NACK to the sender, which its other receivers may be about to send, too."""
    attentive: list[Any] = []
    others: list[Any] = []
    has_echo = bool(nack.response_sec or nack.response_usec)
    known: FastSenderState = machines[0].fast_state
    origin = known.origin if known.is_addressed(nack) else None
    requested, fti = known.requested_repairs(nack), None
    merged: dict[RequestedRepairs | None, Merged] = {}
    indexed, boundary, key = False, position.tx_point, position.tx_point[0]
    for machine in machines:
        state: FastSenderState = machine.fast_state
        objects, process = state.objects, state.nack_process
        item = objects.item
        if (
            (origin is None or state.origin is not origin or item is None or objects.key != key)
            or (not isinstance(process, FastNackProcess) or process.log is not None)
            or (has_echo and (response := state.probe_response) is not None and response.due < inf)
        ):
            state.position, state.last_heard = position, last_heard
            machine.overhear(nack, now)
            others.append(machine)
        elif now < process.backoff_end and process.suppressed_to is None and process.fruitless < STUBBORN:
            # As `SenderState.overhear`; nearly all have overheard the same before.
            if item.fti is not fti:
                state.position, fti, merged = position, item.fti, {}
                boundary, indexed = state.boundary(), not fti.is_coded
            found = merged.get(process.overheard)
            if found is None:
                found = merged[process.overheard] = _merged(process.overheard, requested, key, fti)
            process.overheard, counts, usable = found
            if is_covered_by_count(objects, item, boundary, process.overheard, counts, usable):
                state.position, state.last_heard = position, last_heard
                process.suppress(boundary)
                state.note_suppression(process)
                machine.settle(state)
                if indexed:
                    others.append(machine)
        if state.attentive:
            attentive.append(machine)
    return attentive, others


def _index(machines: list[NormFollower], lacking: PartIndex) -> None:
    """List receivers of indexed objects by the symbols they miss; those that follow each other and miss the same, together."""
    known_key, known = -1, None
    alike: list[NormFollower] = []
    for machine in machines:
        state: FastSenderState = machine.fast_state
        item = state.objects.item
        assert item is not None
        assert item.missing_symbols is not None, "those that miss more are not listed by symbols"
        missing, key = item.missing_symbols.items(), state.objects.key
        if key != known_key or missing != known:
            _index_alike(alike, known_key, known or (), lacking)
            known_key, known, alike = key, missing, []
        alike.append(machine)
    _index_alike(alike, known_key, known or (), lacking)


def _index_alike(machines: list[NormFollower], key: int, missing: Sequence[tuple[int, int]], lacking: PartIndex) -> None:
    """List receivers that miss the same symbols of an object."""
    for block, mask in missing:
        lacking.add((key, block), mask, machines)


def _list_indexed(
    machine: Any, state: FastSenderState, missing: BlockBitmaps, now: float, quiet: QuietQueue
) -> tuple[int, int] | None:
    """List until when a receiver of an indexed object is quiet.

    Return the (object, block) that it waits for besides what it lacks: QUIET for none, None if every message concerns it.
    """
    key, process = state.objects.key, state.nack_process
    if process is None or now >= process.holdoff_end or process.fruitless > PATIENT:
        # A hold-off that is prolonged may end before its time.
        return key, missing.key
    quiet.push(machine, process.holdoff_end)
    suppressed_to = process.suppressed_to
    if suppressed_to is None or now >= process.backoff_end:
        return QUIET
    if suppressed_to[0] != key:
        return None
    if missing.key >= suppressed_to[1]:
        return key, missing.key
    later = [block for block, _ in missing.items() if block >= suppressed_to[1]]
    return (key, min(later)) if later else QUIET
