"""What a sender's messages change in a receiver when they belong to a stream (RFC 5740 5.3)."""

from contextlib import suppress

from protocols.events import ObjectOpened, ObjectReceived, info_received
from protocols.machine import Offer
from protocols.norm.messages import (
    FLAG_INFO,
    FLAG_REPAIR,
    FLAG_STREAM,
    Data,
    DataRun,
    Flush,
    Fti,
    Info,
    Nack,
    RepairAdv,
    Squelch,
)
from protocols.norm.nack_process import MissingRange, is_missing_before
from protocols.norm.position import Point, TransmitPosition
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import Item, Request
from protocols.norm.rx_stream import RxStream
from protocols.norm.sender_state import SenderMessage, SenderState
from protocols.norm.snapshot import feedback, object_received
from protocols.norm.stream_coding import HEADER_SIZE
from protocols.serial import ahead
from protocols.snapshot import Snapshot
from protocols.stream import StreamBroken

__all__ = ["StreamSenderState"]


class StreamSenderState(SenderState):
    """A `SenderState` that receives streams, too, if the application accepts them.

    Objects behind a stream may begin before it ends, so a stream keeps how much of it was sent (`RxStream.next_new`);
    while it is the last object that has begun, that is the position, too.
    """

    __slots__ = ()

    def resume(self, object_id: int, now: float) -> None:
        """Go on with a stream whose sink was full."""
        item = self.objects.get(object_id)
        if isinstance(item, RxStream):
            item.is_paused = False
            self._deliver(item)

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the sender, and of the objects of it that are not complete, at `now` seconds."""
        profile, sent = self._profile, self.received + self.lost
        values = {
            "data_received": self.received,
            "data_lost": self.lost,
            "duplicates": self.duplicates,
            "strangers": self.extras.strangers,
            "grtt": profile.grtt,
            "backoff_factor": profile.backoff,
            "group_size": profile.group_size,
            "silence": now - self.last_heard,
            **({"loss": self.lost / sent} if sent else {}),
        }
        states = {"activity": self._activity(), "nack": self._nack_state(now)}
        parts = [object_received(key, item, self.position) for key, item in self.objects.items()]
        fed_back = self.feedback_state()
        if fed_back is not None:
            parts.insert(0, feedback(fed_back))
        return Snapshot("sender", str(self.node), values, states, parts)

    def _activity(self) -> str:
        """Return the receiver's relation to the sender in a word."""
        return "silent" if not self.is_active else "active" if self.is_joined else "not joined"

    def _nack_state(self, now: float) -> str:
        """Return the state of the NACK process in a word."""
        process = self.nack_process
        if process is None or now >= process.holdoff_end:
            return "idle"
        if now >= process.backoff_end:
            return "hold-off"
        return "back-off" if process.suppressed_to is None else "suppressed"

    def store_run(self, run: DataRun, now: float) -> bool:
        """Store the symbols of a run that continue a stream; return whether they do."""
        item, position = self.objects.get(run.object_id), self.position
        if not isinstance(item, RxStream) or run.flags & FLAG_REPAIR or run.origin is not self.origin or not self.is_active:
            return False
        block, symbol = item.number(run.block), run.symbol
        if item.next_new != (block, symbol) or run.sequence != position.sequence & 0xFFFF or not _is_coded_as(item, run):
            return False
        if position.object_id != run.object_id or not (symbol or self.is_complete):
            return False
        item.write_all(block, symbol, run.symbols)
        symbol += len(run.symbols)
        next_new = (block, symbol) if symbol < item.fti.block else (block + 1, 0)
        item.next_new, self.last_heard = next_new, now
        behind = (run.object_id, *next_new)
        self.position = TransmitPosition(*behind, position.sequence + len(run.symbols), behind)
        self._deliver(item)
        return True

    # -- content ---------------------------------------------------------------------------------------------------

    def _on_info(self, message: Info, sequence: int, now: float) -> bool:
        if not message.flags & FLAG_STREAM:
            if isinstance(self.objects.get(message.object_id), RxStream):
                self.session.count("ignored")
                return False
            return super()._on_info(message, sequence, now)
        item = self._stream_of(message)
        return item is not None and self._on_stream_info(item, message, sequence, now)

    def _on_flush(self, message: Flush, sequence: int, now: float) -> bool:
        item = self.objects.get(message.object_id)
        if isinstance(item, RxStream):
            return self._on_stream_flush(item, message, sequence, now)
        return super()._on_flush(message, sequence, now)

    def _on_squelch(self, message: Squelch) -> None:
        super()._on_squelch(message)
        item = self.objects.get(message.object_id)
        if isinstance(item, RxStream):
            self._on_stream_squelch(item, message)

    def _on_stream(self, message: Data, sequence: int, now: float) -> bool:
        """NORM_DATA: store a segment, and deliver what follows."""
        item = self._stream_of(message)
        if item is None:
            return False
        if not _is_segment(item, message):
            self.session.count("ignored")
            return False
        block, symbol, length = item.number(message.block), message.symbol, item.fti.block
        is_parity, next_new = symbol >= length, item.next_new
        start = (block + 1, 0) if is_parity else (block, symbol)
        is_new = start > next_new if is_parity else start >= next_new
        is_repair = bool(message.flags & FLAG_REPAIR) or not (is_new or (is_parity and start == next_new))
        if is_new:
            if start != next_new:
                item.skip(*next_new, *start)
                self.is_complete = False
            item.next_new = start if is_parity else (block, symbol + 1) if symbol + 1 < length else (block + 1, 0)
        tx_point = (message.object_id, block, symbol) if is_repair else None
        self._move_behind(message, item, sequence, tx_point)
        self._keep(item, message, block, is_new)
        if tx_point is not None:
            self._rewind(tx_point, now)
        if not (is_new and next_new[1] and start[0] == next_new[0]):
            # Within a block there is nothing new to request.
            self.check((message.object_id, block, 0), now)
        return True

    def _keep(self, item: RxStream, message: Data, block: int, is_new: bool) -> None:
        """Store a symbol, or count it as a duplicate."""
        symbol, length, payload = message.symbol, item.fti.block, message.payload
        assert payload is not None
        if symbol >= length:
            if item.fti.m == 16 and len(payload) & 1:
                item.refuse_parity()
            is_useful = item.fill_parity(block, symbol - length, payload, self.session.config.buffer)
        elif is_new:
            item.write(block, symbol, payload)
            is_useful = True
        else:
            is_useful = item.fill(block, symbol, payload)
        self.duplicates += not is_useful
        if is_useful:
            self._deliver(item)

    def _deliver(self, item: RxStream) -> None:
        """Deliver what follows, and end the stream behind its last byte."""
        try:
            item.make_room()
            item.deliver()
            if item.has_ended:
                item.sink.commit(item.info or b"")
        except OSError as error:
            self._give_up([item.object_id], f"sink: {error}")
            return
        node, key = self.node, item.object_id
        while item.breaks:
            item.breaks -= 1
            self._note_loss(key)
            self.session.ports.notify(StreamBroken(node, key))
        if item.has_ended:
            del self.objects[key]
            self.session.note_end(item, None)
            self.session.ports.notify(ObjectReceived(node, key, item.delivered, item.info or b""))
        if not self.is_complete or item.has_ended:
            self._update_completeness()

    def _move_behind(self, message: SenderMessage, item: RxStream, sequence: int, tx_point: Point | None) -> None:
        """Set the position after a message of a stream."""
        position, key = self.position, item.object_id
        if position.object_id == key:
            next_new = (key, *item.next_new)
        else:
            next_new = (position.object_id, position.block, position.symbol)
            tx_point = tx_point or (key, *item.next_new)
        self._move(message, next_new, sequence, tx_point)

    def _on_stream_info(self, item: RxStream, message: Info, sequence: int, now: float) -> bool:
        """NORM_INFO: keep the stream's information."""
        start, is_repair = (message.object_id, 0, 0), bool(message.flags & FLAG_REPAIR)
        self._move_behind(message, item, sequence, start if is_repair else None)
        if item.takes_info(message.payload):
            item.info = message.payload
            self.session.ports.notify(info_received(message.origin.source_id, item.object_id, message.payload))
            self._update_completeness()
        if is_repair:
            self._rewind(start, now)
        return True

    def _on_stream_flush(self, item: RxStream, message: Flush, sequence: int, now: float) -> bool:
        """CMD(FLUSH): everything through this symbol was sent."""
        block, symbol = item.number(message.block), min(message.symbol + 1, item.fti.block)
        behind = (block, symbol) if symbol < item.fti.block else (block + 1, 0)
        if behind > item.next_new:
            item.skip(*item.next_new, *behind)
            item.next_new, self.is_complete = behind, False
        self._move_behind(message, item, sequence, None)
        self._deliver(item)
        self.check((message.object_id, *behind), now)
        return True

    def _on_stream_squelch(self, item: RxStream, message: Squelch) -> None:
        """CMD(SQUELCH): blocks before this one are not repaired."""
        block, position = item.number(message.block), self.position
        with suppress(OSError):
            # A sink that fails does so again below.
            item.give_up_before(min(block, item.next_new[0] + item.capacity))
        if position.object_id == item.object_id:
            self._set_next_new(item.object_id, *item.next_new)
        self._deliver(item)

    # -- the stream of a message -----------------------------------------------------------------------------------

    def _stream_of(self, message: Data | Info) -> RxStream | None:
        """Return the stream of a message; its first one opens it. None for one that is not wanted or has ended."""
        key, start = message.object_id, 0
        if self.session.stream_acceptor is not None and not self._join_new_sender(message, _part(message)):
            if message.flags & FLAG_REPAIR:
                return None
            # NRL's policy CURRENT: to join at any message of a stream.
            self._join(key, message.fec_id)
            start = message.block if isinstance(message, Data) else 0
        if not self.is_joined:
            return None
        if ahead(key, self.position.object_id) > 0:
            self._begin_objects(key)
        item = self.objects.get(key)
        if item is None and key in self.objects and message.fti is not None:
            return self._open_stream(message, message.fti, start)
        return item if isinstance(item, RxStream) else None

    def _open_stream(self, message: Data | Info, fti: Fti, start: int) -> RxStream | None:
        """Offer a stream that is received from the block `start` on to the application; None when it is not wanted."""
        key, node, config = message.object_id, message.origin.source_id, self.session.config
        acceptor, sink = self.session.stream_acceptor, None
        if fti.segment * fti.block > config.buffer:
            # Not even one of its blocks may be kept.
            self.session.count("ignored")
        elif acceptor is not None:
            self.session.ports.notify(ObjectOpened(node, key, fti.object_size))
            sink = acceptor(Offer(node, key, fti.object_size, False))
        if sink is None:
            del self.objects[key]
            self._note_loss(key)
            self._update_completeness()
            return None
        has_info = bool(message.flags & FLAG_INFO) and not start
        item = RxStream(key, fti, sink, has_info, start, config.buffer)
        if start and config.join != "beginning":
            # What the sender still keeps is requested, too.
            item = RxStream(key, fti, sink, has_info, max(0, start - item.capacity + 1), config.buffer)
        if self.session.is_silent:
            item.keep_at_most(config.silent_delay + 1)
        self.objects[key] = item
        self._profile = self._profile.with_coding(fti.fec_id, fti.segment, item.fti.usable)
        self._note_reliability(message)
        self._update_completeness()
        return item

    # -- requests --------------------------------------------------------------------------------------------------

    def has_all(self, flush: Flush) -> bool:
        """Return whether everything through the point that a FLUSH names is complete; of a stream, delivered."""
        item = self.objects.get(flush.object_id)
        if not isinstance(item, RxStream):
            return super().has_all(flush)
        return item.has_delivered(item.number(flush.block), flush.symbol) and not is_missing_before(
            self.objects, (flush.object_id, 0, 0)
        )

    def requested_repairs(self, nack: Nack | RepairAdv) -> RequestedRepairs:
        """Return what a NACK to this sender asks for, with the blocks of streams as they are numbered here."""
        streams = None if self.session.stream_acceptor is None else self._wrapped()
        if not streams:
            return super().requested_repairs(nack)
        requests = [
            Request(each.form, each.level, tuple(_numbered(item, streams) for item in each.items)) for each in nack.requests
        ]
        return requested_repairs(tuple(requests), self._profile.fec_id)

    def as_sent(self, missing: list[MissingRange]) -> list[MissingRange]:
        """Return what is missing with the blocks of streams as they are numbered on the wire."""
        streams = self._wrapped()
        if not streams:
            return missing
        found = []
        for each in missing:
            item = streams.get(each.first.object_id)
            first, last = each.first, each.last
            if item is not None:
                first, last = (end._replace(block=item.wire_number(end.block)) for end in (first, last))
            found.append(MissingRange(each.level, first, last, each.count, each.m))
        return found

    def _wrapped(self) -> dict[int, RxStream]:
        """Return the streams whose blocks may have other numbers here than on the wire."""
        return {key: item for key, item in self.objects.items() if isinstance(item, RxStream) and item.next_new[0] > 0x7F00}


def _numbered(item: Item, streams: dict[int, RxStream]) -> Item:
    stream = streams.get(item.object_id)
    return item if stream is None else item._replace(block=stream.number(item.block))


def _part(message: Data | Info) -> int:
    """Return the number of symbols sent before a message of a stream, as far as its numbers show."""
    if isinstance(message, Info) or message.fti is None:
        return 0
    return message.block * message.fti.block + min(message.symbol, message.fti.block)


def _is_coded_as(item: RxStream, message: Data | DataRun) -> bool:
    return message.fti is item.wire_fti or message.fti is None or message.fti == item.wire_fti


def _is_segment(item: RxStream, message: Data) -> bool:
    """Return whether a message is a symbol of the stream, of an allowed length."""
    if not _is_coded_as(item, message) or message.payload is None:
        return False
    return message.symbol < item.fti.block + item.fti.parity and HEADER_SIZE <= message.length <= item.fti.segment + HEADER_SIZE
