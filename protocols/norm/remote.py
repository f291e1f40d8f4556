"""What a receiver knows of one sender: where it stands, what is missing, and how each of its messages changes that."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from protocols.events import InfoReceived, ObjectAborted, ObjectOpened, ObjectReceived, SenderReset, SenderSilent
from protocols.machine import Offer
from protocols.norm.cycle import NackCycle
from protocols.norm.demand import demand_of
from protocols.norm.feedback import Feedback
from protocols.norm.incoming import Incoming
from protocols.norm.messages import (
    FLAG_FILE,
    FLAG_INFO,
    FLAG_REPAIR,
    FLAG_STREAM,
    Ack,
    Command,
    Data,
    Flush,
    Fti,
    Info,
    Nack,
    NormMessage,
    Origin,
    Position,
    Probe,
    Squelch,
)
from protocols.norm.needs import Need, Place, contents_for, needs_before
from protocols.norm.quantise import gsize_value, rtt_seconds
from protocols.serial import ahead

if TYPE_CHECKING:
    from protocols.norm.receiver import NormReceiver

__all__ = ["RemoteSender"]

UNKNOWN_SEGMENT = 40
"""Bytes of requests in one NACK while the sender's segment size is unknown, as in NRL NORM."""
JUST_BEGUN = 64
"""A sender that has sent fewer messages than this has just begun: to catch up costs at most as many repairs."""
EMPTY_BLOCK = 0xFFFF
"""From this block number on a FLUSH may speak of an object without any symbol."""
SILENCES = 20
"""Activity periods without a word after which a sender counts as silent (RFC 5740 5.3, NRL's robust factor)."""


class RemoteSender:
    """One sender as one receiver sees it.

    `at` is the place behind the last first transmission heard; `objects` holds what is incomplete of everything before it,
    None for an object of which nothing is known. An object that is not in `objects` is complete, unwanted or given up.
    """

    __slots__ = (
        "_base",
        "_cycle",
        "_fec_id",
        "_feedback",
        "_idle_at",
        "_rewound",
        "_rewound_at",
        "_segment",
        "_silences",
        "_synced",
        "at",
        "backoff",
        "grtt",
        "gsize",
        "heard",
        "lost",
        "node",
        "objects",
        "origin",
        "parity",
        "receiver",
    )

    def __init__(self, receiver: "NormReceiver", node: int) -> None:
        self.receiver = receiver
        self.node = node
        self.origin: Origin | None = None
        self.grtt = 0.0
        self.backoff = 0
        self.gsize = 1.0
        self.parity = 0
        self.heard = -inf
        self.lost = 0
        self.at = Position(0, 0, 0, 0)
        self.objects: dict[int, Incoming | None] = {}
        self._base = 0
        self._synced = False
        self._fec_id = 5
        self._segment = UNKNOWN_SEGMENT
        self._rewound: Place = (0, 0, 0)
        self._rewound_at = -1
        self._cycle: NackCycle | None = None
        self._feedback: Feedback | None = None
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
            self._idle_at = now + self._period()
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
        self._move(message, self.at.object_id, self.at.block, self.at.symbol, sequence)

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Another receiver's feedback to this sender."""
        if self.origin is None or message.instance_id != self.origin.instance_id:
            return
        if self._feedback is not None and (message.response_sec or message.response_usec):
            self._feedback.overheard()
        if self._cycle is not None and isinstance(message, Nack):
            self._cycle.overhear(demand_of(message, self._fec_id), now)

    def wake(self, now: float) -> None:
        """Whatever of NACK, answer and activity check is due."""
        if self._cycle is not None and self._cycle.due <= now:
            self._cycle.expire(now)
        if self._feedback is not None and self._feedback.due <= now:
            self._send_ack(now)
        if self._idle_at <= now:
            self._check_activity(now)

    @property
    def due(self) -> float:
        """When `wake` is wanted."""
        due = self._idle_at
        if self._cycle is not None and self._cycle.due < due:
            due = self._cycle.due
        if self._feedback is not None and self._feedback.due < due:
            due = self._feedback.due
        return due

    @property
    def received(self) -> int:
        """Messages of this sender that arrived, by their sequence numbers."""
        return self.at.sequence - self._base - self.lost

    # -- the sender's timing ---------------------------------------------------------------------------------------

    def _retime(self, message: Data | Info | Command) -> None:
        known, origin = self.origin, message.origin
        if known is None or known.instance_id != origin.instance_id:
            if known is not None:
                self._reset()
            # Sequence numbers count from the first message heard; what an earlier instance sent stays counted.
            sequence = message.after.sequence - 1 if message.after is not None else message.sequence
            self._base += sequence - self.at.sequence
            self.at = Position(0, 0, 0, sequence)
        self.origin = origin
        self.grtt = rtt_seconds(origin.grtt)
        self.backoff = origin.backoff
        self.gsize = float(gsize_value(origin.gsize))

    def _reset(self) -> None:
        """The sender restarted: what it had not finished will not come any more."""
        self._give_up(list(self.objects), "the sender restarted")
        self.receiver.ports.notify(SenderReset(self.node))
        self._synced = False
        self._cycle = self._feedback = None
        self._rewound_at = -1

    def _period(self) -> float:
        return max(1.0, 2 * self.receiver.config.robust * self.grtt)

    def _check_activity(self, now: float) -> None:
        period = self._period()
        if self.heard + period > now:
            self._silences = 0
            self._idle_at = self.heard + period
            return
        self._silences += 1
        if self._silences >= SILENCES:
            self._idle_at = inf
            # A copy, so that the next message takes the slow path and starts the activity check again.
            self.at = Position(self.at.object_id, self.at.block, self.at.symbol, self.at.sequence)
            self.receiver.ports.notify(SenderSilent(self.node))
            return
        self._idle_at = now + period
        self._check((self.at.object_id, self.at.block, self.at.symbol), now)

    # -- places ----------------------------------------------------------------------------------------------------

    def place(self) -> Place:
        """Where the sender transmits: at its last repair, if that was the last message heard, else at the front."""
        at = self.at
        if self._rewound_at == at.sequence:
            return self._rewound
        return at.object_id, at.block, at.symbol

    def boundary(self) -> Place:
        """Up to where a NACK asks: `place`, but not into a block still under way that parity can repair when it is over."""
        object_id, block, symbol = self.place()
        item = self.objects.get(object_id)
        return (object_id, block, 0 if item is not None and item.usable_parity else symbol)

    def lacks_before(self, place: Place) -> bool:
        """Is anything missing before `place`?"""
        return bool(self.objects) and next(needs_before(self.objects, place), None) is not None

    def _move(self, message: NormMessage, object_id: int, block: int, symbol: int, sequence: int) -> None:
        """Stand at this place; in the sender's own `Position` when it is the same, so that the fast path fits again."""
        after = message.after
        if after is not None:
            if after.block == block and after.symbol == symbol and after.object_id == object_id:
                self.at = after
                return
            sequence = after.sequence
        self.at = Position(object_id, block, symbol, sequence)

    def _open_through(self, object_id: int) -> None:
        """The sender has come to this object: everything before it was sent, and what did not come is missing."""
        self._finish_current()
        first = (self.at.object_id + 1) & 0xFFFF
        count = ahead(object_id, first)
        window = self.receiver.config.window
        if count + len(self.objects) >= window:
            oldest = [key for key in self.objects if ahead(object_id, key) >= window]
            self._give_up(oldest, "outside the window")
            skipped = max(count - window + 1, 0)
            first, count = (first + skipped) & 0xFFFF, count - skipped
        for step in range(count + 1):
            self.objects[(first + step) & 0xFFFF] = None

    def _finish_current(self) -> None:
        at = self.at
        item = self.objects.get(at.object_id)
        if item is not None and at.block < item.fti.partition.blocks:
            item.skip(at.block, at.symbol, item.fti.partition.blocks, 0)

    # -- content ---------------------------------------------------------------------------------------------------

    def _sync(self, message: Data | Info) -> bool:
        """Join at the first object whose beginning is heard (NRL's policy CURRENT), or with a sender that has just begun."""
        if self._synced:
            return True
        part = 0
        if isinstance(message, Data):
            part = message.block if message.fti is None else message.fti.partition.first(message.block)
        if not self._join_start(message, part) and not message.flags & FLAG_REPAIR and not part:
            self._join(message.object_id)
        return self._synced

    def _join_start(self, message: Data | Info | Flush, part: int) -> bool:
        """Join at object 0 if the sender's few messages so far hold no more than this object's `part` and those before it.

        Otherwise a receiver that was there all the time, but lost the one INFO or DATA message it may join at, would miss a
        small object without a word. A sender's ids and sequence numbers begin at 0, NRL's too.
        """
        if message.object_id + part <= message.sequence < JUST_BEGUN:
            self._join(0)
        return self._synced

    def _join(self, object_id: int) -> None:
        self._synced = True
        self.objects[object_id] = None
        self.at = Position(object_id, 0, 0, self.at.sequence)

    def _locate(self, message: Data | Info) -> int | None:
        """How far the message's object is before (< 0) or at (0) the front, after opening what is new; None: not for us."""
        if message.flags & FLAG_STREAM or not self._sync(message):
            return None
        order = ahead(message.object_id, self.at.object_id)
        if order > 0:
            self._open_through(message.object_id)
            self.at = Position(message.object_id, 0, 0, self.at.sequence)
            order = 0
        return order

    def _item(self, message: Data | Info) -> Incoming | None:
        """The object of the message if it is incomplete; opened with its first message."""
        key = message.object_id
        item = self.objects.get(key)
        if item is not None or key not in self.objects or message.fti is None:
            return item
        fti = message.fti
        offer = Offer(self.node, key, fti.object_size, bool(message.flags & FLAG_FILE))
        self.receiver.ports.notify(ObjectOpened(self.node, key, fti.object_size))
        sink = self.receiver.ports.accept(offer)
        if sink is None:
            del self.objects[key]
            return None
        item = self.objects[key] = Incoming(key, fti, sink, bool(message.flags & FLAG_INFO))
        partition, at = fti.partition, self.at
        if key != at.object_id or at.block >= partition.blocks:
            item.skip(0, 0, partition.blocks, 0)
        else:
            item.skip(0, 0, at.block, at.symbol)
        self._fec_id, self._segment, self.parity = fti.fec_id, fti.segment, item.usable_parity
        return item

    def _on_info(self, message: Info, sequence: int, now: float) -> bool:
        order = self._locate(message)
        if order is None:
            return False
        item = self._item(message)
        at = self.at
        self._move(message, at.object_id, at.block, at.symbol, sequence)
        if item is not None and item.info is None:
            item.info = message.payload
            self.receiver.ports.notify(InfoReceived(self.node, message.object_id, message.payload))
            self._complete(item)
        if message.flags & FLAG_REPAIR:
            self._rewind((message.object_id, 0, 0), now)
        self._check((message.object_id, 0, 0), now)
        return True

    def _on_data(self, message: Data, sequence: int, now: float) -> bool:
        order = self._locate(message)
        if order is None:
            return False
        item = self._item(message)
        fti = item.fti if item is not None else message.fti
        if fti is None or not _fits(message, fti):
            self.receiver.ignored += 1
            return False
        block, symbol, length = message.block, message.symbol, fti.partition.length(message.block)
        at = self.at
        front = (at.block, at.symbol)
        fresh = order == 0 and ((block, symbol) >= front if symbol < length else block >= at.block)
        smooth = fresh and (block, symbol) == front
        if fresh:
            to_block, to_symbol = (block, symbol) if symbol < length else (block + 1, 0)
            if item is not None and (to_block, to_symbol) != front:
                item.skip(*front, to_block, to_symbol)
            if symbol < length:
                to_block, to_symbol = (block, symbol + 1) if symbol + 1 < length else (block + 1, 0)
            self._move(message, message.object_id, to_block, to_symbol, sequence)
        else:
            self._move(message, at.object_id, at.block, at.symbol, sequence)
        self._take(item, message, length, fresh)
        if smooth and symbol:
            return True
        # Parity sent unasked comes right behind its block and is no step back.
        trailing = symbol >= length and (block + 1, 0) == front
        if message.flags & FLAG_REPAIR or not (fresh or trailing):
            self._rewind((message.object_id, block, symbol), now)
        self._check((message.object_id, block, 0), now)
        return True

    def _take(self, item: Incoming | None, message: Data, length: int, fresh: bool) -> None:
        """Put the symbol where it belongs."""
        if item is None:
            self.receiver.duplicates += not fresh
            return
        block, symbol = message.block, message.symbol
        try:
            if symbol >= length:
                used = item.fill_parity(block, symbol - length, message.payload, self.receiver.config.buffer)
            elif fresh:
                item.write(block, symbol, message.payload)
                used = True
            else:
                used = item.fill(block, symbol, message.payload)
        except OSError as error:
            self._abort(item, f"sink: {error}")
            return
        if not used:
            self.receiver.duplicates += 1
        elif not fresh or self.at.block >= item.fti.partition.blocks:
            self._complete(item)

    def _complete(self, item: Incoming) -> None:
        """Hand the object over if nothing is missing and nothing is to come."""
        if not item.clean:
            return
        at = self.at
        if at.object_id != item.object_id or at.block >= item.fti.partition.blocks:
            try:
                item.sink.commit(item.info or b"")
            except OSError as error:
                self._abort(item, f"sink: {error}")
                return
            del self.objects[item.object_id]
            self.receiver.objects_received += 1
            event = ObjectReceived(self.node, item.object_id, item.fti.object_size, item.info or b"")
            self.receiver.ports.notify(event)
        if self._cycle is not None and all(other is not None and other.clean for other in self.objects.values()):
            self._cycle.relax()

    def _abort(self, item: Incoming, reason: str) -> None:
        self._give_up([item.object_id], reason)

    def _give_up(self, keys: list[int], reason: str) -> None:
        """These objects will not be complete."""
        for key in keys:
            item = self.objects.pop(key)
            if item is not None:
                try:
                    item.sink.abort()
                except OSError as error:
                    reason = f"{reason}; sink: {error}"
            self.receiver.objects_aborted += 1
            self.receiver.ports.notify(ObjectAborted(self.node, key, reason))

    # -- commands --------------------------------------------------------------------------------------------------

    def _on_flush(self, message: Flush, sequence: int, now: float) -> bool:
        part = 0 if message.block >= EMPTY_BLOCK else message.block
        if not self._synced and not self._join_start(message, part):
            return False
        order = ahead(message.object_id, self.at.object_id)
        if order > 0:
            self._open_through(message.object_id)
            self.at = Position(message.object_id, 0, 0, self.at.sequence)
        at = self.at
        block, symbol = at.block, at.symbol
        item = self.objects.get(at.object_id)
        if order >= 0:
            # A flush goes through the end of a block; of an object of which nothing came it tells at least that much.
            to = message.block + 1
            if item is not None:
                to = min(to, item.fti.partition.blocks)
                if to > block:
                    item.skip(block, symbol, to, 0)
            if to > block:
                block, symbol = to, 0
        self._move(message, at.object_id, block, symbol, sequence)
        if self.objects:
            self._check((message.object_id, message.block + 1, 0), now)
        return True

    def _on_squelch(self, message: Squelch, sequence: int, now: float) -> bool:
        if not self._synced:
            return False
        gone = [key for key in self.objects if ahead(key, message.object_id) < 0 or key in message.invalid]
        if ahead(message.object_id, self.at.object_id) > 0:
            self.at = Position(message.object_id, 0, 0, self.at.sequence)
            self.objects[message.object_id] = None
        self._give_up(gone, "squelched")
        at = self.at
        self._move(message, at.object_id, at.block, at.symbol, sequence)
        return True

    def _on_probe(self, message: Probe, sequence: int, now: float) -> bool:
        if self._feedback is None:
            self._feedback = Feedback()
        self._feedback.probed(message, now, self.grtt, self.backoff, self.gsize, self.receiver.ports.rng)
        return False

    # -- feedback --------------------------------------------------------------------------------------------------

    def _check(self, place: Place, now: float) -> None:
        """Begin to ask for what is missing before `place`."""
        if self._cycle is None:
            if not self.lacks_before(place):
                return
            self._cycle = NackCycle(self)
        self._cycle.check(now, place)

    def _rewind(self, place: Place, now: float) -> None:
        self._rewound = place
        self._rewound_at = self.at.sequence
        if self._cycle is not None:
            self._cycle.rewind(place, now)

    def send_nack(self, needs: list[Need], now: float) -> None:
        """Ask the sender, and tell all others, what is missing."""
        receiver = self.receiver
        assert self.origin is not None
        echo = (0, 0)
        if self._feedback is not None:
            echo = self._feedback.echo(now)
            self._feedback.answered(now, self.grtt, self.backoff)
        for requests in contents_for(needs, self._fec_id, self._segment):
            receiver.nacks_sent += 1
            receiver.say(Nack(receiver.node, 0, self.node, self.origin.instance_id, *echo, requests))

    def _send_ack(self, now: float) -> None:
        receiver, feedback = self.receiver, self._feedback
        assert feedback is not None
        assert self.origin is not None
        echo = feedback.echo(now)
        feedback.answered(now, self.grtt, self.backoff)
        receiver.acks_sent += 1
        receiver.say(Ack(receiver.node, 0, self.node, self.origin.instance_id, ACK_CC, 0, *echo))


ACK_CC = 1

HANDLERS: dict[type[NormMessage], Callable[[RemoteSender, Any, int, float], bool]] = {
    Data: RemoteSender._on_data,
    Info: RemoteSender._on_info,
    Flush: RemoteSender._on_flush,
    Squelch: RemoteSender._on_squelch,
    Probe: RemoteSender._on_probe,
}
"""Each returns True when it has moved `at` itself."""


def _fits(message: Data, fti: Fti) -> bool:
    """Is the symbol one of its object, with the right number of bytes?"""
    if message.fti is not None and message.fti is not fti and message.fti != fti:
        return False
    partition = fti.partition
    if message.block >= partition.blocks:
        return False
    length = partition.length(message.block)
    if message.symbol >= length:
        return message.symbol - length < fti.parity and message.length == partition.vector(message.block)
    return message.length == partition.payload(partition.first(message.block) + message.symbol)
