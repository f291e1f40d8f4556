"""The objects of one sender on their way to one receiver: opened, filled, handed over or given up."""

from functools import lru_cache
from typing import TYPE_CHECKING

from protocols.events import InfoReceived, ObjectAborted, ObjectOpened, ObjectReceived
from protocols.fast.contract import FastState
from protocols.machine import Offer
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, Data, Fti, Info, TransmitPosition
from protocols.norm.nack_content import Place
from protocols.norm.rx_object import RxObject
from protocols.norm.small_dict import SmallDict
from protocols.serial import ahead

if TYPE_CHECKING:
    from protocols.norm.nack_process import NackProcess
    from protocols.norm.receiver import NormReceiver

__all__ = ["Reception"]

UNKNOWN_SEGMENT = 40
"""Bytes of requests in one NACK while the sender's segment size is unknown, as in NRL NORM."""
_BEFORE = TransmitPosition(0, 0, 0, 0, (0, 0, 0))
"""Where a receiver stands before the first message; never changed, so one for all."""
# Thousands of receivers are told equal things: to look one up costs a tenth of making it.
_opened = lru_cache(maxsize=256)(ObjectOpened)
_received = lru_cache(maxsize=256)(ObjectReceived)
_offer = lru_cache(maxsize=256)(Offer)


class Reception(FastState):
    """What is incomplete of one sender's objects.

    `at` is the place behind the last first transmission heard; `objects` holds what is incomplete of everything before it,
    None for an object of which nothing is known. An object that is not in `objects` is complete, unwanted or given up.
    """

    __slots__ = ("_fec_id", "_segment", "cycle", "node", "objects", "parity", "receiver")

    def __init__(self, receiver: "NormReceiver", node: int) -> None:
        super().__init__(_BEFORE)
        self.receiver = receiver
        self.node = node
        self.objects: SmallDict[RxObject | None] = SmallDict()
        self.parity = 0
        self._fec_id = 5
        self._segment = UNKNOWN_SEGMENT
        self.cycle: NackProcess | None = None

    def item_of(self, message: Data | Info) -> RxObject | None:
        """The object of the message if it is incomplete; opened with its first message."""
        key = message.object_id
        item = self.objects.get(key)
        if item is not None or key not in self.objects or message.fti is None:
            return item
        self._segment = message.fti.segment
        return self._open(key, message.fti, bool(message.flags & FLAG_FILE), bool(message.flags & FLAG_INFO))

    def open_empty(self, key: int, fec_id: int) -> None:
        """An object of which nothing came has no content: its information is all there is to come. It counts as a file."""
        if self.objects[key] is None:
            self._open(key, Fti(fec_id, 0, self._segment, 1, 0), True, True)

    def _open(self, key: int, fti: Fti, is_file: bool, has_info: bool) -> RxObject | None:
        self.receiver.ports.notify(_opened(self.node, key, fti.object_size))
        sink = self.receiver.ports.accept(_offer(self.node, key, fti.object_size, is_file))
        if sink is None:
            del self.objects[key]
            self._judge()
            return None
        item = self.objects[key] = RxObject(key, fti, sink, has_info)
        partition, at = fti.partition, self.at
        if key != at.object_id or at.block >= partition.blocks:
            item.skip(0, 0, partition.blocks, 0)
        else:
            item.skip(0, 0, at.block, at.symbol)
        self._judge()
        self._fec_id, self.parity = fti.fec_id, fti.usable
        return item

    def take(self, item: RxObject | None, message: Data, length: int, fresh: bool) -> None:
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
            self.complete(item)

    def inform(self, item: RxObject, info: bytes) -> None:
        """The object's information came."""
        item.info = info
        self.receiver.ports.notify(InfoReceived(self.node, item.object_id, info))
        self.complete(item)

    def complete(self, item: RxObject) -> None:
        """Hand the object over if nothing is missing and nothing is to come."""
        if not item.has_no_gaps:
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
            event = _received(self.node, item.object_id, item.fti.object_size, item.info or b"")
            self.receiver.ports.notify(event)
        elif self.objects.more is None:
            # It is all there is, nearly always.
            self.whole, self.cycle = True, None
            return
        self._judge()

    def _judge(self) -> None:
        """Is everything there that was sent? Then there is nothing to ask for."""
        for item in self.objects.values():
            if item is None or not item.has_no_gaps:
                self.whole = False
                return
        self.whole = True
        # What a NACK process of the past knows is of no use to the next.
        self.cycle = None

    def _abort(self, item: RxObject, reason: str) -> None:
        self.give_up([item.object_id], reason)

    def give_up(self, keys: list[int], reason: str) -> None:
        """These objects will not be complete."""
        for key in keys:
            item = self.objects.pop(key)
            if item is not None:
                try:
                    item.sink.abort()
                except OSError as error:
                    reason = f"{reason}; sink: {error}"
            self.receiver.count("objects_aborted")
            self.receiver.ports.notify(ObjectAborted(self.node, key, reason))
        self._judge()

    def lacks_before(self, place: Place) -> bool:
        """Is anything missing before `place`?"""
        object_id, block, symbol = place
        objects = self.objects
        if objects.key == object_id:
            item = objects.item
            return (block > 0 or symbol > 0) and (item is None or item.missing_before(block, symbol))
        for key, item in objects.items():
            order = ahead(key, object_id)
            if order < 0 and (item is None or not item.has_no_gaps):
                return True
            if order == 0 and (block or symbol) and (item is None or item.missing_before(block, symbol)):
                return True
        return False
