"""Requests and repairs as a protocol's messages carry them, so that rules about requests can be checked in its runs."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from protocols.machine import Message

__all__ = ["Limit", "Repairs", "Unit"]


class Unit(NamedTuple):
    """A piece of content that is sent, missed and requested as a whole: the `number`th of a `stream`."""

    stream: Hashable
    number: int


class Limit(NamedTuple):
    """How long a node may request without stopping.

    It stops once it has sent a request in every interval of `window` seconds for `lasting` seconds, and at least `most` of
    them in that time. A `window` of 0 is no limit.
    """

    window: float
    lasting: float
    most: int


class Repairs(Protocol):
    """Reads messages. `config` is that of the protocol."""

    @abstractmethod
    def carried(self, message: Message) -> Unit | None:
        """Return the unit that a message carries."""

    @abstractmethod
    def requested(self, message: Message) -> Sequence[Unit]:
        """Return the units that a message requests."""

    @abstractmethod
    def refused(self, message: Message) -> Sequence[Unit]:
        """Return the units of which a message states that they will not be sent again."""

    @abstractmethod
    def quiet(self, config: Any) -> float:
        """Return for how many seconds the request of another node stands for the own first one."""

    @abstractmethod
    def limit(self, config: Any) -> Limit:
        """Return how long a node may request without stopping."""
