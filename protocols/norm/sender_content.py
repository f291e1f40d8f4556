"""The content of a NORM sender: objects and streams that are submitted, enter the window, end or fail (RFC 5740 5.1)."""

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import islice
from math import inf

from protocols.acknowledgement import AckRequest
from protocols.batches import Background
from protocols.errors import UsageError
from protocols.events import ObjectAborted, ObjectPurged
from protocols.machine import Content, Ports, Sender
from protocols.norm.ack_collector import check_request
from protocols.norm.config import NormConfig
from protocols.norm.grtt import GrttEstimator
from protocols.norm.immediate_repairs import ImmediateTxObject
from protocols.norm.message_factory import MessageFactory
from protocols.norm.messages import Origin
from protocols.norm.quantise import gsize_code
from protocols.norm.sender_control import SenderControl
from protocols.norm.supply import Supply
from protocols.norm.tx_object import HeldBlock, TxObject, check_content
from protocols.norm.tx_stream import TxStream, check_stream
from protocols.norm.window import IDS, Window, without
from protocols.serial import before
from protocols.stream import Flush, StreamSettings, StreamVacant

__all__ = ["SenderContent"]


class SenderContent(Sender):
    """What a sender has to send: `_unsent` objects and `_repairs`, those in the window or waiting for room in it.

    The methods `_make_factory`, `_make_object` and `_invalidate` are hooks for subclasses.
    """

    __slots__ = (
        "_background",
        "_config",
        "_control",
        "_factory",
        "_failed",
        "_flush_at",
        "_flushes",
        "_grtt",
        "_held_block",
        "_next_id",
        "_repairs",
        "_squelch",
        "_streams",
        "_unsent",
        "_window",
        "supply",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, instance: int) -> None:
        super().__init__(ports)
        self._config = config
        self._grtt = GrttEstimator(config)
        self._factory = self._make_factory(Origin(node, instance, self._grtt.code, config.backoff, gsize_code(config.gsize)))
        self._window = Window(config)
        self._held_block = HeldBlock()
        self._unsent: deque[TxObject] = deque()
        self._repairs: list[TxObject] = []
        # The streams in the window or its backlog.
        self._streams: dict[int, TxStream] = {}
        self._next_id = 0
        self._background: Background | None = None
        # How many FLUSH were sent since the last content, and when the next one is due; inf for none or not yet known.
        self._flushes, self._flush_at = 0, inf
        # The objects that a SQUELCH is to list; None while none is to be sent.
        self._squelch: set[int] | None = None
        self._failed = False
        self.supply: Supply | None = None
        """Gives the sender its objects; None where they are submitted as they come."""
        self._control = SenderControl(config, self._factory, self._window, ports.notify)

    @abstractmethod
    def _schedule(self) -> None:
        """Set the deadline after a change of what there is to send."""

    def _invalidate(self) -> None:
        """Prepare for a change of what is sent next that is not due to time. Here there is nothing to prepare."""

    def submit(self, content: Content, now: float) -> int:
        """Queue an object; it is sent as soon as the window has room for it.

        UsageError when NORM can't carry it, and while streams have all object ids.
        """
        check_content(self._config, content)
        item = self._make_object(self._free_id(), content)
        item.held_block = self._held_block
        return self._queue(item, now)

    def _free_id(self) -> int:
        """Return the id of the next object, which no stream has that is still open or repaired.

        Other objects leave the window in the order of their ids, so none of them is there when its id comes again.
        """
        if len(self._streams) >= IDS:
            raise UsageError(f"streams have all {IDS} object ids; close one")
        while self._next_id in self._streams:
            self._next_id = (self._next_id + 1) % IDS
        return self._next_id

    def _queue(self, item: TxObject, now: float) -> int:
        """Queue an object that has the next id; it is sent when the window has room for it."""
        self._next_id = (self._next_id + 1) % IDS
        item.background = self._background
        self._window.backlog.append(item)
        self._admit(now)
        self._schedule()
        return item.object_id

    def open_stream(self, settings: StreamSettings, now: float) -> int:
        """Begin a stream. UsageError as for `submit`."""
        check_stream(settings, self._config)
        if self._config.fti != "always":
            raise UsageError(f"a stream can't be sent with fti {self._config.fti}; its messages describe it themselves")
        item = TxStream(self._free_id(), settings, self._config, self._factory.origin.source_id)
        self._streams[item.object_id] = item
        return self._queue(item, now)

    def write_stream(self, object_id: int, data: bytes, starts: Sequence[int], now: float) -> int:
        """Take bytes of a stream; return how many. Raises UsageError if it is not open, as all that follow."""
        item = self._stream(object_id)
        taken = item.write(data, starts, now, self._rest)
        self._continue(item)
        return taken

    def flush_stream(self, object_id: int, mode: Flush, now: float) -> None:
        """Send what does not fill a segment; "active": and FLUSH behind it."""
        item = self._stream(object_id)
        if mode != "none":
            item.flush()
        if mode == "active":
            item.mark_flush()
            self._flushes, self._flush_at = 0, inf
        self._continue(item)

    def close_stream(self, object_id: int, graceful: bool, now: float) -> None:
        """End a stream behind its last byte, or drop it: then receivers that miss something get a SQUELCH."""
        item = self._stream(object_id)
        if not graceful and object_id in self._window.objects:
            self._drop(item)
        elif not graceful:
            self._window.backlog.remove(self._streams.pop(object_id))
        elif item.close(now, self._rest):
            self._flushes, self._flush_at = 0, inf
        else:
            item.is_waiting = True
        self._continue(item)

    def require_acks(self, object_id: int, request: AckRequest, now: float) -> None:
        """Ask receivers to confirm everything through an object, or through what was written of a stream (RFC 5740 5.5.3).

        UsageError for an object that was purged or is not known, and for what does not fit a FLUSH.
        """
        item = self._window.objects.get(object_id) or next(
            (each for each in self._window.backlog if each.object_id == object_id), None
        )
        if item is None:
            raise UsageError(f"object {object_id} is not there to be acknowledged")
        check_request(request)
        self._invalidate()
        if isinstance(item, TxStream):
            if item.is_open:
                item.flush()
            if item.written_end < (0, 0):
                raise UsageError(f"nothing was written to stream {object_id}")
            self._continue(item)
        self._control.acks.require(item, request, now)
        self._settle_control()

    def cancel_acks(self, object_id: int, now: float) -> None:
        """Await no more ACKs of an object; nodes that have not answered count as missing."""
        self._invalidate()
        self._control.acks.cancel(object_id, now)
        self._settle_control()

    def send_command(self, content: bytes, copies: int, now: float) -> int:
        """Send CMD(APPLICATION) so often, 0: `robust` times, and return its id. UsageError if it is longer than a segment."""
        if len(content) > self._config.segment:
            raise UsageError(f"a command of {len(content)} bytes; at most one segment ({self._config.segment})")
        self._invalidate()
        command_id = self._control.command(content, copies, now)
        self._settle_control()
        return command_id

    def cancel_command(self, command_id: int, now: float) -> bool:
        """Send no more copies of a command; return False if all have been sent."""
        self._invalidate()
        found = self._control.cancel_command(command_id, now)
        self._settle_control()
        return found

    def _settle_control(self) -> None:
        self._control.update()
        self._schedule()

    def _stream(self, object_id: int) -> TxStream:
        item = self._streams.get(object_id)
        if item is None or not item.is_open or item.is_closing:
            raise UsageError(f"object {object_id} is not an open stream")
        return item

    def _continue(self, item: TxStream) -> None:
        """Send what a stream has to send."""
        if item.unsent and item.object_id in self._window.objects and item not in self._unsent:
            self._insert_unsent(item)
        self._schedule()

    def _insert_unsent(self, item: TxObject) -> None:
        """Have an object of the window sent, in the order of ids."""
        later = [place for place, other in enumerate(self._unsent) if before(item.object_id, other.object_id)]
        self._unsent.insert(later[0] if later else len(self._unsent), item)

    def _offer_room(self, now: float) -> bool:
        """Notify applications that wait for room in a stream when there is some, or end it; return whether one has ended."""
        has_ended = False
        for item in self._streams.values():
            if item.is_waiting and item.vacant_at(self._rest) <= now:
                item.is_waiting = False
                if not item.is_closing:
                    self.ports.notify(StreamVacant(item.object_id))
                elif item.close(now, self._rest):
                    self._flushes, self._flush_at, has_ended = 0, inf, True
                    self._continue(item)
        return has_ended

    def compute_in(self, background: Background) -> None:
        """Encode parity in another thread before it is sent."""
        self._background = background

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the objects kept for repair, and the most blocks kept of a stream."""
        blocks = max([(stream.held, stream.capacity) for stream in self._streams.values()], default=(0, 0))
        return {"objects in the window": (len(self._window.objects), self._config.cache_max), "stream blocks": blocks}

    @property
    def _rest(self) -> float:
        """Seconds for which what was sent or requested is kept for repairs."""
        return self._config.flow * (self._config.backoff + 1) * self._grtt.advertised

    def make_room(self, now: float) -> None:
        """Purge old objects as their supply needs it, now or as soon as they need not be kept."""
        self._admit(now)
        self._schedule()

    @property
    def _needs_room(self) -> bool:
        """Whether anything waits for the oldest objects to be purged."""
        return bool(self._window.backlog) or (self.supply is not None and self.supply.is_short)

    def _purged(self, item: TxObject, now: float) -> None:
        self._streams.pop(item.object_id, None)
        self.ports.notify(ObjectPurged(item.object_id))
        if self.supply is not None:
            self.supply.purged(item.object_id, now)

    def _admit(self, now: float) -> None:
        while self.supply is not None and self.supply.is_short and self._window.vacancy_at(self._rest) <= now:
            self._purged(self._window.drop_oldest(), now)
        for purged, admitted in self._window.admit(now, self._rest):
            if purged is not None:
                self._purged(purged, now)
            elif admitted is not None:
                if admitted.unsent:
                    self._unsent.append(admitted)
                self._control.acks.replaced_flush = None
                self._flushes, self._flush_at = 0, inf

    def _fail(self, item: TxObject, reason: str) -> None:
        """Drop an object whose source can't be read; receivers that request it get a SQUELCH.

        Nothing behind the last object would make them request it, so that one is squelched unrequested.
        """
        self._drop(item)
        self.ports.notify(ObjectAborted(self._factory.origin.source_id, item.object_id, f"source: {reason}"))

    def _drop(self, item: TxObject) -> None:
        """Remove an object from the window."""
        if next(reversed(self._window.objects)) == item.object_id:
            self._squelch = {item.object_id} | (self._squelch or set())
        self._failed = True
        self._window.drop(item.object_id)
        self._streams.pop(item.object_id, None)
        self._unsent = without(self._unsent, item)
        self._repairs = [other for other in self._repairs if other is not item]

    def _has_end(self) -> bool:
        """Return whether an end of transmission is to be announced, or was."""
        if self._streams and not self._failed:
            return bool(self._ends())
        return bool(self._window.objects or self._flushes or self._failed)

    def _ends(self) -> list[TxObject]:
        """Return the objects that FLUSH names in turn: the last one, and streams that wait for it."""
        if not self._streams:
            return list(islice(reversed(self._window.objects.values()), 1))
        last = [item for item in self._window.objects.values() if not item.is_open][-1:]
        return [*last, *(stream for stream in self._streams.values() if stream.is_open and stream.wants_flush)]

    def _make_factory(self, origin: Origin) -> MessageFactory:
        return MessageFactory(self._config, origin)

    def _make_object(self, object_id: int, content: Content) -> TxObject:
        make = TxObject if self._config.repair == "gathered" else ImmediateTxObject
        return make(object_id, content, self._config, self._factory.origin.source_id)
