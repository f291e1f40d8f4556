"""What one message does to many receivers that stand together.

It is what it does to each of them (`RemoteSender.follow`, `overhear`), but what depends on the message alone is worked out
once, and what is nearly always so is asked first: one object is under way, and no whole block is missing.
"""

from math import inf
from typing import TYPE_CHECKING

from protocols.fast.contract import Answers, Overheard, Pace
from protocols.norm.backoff import NEVER
from protocols.norm.messages import Data, Flush, Nack, Position
from protocols.norm.nack_content import Place, is_covered
from protocols.norm.nack_process import is_before

if TYPE_CHECKING:
    from protocols.machine import Machine
    from protocols.norm.sender_state import RemoteSender

__all__ = ["heed", "overhear"]


def heed(machines: "list[Machine]", message: Data | Flush, now: float, pace: Pace) -> Answers:
    """`Seat.heed` for those of a sender."""
    spare = message.spare
    if spare and type(message) is Data:
        left, attentive, followed, rest = _fill(machines, message, now, pace)
    else:
        left, attentive, followed, rest = _reach(machines, message, now, pace)
    others = []
    for machine in dict.fromkeys(rest) if rest else ():
        remote: RemoteSender = machine.seat
        if remote.follow(message, now):
            # The crowd counts it, too.
            remote.spare -= spare
            followed.append(machine)
        else:
            others.append(machine)
    return left, attentive, followed, others


def _reach(machines: "list[Machine]", message: Data | Flush, now: float, pace: Pace) -> Answers:
    """The first symbol of a block, or a flush: there may be something to ask for. Last come those of whom less is known."""
    answers: Answers = [], [], [], []
    left, attentive, followed, rest = answers
    key, _, reach, _ = message.gist()
    after = message.after
    for machine in machines:
        remote: RemoteSender = machine.seat
        if remote.pace is not pace or remote.at is after:
            continue
        objects, cycle = remote.objects, remote.cycle
        if objects.key != key or objects.item is None:
            rest.append(machine)
        elif cycle is not None and now < cycle.holdoff and (cycle.covered is None or cycle.rests(reach, now)):
            left.append(machine)
        else:
            remote.at, remote.heard = after, now
            if remote.check(reach, now) if cycle is None else cycle.check(now, reach):
                remote.receiver.settle()
            (attentive if remote.attentive else followed).append(machine)
    return answers


def _fill(machines: "list[Machine]", message: Data, now: float, pace: Pace) -> Answers:
    """A repair or parity, of counted content. Last come those of whom less is known."""
    answers: Answers = [], [], [], []
    left, attentive, followed, rest = answers
    key, block, reach, back = message.gist()
    after, number, seen, backwards = message.after, message.symbol - message.block_length, None, False
    for machine in machines:
        remote: RemoteSender = machine.seat
        if remote.pace is not pace or remote.at is after:
            continue
        objects, cycle = remote.objects, remote.cycle
        item = objects.item
        if objects.key != key or item is None or item.absent:
            rest.append(machine)
            continue
        gaps = item.gaps
        fills = gaps is not None and (gaps.key == block or (gaps.more is not None and block in gaps.more))
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
        remote.at, remote.heard = after, now
        if fills and (item.fill_parity(block, number, None, 0) if number >= 0 else item.fill(block, message.symbol, None)):
            # It was of use, but the crowd counts it as spare.
            remote.spare -= 1
            gaps = item.gaps
            if gaps is None:
                remote.complete(item)
        if remote.whole or not (resting or (gaps is not None and gaps.key >= block and not item.wants_info and now >= expiry)):
            _look_again(remote, reach, now)
        if remote.attentive or not remote.whole:
            (attentive if remote.attentive else followed).append(machine)
    return answers


def _look_again(remote: "RemoteSender", reach: Place, now: float) -> None:
    """After a repair: there may be nothing to ask for any more, or something that comes before."""
    if remote.attentive if remote.whole else remote.check(reach, now):
        remote.receiver.settle()


def overhear(machines: "list[Machine]", nack: Nack, now: float, at: Position, heard: float) -> Overheard:
    """`Seat.overhear_all` of another receiver's NACK by those of a sender: they may be about to ask for the same."""
    answers: Overheard = [], []
    attentive, others = answers
    echoes = bool(nack.response_sec or nack.response_usec)
    demand = origin = fti = None
    place, key = at.place, at.place[0]
    for machine in machines:
        remote: RemoteSender = machine.seat
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
            # As `NackCycle.overhear`; nearly all have heard the same before.
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
