"""What one message does to many receivers that stand together.

It is what it does to each of them (`SenderState.advance`, `overhear`), but what depends on the message alone is worked out
once, and what is nearly always so is asked first: one object is under way, and no whole block is missing.
"""

from math import inf
from typing import TYPE_CHECKING

from protocols.fast.contract import Answers, Coordinator, Overheard
from protocols.norm.backoff import NEVER
from protocols.norm.messages import Data, Flush, Nack, TransmitPosition
from protocols.norm.nack_content import Place, is_covered
from protocols.norm.nack_process import is_before

if TYPE_CHECKING:
    from protocols.machine import Machine
    from protocols.norm.sender_state import SenderState

__all__ = ["apply_to_incomplete", "overhear"]


def apply_to_incomplete(machines: "list[Machine]", message: Data | Flush, now: float, coordinator: Coordinator) -> Answers:
    """`FastState.apply_to_incomplete` for those of a sender."""
    redundant = message.redundant
    if redundant and type(message) is Data:
        left, attentive, followed, rest = _fill(machines, message, now, coordinator)
    else:
        left, attentive, followed, rest = _reach(machines, message, now, coordinator)
    others = []
    for machine in dict.fromkeys(rest) if rest else ():
        remote: SenderState = machine.fast_state
        if remote.advance(message, now):
            # The crowd counts it, too.
            remote.redundant -= redundant
            followed.append(machine)
        else:
            others.append(machine)
    return left, attentive, followed, others


def _reach(machines: "list[Machine]", message: Data | Flush, now: float, coordinator: Coordinator) -> Answers:
    """The first symbol of a block, or a flush: there may be something to ask for. Last come those of whom less is known."""
    answers: Answers = [], [], [], []
    left, attentive, followed, rest = answers
    key, _, reach, _ = message.effect()
    next_state = message.next_state
    for machine in machines:
        remote: SenderState = machine.fast_state
        if remote.coordinator is not coordinator or remote.at is next_state:
            continue
        objects, cycle = remote.objects, remote.cycle
        if objects.key != key or objects.item is None:
            rest.append(machine)
        elif cycle is not None and now < cycle.holdoff and (cycle.covered is None or cycle.rests(reach, now)):
            left.append(machine)
        else:
            remote.at, remote.heard = next_state, now
            if remote.check(reach, now) if cycle is None else cycle.check(now, reach):
                remote.receiver.settle()
            (attentive if remote.attentive else followed).append(machine)
    return answers


def _fill(machines: "list[Machine]", message: Data, now: float, coordinator: Coordinator) -> Answers:
    """A repair or parity, of counted content. Last come those of whom less is known."""
    answers: Answers = [], [], [], []
    left, attentive, followed, rest = answers
    key, block, reach, back = message.effect()
    next_state, number, seen, backwards = message.next_state, message.symbol - message.block_length, None, False
    for machine in machines:
        remote: SenderState = machine.fast_state
        if remote.coordinator is not coordinator or remote.at is next_state:
            continue
        objects, cycle = remote.objects, remote.cycle
        item = objects.item
        if objects.key != key or item is None or item.missing_blocks:
            rest.append(machine)
            continue
        missing_symbols = item.missing_symbols
        fills = missing_symbols is not None and (
            missing_symbols.key == block or (missing_symbols.more is not None and block in missing_symbols.more)
        )
        resting, expiry = False, NEVER
        if cycle is not None:
            if cycle.noted is not seen:
                seen = cycle.noted
                backwards = back is not None and (back < seen if seen[0] == key else is_before(back, seen))
            if backwards and back is not None:
                cycle.rewind(back, now)
            expiry = cycle.expiry
            resting = now < cycle.holdoff and (cycle.covered is None or cycle.rests(reach, now))
            if resting and not fills:
                left.append(machine)
                continue
        remote.at, remote.heard = next_state, now
        if fills and (item.fill_parity(block, number, None, 0) if number >= 0 else item.fill(block, message.symbol, None)):
            # It was of use, but the crowd counts it as spare.
            remote.redundant -= 1
            missing_symbols = item.missing_symbols
            if missing_symbols is None:
                remote.complete(item)
        if remote.whole or not (
            resting or (missing_symbols is not None and missing_symbols.key >= block and not item.wants_info and now >= expiry)
        ):
            _look_again(remote, reach, now)
        if remote.attentive or not remote.whole:
            (attentive if remote.attentive else followed).append(machine)
    return answers


def _look_again(remote: "SenderState", reach: Place, now: float) -> None:
    """After a repair: there may be nothing to ask for any more, or something that comes before."""
    if remote.attentive if remote.whole else remote.check(reach, now):
        remote.receiver.settle()


def overhear(machines: "list[Machine]", nack: Nack, now: float, at: TransmitPosition, heard: float) -> Overheard:
    """`FastState.overhear_batch` of another receiver's NACK by those of a sender: they may be about to ask for the same."""
    answers: Overheard = [], []
    attentive, others = answers
    echoes = bool(nack.response_sec or nack.response_usec)
    demand = origin = fti = None
    place, key = at.place, at.place[0]
    for machine in machines:
        remote: SenderState = machine.fast_state
        cycle, feedback, objects = remote.cycle, remote.feedback, remote.objects
        item = objects.item
        if (
            (demand is None or remote.origin is not origin or objects.key != key)
            or (cycle is None or item is None)
            or (echoes and feedback is not None and feedback.due < inf)
        ):
            remote.at, remote.heard = at, heard
            remote.receiver.overhear(nack, now)
            if remote.is_asked(nack):
                demand, origin = nack.demand, remote.origin
        elif now < cycle.expiry and cycle.covered is None:
            # As `NackProcess.overhear`; nearly all have heard the same before.
            asked = cycle.asked = demand if cycle.asked is None else cycle.asked.merged(demand)
            if item.fti is not fti:
                remote.at, fti = at, item.fti
                place = remote.boundary()
            if is_covered(objects, place, asked):
                remote.at, remote.heard = at, heard
                cycle.fall_quiet(place)
                remote.receiver.settle()
        (attentive if remote.attentive else others).append(machine)
    return answers
