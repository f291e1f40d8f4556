"""Bursts: the messages a sender will send if it gets no input, which a host carries at the cost of one wake-up.

A machine with `plans_bursts` lists its next messages as `Burst`s after a wake-up. The host may carry them as if it had woken
the machine for each. Before the machine's next input it calls `Burst.commit` with the number of messages sent so far, and
`Burst.end`. Before an input that may leave the burst valid, the machine can ask the `BurstCarrier` for the first alone. A host
need not ask for bursts at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from math import inf
from typing import Any, Protocol

from protocols.fast.contract import FastMessage
from protocols.machine import Address

__all__ = ["Burst", "BurstCarrier"]


class BurstCarrier(Protocol):
    """The part of a host that carries bursts."""

    def report(self) -> None:
        """Commit the messages sent so far."""

    def shorten(self, until: float) -> None:
        """Do not send what is due at `until` or later; what was committed stays."""


class Burst(ABC):
    """Messages of one size with consecutive identities never sent before (unless `is_repeated`), in one chain of positions.

    Each has `expects_if_complete`, and `expects` too unless it is visible (`next_visible`). The first is due at `begin`
    seconds, each of the others `interval` after the one before, added up one by one. Messages due at `until` or later are not
    part of the burst.
    """

    __slots__ = (
        *("begin", "carrier", "count", "identity", "interval", "is_indexed", "is_new", "is_repeated", "kind", "shows_losses"),
        *("size", "to", "until"),
    )

    def __init__(self, begin: float, interval: float, count: int, identity: int, kind: str, size: int, to: Address) -> None:
        self.begin = begin
        self.until = inf
        self.carrier: BurstCarrier | None = None
        """The host's part that carries the burst, once it does."""
        self.interval = interval
        self.count = count
        self.identity = identity
        """Of the first message."""
        self.kind = kind
        self.size = size
        """Bytes of UDP payload of each message."""
        self.to = to
        self.is_indexed = False
        """Whether receivers are listed by what they lack of it (`lacked`)."""
        self.shows_losses = False
        """Whether a receiver may send a NACK at the first packet after a loss; each loss is a simulation event then."""
        self.is_new = False
        """Whether all messages are first transmissions; otherwise some or all of them are repairs."""
        self.is_repeated = False
        """Whether all messages are retransmissions. Their identities (`identity_of`) are distinct, but may have gaps."""

    def identity_of(self, number: int) -> int:
        """Return the identity of message `number`."""
        return self.identity + number

    @abstractmethod
    def position(self, number: int) -> Any:
        """Return the position of a receiver after `number` messages: always the same object."""

    @abstractmethod
    def next_visible(self, number: int) -> int:
        """Return the first visible message from `number` on, or one behind the end.

        A visible message concerns incomplete receivers, so it has to be delivered at its time.
        """

    @abstractmethod
    def is_deferrable(self, number: int) -> bool:
        """Return whether a receiver that lost message `number` and received a later one only records the loss (`loss`)."""

    @abstractmethod
    def loss(self, number: int) -> Any:
        """Return what `FastState.skip` records when message `number` was lost."""

    def lacked(self, number: int) -> tuple[Hashable, int]:
        """Return what a receiver lacks that lost message `number` of an indexed burst, as `FastMessage.brings`."""
        raise NotImplementedError

    @abstractmethod
    def reveals_loss_of(self, other: "Burst") -> bool:
        """Return whether the first message of this burst shows a receiver that lost the last of `other` that it was sent."""

    @abstractmethod
    def message(self, number: int) -> FastMessage:
        """Return message `number`, counted from 0."""

    @abstractmethod
    def take(self, count: int, deadline: float) -> None:
        """Note that the host carries the first `count` messages; the next would be due at `deadline`."""

    @abstractmethod
    def commit(self, sent: int, last: float, clear: float) -> None:
        """Commit the first `sent` messages: update the sender as if it had sent them.

        The last was sent at `last` seconds; the next is due at `clear`.
        """

    @abstractmethod
    def end(self) -> None:
        """Drop the messages that are not committed."""
