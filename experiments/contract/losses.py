"""Loss patterns of a scripted link: predicates that select the messages to drop."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import TypeAlias

from protocols.machine import Message
from protocols.rng import key_of, unit

__all__ = ["Crossing", "Drop", "any_of", "everything_to", "nothing", "numbered", "randomly"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """One message on its way from one host to one other host, at `now` seconds."""

    source: str
    receiver: str
    message: Message
    number: int
    """Number of this message among those of its kind from `source` to `receiver`, from 1."""
    now: float


Drop: TypeAlias = Callable[[Crossing], bool]


def nothing(crossing: Crossing) -> bool:
    """Drop no message."""
    return False


def numbered(kind: str, numbers: Container[int], receiver: str | None = None) -> Drop:
    """Return a pattern that drops the messages of `kind` with these numbers, on the way to one receiver or (None) to each."""

    def drop(crossing: Crossing) -> bool:
        return crossing.message.kind == kind and crossing.number in numbers and receiver in (None, crossing.receiver)

    return drop


def everything_to(receiver: str, since: float = 0.0) -> Drop:
    """Return a pattern that drops every message to `receiver` from `since` seconds on."""
    return lambda crossing: crossing.receiver == receiver and crossing.now >= since


def randomly(p: float, seed: int = 1) -> Drop:
    """Return a pattern that drops each message independently with probability `p`; the seed determines which."""

    def drop(crossing: Crossing) -> bool:
        key = key_of(seed, crossing.source, crossing.receiver, crossing.message.kind)
        return unit(key, crossing.number) < p

    return drop


def any_of(*drops: Drop) -> Drop:
    """Return a pattern that drops a message when any of `drops` does."""
    return lambda crossing: any(drop(crossing) for drop in drops)
