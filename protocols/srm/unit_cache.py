"""The units received last, with which a member repairs what others request."""

from protocols.arq.messages import Data

__all__ = ["UnitCache"]


class UnitCache:
    """The `most` units received last, by identity."""

    __slots__ = ("_most", "_units")

    def __init__(self, most: int) -> None:
        self._most = most
        self._units: dict[int | None, Data] = {}

    def __len__(self) -> int:
        return len(self._units)

    def get(self, identity: int | None) -> Data | None:
        """Return the message that brought a unit; None if the unit is not in the cache."""
        return self._units.get(identity)

    def put(self, message: Data) -> None:
        """Add a new unit."""
        units = self._units
        if self._most:
            units[message.identity] = message
            if len(units) > self._most:
                del units[next(iter(units))]
