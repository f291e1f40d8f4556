"""Objects on their way out: what a sender keeps for repair, and the packets made from it."""

from protocols.arq.config import AConfig
from protocols.arq.messages import Data, identity_of, units_of
from protocols.arq.wire import MOST_UNITS
from protocols.errors import UsageError
from protocols.machine import Content

__all__ = ["TxObject", "Store"]


class TxObject:
    """One object; its head is unit 0."""

    __slots__ = ("content", "object_id", "units")

    def __init__(self, object_id: int, content: Content, segment: int) -> None:
        self.object_id = object_id
        self.content = content
        self.units = units_of(content.source.size, segment)
        if self.units > MOST_UNITS:
            raise UsageError(f"an object of {content.source.size} bytes has {self.units} units; at most {MOST_UNITS}")


class Store:
    """The objects of a sender by id, in order, and how far the first transmission has come."""

    __slots__ = ("_config", "_instance", "_next_id", "_node", "objects", "waiting")

    def __init__(self, config: AConfig, node: int, instance: int) -> None:
        self._config = config
        self._node = node
        self._instance = instance & 0xFFFF
        self._next_id = 0
        self.objects: dict[int, TxObject] = {}
        self.waiting: list[tuple[TxObject, int]] = []
        """Objects not wholly sent, the first of them last; each with the unit to send next."""

    def add(self, content: Content) -> int:
        """Queue an object; its id."""
        item = TxObject(self._next_id, content, self._config.segment)
        self._next_id += 1
        self.waiting.insert(0, (item, 0))
        return item.object_id

    def take_next(self) -> tuple[TxObject, int]:
        """The next unit that was never sent; there is one."""
        item, unit = self.waiting.pop()
        self.objects[item.object_id] = item
        if unit + 1 < item.units:
            self.waiting.append((item, unit + 1))
        return item, unit

    def drop(self, object_id: int) -> None:
        """The object is not served any more."""
        del self.objects[object_id]
        if self.waiting and self.waiting[-1][0].object_id == object_id:
            self.waiting.pop()

    @property
    def first(self) -> int:
        """The oldest object that is served."""
        return next(iter(self.objects), self._next_id)

    @property
    def last(self) -> int:
        """The object that was submitted last."""
        return self._next_id - 1

    def purge(self) -> list[int]:
        """Forget the oldest objects while there are too many; their ids."""
        gone = []
        while len(self.objects) > self._config.keep:
            gone.append(self.first)
            del self.objects[gone[-1]]
        return gone

    def message(self, item: TxObject, unit: int, repair: bool) -> Data:
        """The packet of a unit. OSError when the source fails."""
        content, segment = item.content, self._config.segment
        size, payload, length = content.source.size, content.info or b"", len(content.info)
        if unit:
            offset = (unit - 1) * segment
            length = min(segment, size - offset)
            read = content.source.read(offset, length)
        identity = identity_of(self._node, item.object_id, unit)
        return Data(
            self._node,
            self._instance,
            item.object_id,
            unit,
            self.first,
            size,
            segment,
            content.is_file,
            repair,
            read if unit else payload,
            length,
            identity,
        )
