"""The objects of one sender that are pending at one receiver: begun, opened, stored, finished and given up (RFC 5740 5.3)."""

from functools import lru_cache
from typing import Final

from protocols.content import LATER
from protocols.events import ObjectAborted, ObjectOpened, ObjectReceived, ObjectsAborted, info_received
from protocols.machine import Offer
from protocols.norm.maps import SmallDict
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, FLAG_UNRELIABLE, Data, Flush, Fti, Info, Origin
from protocols.norm.nack_process import NackProcess
from protocols.norm.position import START, TransmitPosition
from protocols.norm.rx_object import RxObject
from protocols.norm.sender_extras import ExtraState
from protocols.norm.sender_profile import unknown_sender
from protocols.norm.sender_requests import SenderRequests
from protocols.norm.session import Session
from protocols.serial import ahead

__all__ = ["PendingObjects"]


FARTHEST: Final = 0x7FFF
"""Objects that an incomplete one may be behind the last, at the most: object ids are serial numbers of 16 bits."""
# Equal for thousands of receivers of a simulation: a lookup costs a tenth of a construction, and they share one object.
_opened: Final = lru_cache(maxsize=256)(ObjectOpened)
_received: Final = lru_cache(maxsize=256)(ObjectReceived)
_offer: Final = lru_cache(maxsize=256)(Offer)


class PendingObjects(ExtraState):
    """What one receiver has of the objects of one sender.

    `position` is where the sender is, as far as known: behind the last new symbol received. `objects` holds what is incomplete
    of everything before it, None for an object of which nothing is known. An object that is not in `objects` is complete,
    unwanted or given up.
    """

    __slots__ = (
        "_profile",
        "duplicates",
        "is_complete",
        "nack_process",
        "objects",
        "origin",
        "position",
        "session",
    )

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.origin: Origin | None = None
        """Node, instance and advertised timing of the sender; None before its first message."""
        self.position: TransmitPosition = START
        self.objects: SmallDict[RxObject | None] = SmallDict()
        self.is_complete = True
        """Whether nothing is missing of what was sent."""
        self.nack_process: NackProcess | None = None
        """Requests what is missing; None when nothing is."""
        self.duplicates = 0
        """Content that was of no use."""
        self._profile = unknown_sender()
        if session.config.expire:
            self.change_extras().ages = {}

    @property
    def node(self) -> int:
        """The sender's node id; it must have sent a message."""
        assert self.origin is not None
        return self.origin.source_id

    def held(self) -> tuple[int, int]:
        """Return how many objects are pending, and the most bytes of parity kept for one of them."""
        items = self.objects.values()
        return len(items), max([item.held for item in items if item is not None], default=0)

    def _expire_objects(self, ages: dict[int, float], now: float) -> None:
        """Give up the objects that have been incomplete for too long. Called once in an activity period."""
        pending = [key for key, item in self.objects.items() if item is None or not item.is_stream]
        self.change_extras().ages = ages = {key: ages.get(key, now) for key in pending}
        self._give_up([key for key in pending if ages[key] + self.session.config.expire <= now], "expired")

    def abandon(self, object_id: int, reason: str) -> None:
        """Give up an object, unless it has ended already."""
        if object_id in self.objects:
            self._give_up([object_id], reason)

    def _advance_to(self, object_id: int) -> bool:
        """Begin this object if it is a new one; return whether it is the last the sender began."""
        order = ahead(object_id, self.position.object_id)
        if order > 0:
            self._begin_objects(object_id)
        return order >= 0

    def _begin_objects(self, object_id: int) -> None:
        """Begin the objects through this one: everything before it was sent, and what did not arrive is missing."""
        position = self.position
        item = self.objects.get(position.object_id)
        if item is not None and not item.is_stream and position.block < item.fti.partition.blocks:
            item.skip(position.block, position.symbol, item.fti.partition.blocks, 0)
        first = (position.object_id + 1) & 0xFFFF
        count = ahead(object_id, first)
        if self.objects:
            self._give_up_distant(object_id, count)
        if self.extras.modes is not None and self.extras.modes.of:
            self.extras.modes.forget_ended(self.objects, position.object_id)
        skipped = max(count - self.session.window + 1, 0)
        if skipped:
            self._tell_aborted(first, skipped, "outside the window")
            first, count = (first + skipped) & 0xFFFF, count - skipped
        for step in range(count + 1):
            self.objects[(first + step) & 0xFFFF] = None
        self.is_complete = False
        self._set_next_new(object_id)

    def _give_up_distant(self, object_id: int, count: int) -> None:
        """Give up what is too far before this object, when `count` others begin with it.

        That is what is outside the window once so many are pending, of a silent receiver at once, but for streams: nothing of
        them need be missing. Beyond `FARTHEST` an id would be that of an object to come.
        """
        session, oldest = self.session, next(iter(self.objects))
        limit = session.config.window
        if count + len(self.objects) < limit:
            limit = FARTHEST
            if not session.is_silent and (object_id - oldest) & 0xFFFF < limit:
                return
        file_limit = session.window if session.is_silent else limit
        distant = [
            key
            for key, item in self.objects.items()
            if (object_id - key) & 0xFFFF >= (limit if item is not None and item.is_stream else file_limit)
        ]
        self._give_up(distant, "outside the window")

    def _set_next_new(self, object_id: int, block: int = 0, symbol: int = 0) -> None:
        """Set the next new symbol while a message is being handled."""
        self.position = TransmitPosition(object_id, block, symbol, self.position.sequence, (object_id, block, symbol))

    def _object_of(self, message: Data | Info) -> RxObject | None:
        """Return the object of a message if it is incomplete; its first message opens it."""
        key, fti = message.object_id, message.fti or self.session.preset
        item = self.objects.get(key)
        if item is not None or key not in self.objects or fti is None:
            return item
        self._profile = self._profile.with_coding(self._profile.fec_id, fti.segment, self._profile.parity)
        self._note_reliability(message)
        return self._open(key, fti, bool(message.flags & FLAG_FILE), bool(message.flags & FLAG_INFO))

    def _note_reliability(self, message: Data | Info) -> None:
        """Request nothing of the object of a message that says that it is not repaired (RFC 5740 4.2.1)."""
        if message.flags & FLAG_UNRELIABLE:
            self.change_modes().set("none", message.object_id, self.objects, self.position.object_id)

    def _open_empty(self, key: int, fec_id: int) -> None:
        """Open an object without content: its NORM_INFO is all there is to come. It counts as a file."""
        if self.objects[key] is None:
            self._open(key, Fti(fec_id, 0, self._profile.segment, 1, 0), True, True)

    def _open(self, key: int, fti: Fti, is_file: bool, has_info: bool) -> RxObject | None:
        """Offer an object to the application; None when it is not wanted."""
        assert self.origin is not None
        ports, node = self.session.ports, self.origin.source_id
        offered = node, key, fti.object_size, is_file
        sink = ports.accept(_offer(*offered) if fti.carried is None else Offer(*offered, fti.carried))
        if sink is LATER:
            # Nothing of the object is known, as before.
            self.is_complete = False
            return None
        ports.notify(_opened(node, key, fti.object_size))
        if sink is None:
            del self.objects[key]
            self._note_loss(key)
            self._update_completeness()
            return None
        item = self.objects[key] = RxObject(key, fti, sink, has_info)
        partition, position = fti.partition, self.position
        if key != position.object_id or position.block >= partition.blocks:
            item.skip(0, 0, partition.blocks, 0)
        else:
            item.skip(0, 0, position.block, position.symbol)
        self._update_completeness()
        self._profile = self._profile.with_coding(fti.fec_id, self._profile.segment, fti.usable)
        return item

    def _flushed_end(self, flush: Flush) -> tuple[int, int]:
        """Return the (block, symbol) behind the symbol that a FLUSH names; of an object that is not open, behind its block."""
        item = self.objects.get(flush.object_id)
        return (flush.block + 1, 0) if item is None else item.behind(flush.block, flush.symbol)

    def finish(self, item: RxObject) -> None:
        """Hand an object over if nothing is missing and nothing is to come."""
        if not item.has_no_gaps:
            return
        position, key = self.position, item.object_id
        if position.object_id != key or position.block >= item.fti.partition.blocks:
            try:
                item.sink.commit(item.info or b"")
            except OSError as error:
                self._give_up([key], f"sink: {error}")
                return
            assert self.origin is not None
            del self.objects[key]
            self.session.note_end(item, None)
            self.session.ports.notify(_received(self.origin.source_id, key, item.fti.object_size, item.info or b""))
        elif self.objects.more is None:
            # The only incomplete object, the usual case.
            self.is_complete, self.nack_process = True, None
            return
        self._update_completeness()

    def store_info(self, item: RxObject | None, message: Info) -> None:
        """Store the NORM_INFO of an object that is wanted, unless it is known."""
        if item is not None and item.takes_info(message.payload):
            item.info = message.payload
            self.session.ports.notify(info_received(message.origin.source_id, item.object_id, message.payload))
            self.finish(item)

    def shorten_holdoff(self) -> None:
        """Have a hold-off last no longer than usual: the sender announces its end, so it serves requests now."""
        if self.nack_process is not None:
            self.nack_process.shorten(self._profile)

    def _update_completeness(self) -> None:
        """Find out whether anything is missing of what was sent; if not, end the NACK process."""
        more = self.objects.more
        for item in self.objects.values() if more is None else more.values():
            if item is None or not item.has_no_gaps:
                self.is_complete = False
                return
        self.is_complete = True
        self.nack_process = None

    def _give_up(self, keys: list[int], reason: str) -> None:
        """Abort objects that will not be complete; consecutive ones of which nothing is known are reported by one event."""
        first, count = 0, 0
        for key in keys:
            item = self.objects.pop(key)
            if item is None and count and key == (first + count) & 0xFFFF:
                count += 1
                continue
            self._tell_aborted(first, count, reason)
            first, count = key, int(item is None)
            if item is not None:
                self.session.note_end(item, self.position)
                self._tell_aborted(key, 1, item.abort(reason))
        self._tell_aborted(first, count, reason)
        self._update_completeness()

    def _tell_aborted(self, first: int, count: int, reason: str) -> None:
        """Notify the application of so many aborted objects, from id `first` on; an event each would cost too much."""
        if count:
            self._note_loss(first)
            node = self.node
            event = ObjectAborted(node, first, reason) if count == 1 else ObjectsAborted(node, first, count, reason)
            self.session.count("objects_aborted", count)
            self.session.ports.notify(event)

    def _requests_of_sender(self) -> SenderRequests:
        """Return what the sender asked for besides content."""
        extras = self.change_extras()
        if extras.requests is None:
            extras.requests = SenderRequests()
        return extras.requests

    def _note_loss(self, object_id: int) -> None:
        """Note an object, or a part of a stream, that is lost for good or unwanted: it is not acknowledged."""
        self._requests_of_sender().lose(object_id)
