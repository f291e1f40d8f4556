"""Objects a sender transmits and keeps for repair."""

from typing import ClassVar

from protocols.arq.config import AConfig
from protocols.arq.messages import Data, End, identity_of, units_of
from protocols.arq.wire import MOST_UNITS
from protocols.errors import UsageError
from protocols.machine import Content

__all__ = ["ObjectStore", "TxObject", "check_content"]


def check_content(config: AConfig, content: Content) -> None:
    """Raise UsageError for an object of more units than the wire format can number."""
    size = content.source.size
    if units_of(size, config.segment) > MOST_UNITS:
        most = (MOST_UNITS - 1) * config.segment
        raise UsageError(f"size: value {size} is not allowed; at most {most} with segment {config.segment}")


class TxObject:
    """An object of a sender."""

    __slots__ = ("content", "object_id", "units")

    def __init__(self, object_id: int, content: Content, segment: int) -> None:
        self.object_id = object_id
        self.content = content
        self.units = units_of(content.source.size, segment)


class ObjectStore:
    """The objects of a sender: those queued, and the `keep` ones sent last, which are repaired."""

    __slots__ = ("_config", "_instance", "_next_id", "_node", "objects", "waiting")

    data_type: ClassVar[type[Data]] = Data
    """Class of its DATA messages."""

    def __init__(self, config: AConfig, node: int, instance: int) -> None:
        self._config = config
        self._node = node
        self._instance = instance & 0xFFFF
        self._next_id = 0
        self.objects: dict[int, TxObject] = {}
        """Objects of which a unit was sent and that are still repaired, by id in ascending order."""
        self.waiting: list[tuple[TxObject, int]] = []
        """Objects not wholly sent, in reverse order (the next one last), each with the unit to send next."""

    def add(self, content: Content) -> int:
        """Queue an object; returns its id. UsageError for one that `check_content` refuses."""
        check_content(self._config, content)
        item = TxObject(self._next_id, content, self._config.segment)
        self._next_id += 1
        self.waiting.insert(0, (item, 0))
        return item.object_id

    def take_next(self) -> tuple[TxObject, int]:
        """Take the next unit that was never sent. `waiting` must not be empty."""
        item, unit = self.waiting.pop()
        self.objects[item.object_id] = item
        if unit + 1 < item.units:
            self.waiting.append((item, unit + 1))
        return item, unit

    def drop(self, object_id: int) -> None:
        """Stop sending and repairing an object of which a unit was sent."""
        del self.objects[object_id]
        if self.waiting and self.waiting[-1][0].object_id == object_id:
            self.waiting.pop()

    @property
    def first(self) -> int:
        """Id of the oldest object that is repaired, or of the next object if there is none."""
        return next(iter(self.objects), self._next_id)

    @property
    def last(self) -> int:
        """Id of the object submitted last; -1 before the first."""
        return self._next_id - 1

    def purge(self) -> list[int]:
        """Forget the oldest objects while there are more than `keep`; returns their ids."""
        gone = []
        while len(self.objects) > self._config.keep:
            gone.append(self.first)
            del self.objects[gone[-1]]
        return gone

    def end(self) -> End:
        """Return the END message after the object submitted last."""
        units = self.objects[self.last].units if self.last in self.objects else 1
        return End(self._node, self._instance, self.last, units, self.first)

    def read(self, item: TxObject, unit: int) -> tuple[bytes | None, int]:
        """Return the payload of a unit (None: simulated content), and its bytes. OSError when the source can't be read."""
        content, segment = item.content, self._config.segment
        if unit == 0:
            return content.info, len(content.info)
        offset = (unit - 1) * segment
        length = min(segment, content.source.size - offset)
        return content.source.read(offset, length), length

    def message(self, item: TxObject, unit: int, repair: bool) -> Data:
        """Return the DATA message of a unit. OSError when the source can't be read."""
        payload, length = self.read(item, unit)
        return self._make(item, unit, repair, payload, length)

    def _make(self, item: TxObject, unit: int, repair: bool, payload: bytes | None, length: int) -> Data:
        return self.data_type(
            self._node,
            self._instance,
            item.object_id,
            unit,
            self.first,
            item.content.source.size,
            self._config.segment,
            item.content.is_file,
            repair,
            payload,
            length,
            identity_of(self._node, item.object_id, unit),
        )
