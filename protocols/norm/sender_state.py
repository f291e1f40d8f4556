"""What a receiver knows of one sender: where it stands, what is missing, and how each of its messages changes that."""

from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

from protocols.events import SenderReset, SenderSilent
from protocols.fast.contract import Answers, Coordinator, Overheard
from protocols.machine import Address
from protocols.norm.backoff import NEVER
from protocols.norm.fast.batch import apply_to_incomplete, overhear
from protocols.norm.hearing import HANDLERS
from protocols.norm.messages import (
    FLAG_REPAIR,
    Ack,
    Command,
    Data,
    Flush,
    Info,
    Loss,
    Nack,
    NormMessage,
    Origin,
    TransmitPosition,
)
from protocols.norm.nack_content import MissingRange, Place, contents_for, needs_before
from protocols.norm.nack_process import NackProcess
from protocols.norm.probe_response import ProbeResponse
from protocols.norm.quantise import gsize_value, rtt_seconds
from protocols.norm.reception import Reception
from protocols.norm.repair_requests import requested_repairs
from protocols.serial import ahead

if TYPE_CHECKING:
    from protocols.machine import Machine
    from protocols.norm.receiver import NormReceiver

__all__ = ["SenderState"]

JOINED = -1
"""`SenderState.began` of a receiver that takes part."""


@lru_cache(maxsize=8)
def _later(now: float, period: float) -> float:
    """The sum: one number for all receivers that need the same, and not one each."""
    return now + period


ACK_CC = 1
"""The ack_type that answers a probe."""
SILENCES = 20
"""Activity periods without a word after which a sender counts as silent (RFC 5740 5.3, NRL's robust factor)."""


class SenderState(Reception):
    """One sender as one receiver sees it."""

    __slots__ = (
        "_base",
        "_idle_at",
        "_silences",
        "began",
        "feedback",
        "lost",
        "origin",
    )

    def __init__(self, receiver: "NormReceiver", node: int) -> None:
        super().__init__(receiver, node)
        self.origin: Origin | None = None
        self.heard = NEVER
        self.began = 0
        """The sequence number of the sender's first message, as far as known; `JOINED` once this does not matter any more."""
        self.lost = 0
        self._base = 0
        self.feedback: ProbeResponse | None = None
        self._idle_at = inf
        self._silences = 0

    # -- inputs ----------------------------------------------------------------------------------------------------

    def hear(self, message: Data | Info | Command, now: float) -> None:
        """A message of this sender that is not simply the next symbol."""
        if message.origin is not self.origin:
            self._retime(message)
        self.heard = now
        if self._idle_at == inf:
            self._silences = 0
            self._idle_at = _later(now, self._period())
        gap = (message.sequence - self.at.sequence) & 0xFFFF
        if gap < 0x8000:
            self.lost += gap
            sequence = self.at.sequence + gap + 1
        else:
            # It came late: it had been counted as lost.
            self.lost -= self.lost > 0
            sequence = self.at.sequence
        handler = HANDLERS.get(type(message))
        if handler is not None and handler(self, message, sequence, now):
            return
        at = self.at
        self.move(message, (at.object_id, at.block, at.symbol), sequence)

    def advance(self, message: Data | Flush, now: float) -> bool:
        """A `Data` or `Flush` that has little to say to who stands where its sender stands; False: it takes more than this."""
        item, key = None, message.object_id
        if not self.whole:
            objects = self.objects
            item = objects.item if objects.key == key else objects.get(key)
            if item is None and key in objects:
                return False
        self.heard = now
        next_state: TransmitPosition = message.next_state
        self.at = next_state
        block = message.block
        if type(message) is Data:
            length = message.block_length
            number, repair = message.symbol - length, message.flags & FLAG_REPAIR
            if item is None:
                self.receiver.duplicates += bool(repair or number >= 0)
            elif repair or number >= 0:
                self.take(item, message, length, False)
            cycle = self.cycle
            if repair and cycle is not None:
                cycle.rewind(next_state.place, now)
        else:
            # A flush goes through the end of its block.
            block += 1
        if self.whole:
            if self.attentive and self.cycle is not None:
                self.receiver.settle()
        elif self.check((key, block, 0), now):
            self.receiver.settle()
        return True

    def overhear(self, message: Nack | Ack, now: float) -> bool:
        """Another receiver's feedback to this sender; True when it changes what this one has to say."""
        if not self.is_asked(message):
            return False
        known = feedback = self.feedback
        if feedback is not None and (message.response_sec or message.response_usec):
            self.feedback = known = feedback.overheard()
        hushed = False
        if self.cycle is not None and type(message) is Nack:
            hushed = self.cycle.overhear(message.demand or requested_repairs(message, self._fec_id), now)
        return hushed or known is not feedback

    def is_asked(self, message: Nack | Ack) -> bool:
        """Is the feedback for this sender, as far as known, and not for an earlier instance?"""
        origin = self.origin
        return origin is not None and message.sender_id == self.node and message.instance_id == origin.instance_id

    def wake(self, now: float) -> None:
        """Whatever of NACK, answer and activity check is due."""
        if self.cycle is not None and self.cycle.due <= now:
            self.cycle.expire(now)
        if self.feedback is not None and self.feedback.due <= now:
            self._send_ack(now)
        if self._idle_at <= now:
            self._check_activity(now)

    def settle(self) -> float:
        """After every input: when `wake` is wanted. Others matter while a NACK or an answer to a probe is due."""
        due = inf
        if self.cycle is not None:
            due = self.cycle.due
        if self.feedback is not None and self.feedback.due < due:
            due = self.feedback.due
        self.attentive = due < inf
        return due if due < self._idle_at else self._idle_at

    def waiting_for(self) -> tuple[int, int] | None:
        """(object, first incomplete block) when that is all that is missing, and no NACK process is under way."""
        objects, cycle = self.objects, self.cycle
        if cycle is not None and self.heard < cycle.holdoff:
            return None
        item = objects.item
        if item is None or item.missing_blocks or item.missing_symbols is None or (item.wants_info and item.info is None):
            return None
        return objects.key, item.missing_symbols.key

    @staticmethod
    def apply_to_incomplete(machines: "list[Machine]", message: Any, now: float, coordinator: Coordinator) -> Answers:
        """What a message of the sender does to receivers that stand where it stands, but lack something or may speak."""
        return apply_to_incomplete(machines, message, now, coordinator)

    @staticmethod
    def overhear_batch(
        machines: "list[Machine]", message: Any, source: Address, to: Address, now: float, at: TransmitPosition, heard: float
    ) -> Overheard:
        """What feedback does to receivers that stand where its sender stands, and may be about to speak themselves."""
        if type(message) is Nack:
            return overhear(machines, message, now, at, heard)
        return Reception.overhear_batch(machines, message, source, to, now, at, heard)

    def advance_over_gap(self, message: Data, now: float) -> bool:
        """A message after others that were lost: the next where no symbol was, or a first transmission further on in the block.

        False: something else.
        """
        at: TransmitPosition = self.at
        next_state: TransmitPosition | None = message.next_state
        expects_if_complete: TransmitPosition | None = message.expects_if_complete
        gap = (message.sequence - at.sequence) & 0xFFFF
        if next_state is None or message.origin is not self.origin or self._idle_at == inf or gap >= 0x8000:
            return False
        block, symbol = message.block, message.symbol
        if message.expects is None:
            # Only repairs were lost when it stands, but for them, where its sender stood.
            if expects_if_complete is None or (at.symbol, at.block, at.object_id) != (
                expects_if_complete.symbol,
                expects_if_complete.block,
                expects_if_complete.object_id,
            ):
                return False
            followed = self.advance(message, now)
            self.lost += gap if followed else 0
            return followed
        # The last symbol of a block moves on to the next.
        if at.block != block or at.object_id != message.object_id or not at.symbol < symbol < message.block_length - 1:
            return False
        key, objects = message.object_id, self.objects
        item = objects.item if objects.key == key else objects.get(key)
        if item is None or message.payload is not None:
            return False
        self.heard = now
        self.lost += gap
        item.lose(block, (1 << symbol) - (1 << at.symbol))
        self.at = next_state
        if self.whole:
            # What comes before this block was all there, so there is nothing to ask for yet.
            self.whole = False
        elif not at.symbol and self.check((key, block, 0), now):
            # Within a block nothing new is to be asked for.
            self.receiver.settle()
        return True

    def skip(self, loss: Loss | None) -> None:
        """Note that a message did not come; of an object that is not wanted no symbol is missing."""
        self.lost += 1
        if loss is None:
            return
        objects = self.objects
        key, block, mask = loss
        item = objects.item if objects.key == key else objects.get(key)
        if item is not None:
            self.whole = False
            item.lose(block, mask)

    @property
    def synced(self) -> bool:
        """Has it joined, so that what is missing matters?"""
        return self.began == JOINED

    @property
    def received(self) -> int:
        """Messages of this sender that arrived, by their sequence numbers."""
        at: TransmitPosition = self.at
        return at.sequence - self._base - self.lost

    # -- the sender's timing ---------------------------------------------------------------------------------------

    # Looked up in what all receivers share: numbers of their own would weigh 24 bytes a receiver.

    @property
    def grtt(self) -> float:
        """Seconds of a round trip through the group, as the sender announced them last; 0 before it was heard."""
        return rtt_seconds(self.origin.grtt) if self.origin is not None else 0.0

    @property
    def backoff(self) -> int:
        """How many GRTT the back-off spreads over."""
        return self.origin.backoff if self.origin is not None else 0

    @property
    def gsize(self) -> float:
        """How many receivers the sender reckons with."""
        return gsize_value(self.origin.gsize) if self.origin is not None else 1.0

    def _retime(self, message: Data | Info | Command) -> None:
        known, origin = self.origin, message.origin
        if known is None or known.instance_id != origin.instance_id:
            if known is not None:
                self._reset()
            # Sequence numbers count from the first message heard; what an earlier instance sent stays counted.
            sequence = message.next_state.sequence - 1 if message.next_state is not None else message.sequence
            self._base += sequence - self.at.sequence
            self.at = TransmitPosition(0, 0, 0, sequence, (0, 0, 0))
        self.origin = origin

    def _reset(self) -> None:
        """The sender restarted: what it had not finished will not come any more."""
        self.give_up(list(self.objects), "the sender restarted")
        self.receiver.ports.notify(SenderReset(self.node))
        self.began = 0
        self.cycle = self.feedback = None

    def _period(self) -> float:
        return max(1.0, 2 * self.receiver.config.robust * self.grtt)

    def renew_activity(self, heard: float, now: float) -> bool:
        """Begin the next activity period when the sender was heard last; False when the one that began then is over."""
        period = self._period()
        if heard + period <= now:
            return False
        self._silences = 0
        self._idle_at = _later(heard, period)
        return True

    def _check_activity(self, now: float) -> None:
        if self.renew_activity(self.heard, now):
            return
        period = self._period()
        if self.heard >= self._idle_at - period:
            # It was heard at the very moment of the last check.
            self._silences = 0
        self._silences += 1
        if self._silences >= SILENCES:
            self._idle_at = inf
            # A copy, so that the next message takes the slow path and starts the activity check again.
            self.stand(self.at.object_id, self.at.block, self.at.symbol)
            self.receiver.ports.notify(SenderSilent(self.node))
            return
        self._idle_at = _later(now, period)
        self.check((self.at.object_id, self.at.block, self.at.symbol), now)

    # -- places ----------------------------------------------------------------------------------------------------

    def boundary(self) -> Place:
        """Up to where a NACK asks: where the sender transmits, but not into a block that parity can repair when it is over."""
        at: TransmitPosition = self.at
        object_id, block, symbol = at.place
        objects = self.objects
        item = objects.item if objects.key == object_id else objects.get(object_id)
        return (object_id, block, 0 if item is not None and item.fti.usable else symbol)

    def move(self, message: NormMessage, front: Place, sequence: int, place: Place | None = None) -> None:
        """Stand at this front, the sender transmitting at `place` (None: there too).

        In the sender's own `TransmitPosition` when it has the same front, so that the fast path fits again.
        """
        # A receiver that has not joined takes no part in what is known of all that stand at the sender's position.
        # Nor does a message that came late (it leaves the sequence where it was): its position is one that is past.
        next_state: TransmitPosition | None = (
            message.next_state if self.began == JOINED and sequence != self.at.sequence else None
        )
        object_id, block, symbol = front
        if next_state is not None:
            if next_state.symbol == symbol and next_state.block == block and next_state.object_id == object_id:
                self.at = next_state
                return
            sequence = next_state.sequence
        self.at = TransmitPosition(object_id, block, symbol, sequence, place or front)

    def stand(self, object_id: int, block: int = 0, symbol: int = 0) -> None:
        """Stand at this front before the message under way has its say."""
        self.at = TransmitPosition(object_id, block, symbol, self.at.sequence, (object_id, block, symbol))

    def join(self, object_id: int, fec_id: int) -> None:
        """Begin with this object; what came before it is of no interest. Requests name the code, before any FTI is known."""
        self.began = JOINED
        self._fec_id = fec_id
        self.whole = False
        self.objects[object_id] = None
        self.stand(object_id)

    def open_through(self, object_id: int) -> None:
        """The sender has come to this object: everything before it was sent, and what did not come is missing."""
        self._finish_current()
        first = (self.at.object_id + 1) & 0xFFFF
        count = ahead(object_id, first)
        window = self.receiver.config.window
        if count + len(self.objects) >= window:
            oldest = [key for key in self.objects if ahead(object_id, key) >= window]
            self.give_up(oldest, "outside the window")
            skipped = max(count - window + 1, 0)
            first, count = (first + skipped) & 0xFFFF, count - skipped
        for step in range(count + 1):
            self.objects[(first + step) & 0xFFFF] = None
        self.whole = False
        self.stand(object_id)

    def _finish_current(self) -> None:
        at = self.at
        item = self.objects.get(at.object_id)
        if item is not None and at.block < item.fti.partition.blocks:
            item.skip(at.block, at.symbol, item.fti.partition.blocks, 0)

    # -- feedback --------------------------------------------------------------------------------------------------

    def check(self, place: Place, now: float) -> bool:
        """Begin to ask for what is missing before `place`; True when that changes when to be woken."""
        if self.whole:
            return False
        cycle = self.cycle
        if cycle is not None:
            return cycle.check(now, place)
        if not self.lacks_before(place):
            return False
        self.cycle = NackProcess(self)
        self.cycle.begin(now)
        return True

    def rewind(self, place: Place, now: float) -> None:
        """The sender sent something again, from `place`."""
        if self.cycle is not None:
            self.cycle.rewind(place, now)

    def needs_before(self, place: Place) -> list[MissingRange]:
        """What is missing before `place`."""
        return needs_before(self.objects, place, self._fec_id)

    def send_nack(self, needs: list[MissingRange], now: float) -> None:
        """Ask the sender, and tell all others, what is missing."""
        receiver = self.receiver
        assert self.origin is not None
        echo = (0, 0)
        if self.feedback is not None:
            echo = self.feedback.echo(now)
            self.feedback = self.feedback.answered(now, self.grtt, self.backoff)
        for requests in contents_for(needs, self._fec_id, self._segment):
            receiver.count("nacks_sent")
            receiver.say(Nack(receiver.node, 0, self.node, self.origin.instance_id, *echo, requests))

    def _send_ack(self, now: float) -> None:
        receiver, feedback = self.receiver, self.feedback
        assert feedback is not None
        assert self.origin is not None
        echo = feedback.echo(now)
        self.feedback = feedback.answered(now, self.grtt, self.backoff)
        receiver.count("acks_sent")
        receiver.say(Ack(receiver.node, 0, self.node, self.origin.instance_id, ACK_CC, 0, *echo))
