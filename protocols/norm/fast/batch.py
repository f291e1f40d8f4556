"""The effect of one message on many receivers at the same position.

It is the effect on each of them (`FastSenderState.advance`, `SenderState.overhear`), but what depends on the message alone is
computed once, and the usual case is tried first: one object is incomplete, and no whole block of it is missing.
"""

from math import inf
from typing import Any

from protocols.fast.contract import Applied, Coordinator, Overheard
from protocols.norm.fast.messages import FastData, FastFlush
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.messages import Nack
from protocols.norm.nack_content import MOST_COMPARED, is_covered
from protocols.norm.nack_process import NackProcess
from protocols.norm.position import Point, TransmitPosition, is_before
from protocols.norm.rx_object import RxObject

__all__ = ["apply_to_incomplete", "overhear_nack"]


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
        advanced.append(machine)
    return unchanged, attentive, advanced, others


def _apply_progress(machines: list[Any], message: FastData | FastFlush, now: float, coordinator: Coordinator) -> Applied:
    """Apply the first symbol of a block, or a flush: a NACK process may begin. Receivers in an unusual state come last."""
    unchanged: list[Any] = []
    attentive: list[Any] = []
    advanced: list[Any] = []
    rest: list[Any] = []
    key, _, reach, _ = message.effect()
    next_state = message.next_state
    for machine in machines:
        state: FastSenderState = machine.fast_state
        if state.coordinator is not coordinator or state.position is next_state:
            continue
        objects, process = state.objects, state.nack_process
        if objects.key != key or objects.item is None:
            rest.append(machine)
        elif process is not None and _is_idle(process, reach, now):
            unchanged.append(machine)
        else:
            state.position, state.last_heard = next_state, now
            if state.check(reach, now):
                machine.settle(state)
            (attentive if state.attentive else advanced).append(machine)
    return unchanged, attentive, advanced, rest


def _apply_content(machines: list[Any], message: FastData, now: float, coordinator: Coordinator) -> Applied:
    """Apply a repair or parity of content without bytes. Receivers in an unusual state come last."""
    unchanged: list[Any] = []
    attentive: list[Any] = []
    advanced: list[Any] = []
    rest: list[Any] = []
    key, block, reach, rewound = message.effect()
    next_state = message.next_state
    noted, is_rewind = None, False
    for machine in machines:
        state: FastSenderState = machine.fast_state
        if state.coordinator is not coordinator or state.position is next_state:
            continue
        objects, process = state.objects, state.nack_process
        item = objects.item
        if objects.key != key or item is None or item.missing_blocks:
            rest.append(machine)
            continue
        missing = item.missing_symbols
        fills = missing is not None and (missing.key == block or (missing.more is not None and block in missing.more))
        is_idle = False
        if process is not None:
            if process.noted is not noted:
                noted = process.noted
                is_rewind = rewound is not None and (rewound < noted if noted[0] == key else is_before(rewound, noted))
            if is_rewind and rewound is not None:
                process.rewind(rewound, now)
            is_idle = _is_idle(process, reach, now)
            if is_idle and not fills:
                unchanged.append(machine)
                continue
        state.position, state.last_heard = next_state, now
        is_settled = not _fill(state, item, message, fills) and (is_idle or _is_waiting(item, process, block, now))
        if not is_settled and (state.attentive if state.is_complete else state.check(reach, now)):
            machine.settle(state)
        if state.attentive or not state.is_complete:
            (attentive if state.attentive else advanced).append(machine)
    return unchanged, attentive, advanced, rest


def _is_idle(process: NackProcess, reach: Point, now: float) -> bool:
    """Return whether `NackProcess.check` would return NOTHING. False when in doubt."""
    return now < process.holdoff_end and (process.suppressed_to is None or process.is_idle_before(reach, now))


def _fill(state: FastSenderState, item: RxObject, message: FastData, fills: bool) -> bool:
    """Store the symbol if its block `fills`; return whether the receiver is complete."""
    if fills:
        number = message.symbol - message.block_length
        block, symbol = message.block, message.symbol
        if item.fill_parity(block, number, None, 0) if number >= 0 else item.fill(block, symbol, None):
            # It was of use, but the coordinator counts it as a duplicate.
            state.duplicates -= 1
            if item.missing_symbols is None:
                state.finish(item)
    return state.is_complete


def _is_waiting(item: RxObject, process: NackProcess | None, block: int, now: float) -> bool:
    """Return whether nothing is missing before `block`, and no back-off is under way."""
    missing = item.missing_symbols
    is_first = missing is not None and missing.key >= block and not item.wants_info
    return is_first and (process is None or now >= process.backoff_end)


def overhear_nack(machines: list[Any], nack: Nack, now: float, position: TransmitPosition, last_heard: float) -> Overheard:
    """`FastMachine.overhear_batch` of a NACK to the sender, which its other receivers may be about to send, too."""
    attentive: list[Any] = []
    others: list[Any] = []
    has_echo = bool(nack.response_sec or nack.response_usec)
    requested = origin = fti = None
    boundary, key = position.tx_point, position.tx_point[0]
    for machine in machines:
        state: FastSenderState = machine.fast_state
        process, response, objects = state.nack_process, state.probe_response, state.objects
        item = objects.item
        if (
            (requested is None or state.origin is not origin or objects.key != key)
            or (process is None or item is None)
            or (has_echo and response is not None and response.due < inf)
        ):
            state.position, state.last_heard = position, last_heard
            machine.overhear(nack, now)
            if state.is_addressed(nack):
                requested, origin = state.requested_repairs(nack), state.origin
        elif process.is_listening(now):
            # As `SenderState.overhear`; nearly all have overheard the same before.
            overheard = process.note(requested)
            if item.fti is not fti:
                state.position, fti = position, item.fti
                boundary = state.boundary()
            if is_covered(objects, boundary, overheard, MOST_COMPARED):
                state.position, state.last_heard = position, last_heard
                process.suppress(boundary)
                state.note_suppression(process)
                machine.settle(state)
        (attentive if state.attentive else others).append(machine)
    return attentive, others
