"""What a sender will say if nothing comes between: lets a host carry many messages at the cost of one wake-up.

A machine that `plans_bursts` promises a `Burst` of messages after a wake-up. The host may carry them as if it had woken it for
each,
and tells it with `Burst.note` how many were sent and with `Burst.end` that these are all, before its next input, whatever that
is.
Before an input that may leave the promise as it is, a machine can ask its `BurstCarrier` for the first alone. A host may also
never
ask.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import Any, Protocol

from protocols.machine import Address, Message

__all__ = ["BurstCarrier", "Burst"]


class BurstCarrier(Protocol):
    """Who carries a run."""

    def report(self) -> None:
        """Tell the run how many were sent by now."""

    def shorten(self, until: float) -> None:
        """Do not send what is due at `until` or later; at least what was reported stays."""


class Burst(ABC):
    """Messages of one size with consecutive identities never sent before, in one chain of positions, each calm.

    They have a token, unless they are to be told at their time (`next_visible`).

    The first is due at `begin`; each of the others `interval` after the one before, added up one by one. What is due at `until`
    or later is not promised.
    """

    __slots__ = ("begin", "carrier", "count", "identity", "interval", "kind", "size", "to", "until")

    def __init__(self, begin: float, interval: float, count: int, identity: int, kind: str, size: int, to: Address) -> None:
        self.begin = begin
        self.until = inf
        self.carrier: BurstCarrier | None = None
        """Who has taken it."""
        self.interval = interval
        self.count = count
        self.identity = identity
        """Of the first."""
        self.kind = kind
        self.size = size
        """Bytes of UDP payload of each."""
        self.to = to

    @abstractmethod
    def position(self, number: int) -> Any:
        """Where who heard `number` of them stands: always the same object."""

    @abstractmethod
    def next_visible(self, number: int) -> int:
        """The first from this on that has no token, as far as the run goes; to be told at its time."""

    @abstractmethod
    def is_deferrable(self, number: int) -> bool:
        """Does who misses it and hears something later only note so (`loss`), however late?"""

    @abstractmethod
    def loss(self, number: int) -> Any:
        """What `FastState.skip` is to note of an inner one that did not come."""

    @abstractmethod
    def reveals_loss_of(self, other: "Burst") -> bool:
        """Does who missed the last of another run see from the first of this that it was sent?"""

    @abstractmethod
    def message(self, number: int) -> Message:
        """One of them, counted from 0."""

    @abstractmethod
    def take(self, count: int, deadline: float) -> None:
        """The host carries so many, and the next would be due at `deadline`: the machine's own until something earlier is."""

    @abstractmethod
    def note(self, sent: int, last: float, clear: float) -> None:
        """So many are sent by now, the last of them at `last`, and the next is due at `clear`. The machine is as if it had."""

    @abstractmethod
    def end(self) -> None:
        """What is not noted as sent is not sent."""
