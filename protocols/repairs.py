"""Requests and repairs as a protocol's messages carry them, so that rules about requests can be checked in its runs."""

from abc import abstractmethod
from collections.abc import Collection, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from protocols.machine import Message

__all__ = ["Limit", "Repairs", "Span", "Suppression", "Unit"]


class Unit(NamedTuple):
    """A piece of content that is sent, missed and requested as a whole: the `number`th of a `stream`."""

    stream: Hashable
    number: int


class Span(NamedTuple):
    """Units of a stream, from the number `first` to the number `last`. Not every number between them need have a unit."""

    stream: Hashable
    first: int
    last: int


class Suppression(NamedTuple):
    """How requests of other nodes suppress own ones.

    They do for `quiet` seconds: each unit by itself, or with `whole` only when others have requested everything that the node
    would. `begins` is the decision with which a node begins to wait for them; empty: it does so once it knows that it misses
    something. With the decision `resumes` it stops relying on them.
    """

    quiet: float
    whole: bool = False
    begins: str = ""
    resumes: str = ""


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

    discards: ClassVar[str] = ""
    """The decision that shows that a node does not keep what it received; empty: it keeps everything."""

    gathers: ClassVar[str] = ""
    """The decision with which a node begins to gather requests, for some time (`until` in its detail) before it serves them.

    What it sends in that time serves earlier requests, and may be sent once more. Empty: it serves requests at once.
    """

    @abstractmethod
    def carried(self, message: Message) -> Unit | None:
        """Return the unit that a message carries."""

    @abstractmethod
    def requested(self, message: Message) -> Sequence[Span]:
        """Return the units that a message requests."""

    @abstractmethod
    def suppression(self, config: Any) -> Suppression:
        """Return how the requests of other nodes suppress the first request of a node."""

    def announced(self, message: Message) -> Unit | None:
        """Return the last unit that a message states to be sent."""
        del message
        return None

    def refused(self, message: Message) -> Sequence[Span]:
        """Return the units of which a message states that they will not be sent again."""
        del message
        return ()

    def limit(self, config: Any) -> Limit:
        """Return how long a node may request without stopping."""
        del config
        return Limit(0.0, 0.0, 0)

    def unchecked(self, config: Any) -> Collection[str]:
        """Return the names of the rules that do not hold."""
        del config
        return ()
