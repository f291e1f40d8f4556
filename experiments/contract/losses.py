"""What a scripted link drops: predicates over one crossing."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import TypeAlias

from protocols.machine import Message
from protocols.rng import key_of, unit

__all__ = ["Crossing", "Drop", "any_of", "everything_to", "nothing", "numbered", "randomly"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """One message on its way from one host to one other."""

    source: str
    receiver: str
    message: Message
    number: int
    """1 for the first message of this kind from `source` to `receiver`, and so on."""
    now: float


Drop: TypeAlias = Callable[[Crossing], bool]


def nothing(crossing: Crossing) -> bool:
    """A perfect link."""
    return False


def numbered(kind: str, numbers: Container[int], receiver: str | None = None) -> Drop:
    """Drop the messages of `kind` with these numbers, for one receiver or (None) for each."""

    def drop(crossing: Crossing) -> bool:
        return crossing.message.kind == kind and crossing.number in numbers and receiver in (None, crossing.receiver)

    return drop


def everything_to(receiver: str, since: float = 0.0) -> Drop:
    """From `since` on nothing reaches `receiver`."""
    return lambda crossing: crossing.receiver == receiver and crossing.now >= since


def randomly(p: float, seed: int = 1) -> Drop:
    """Each message of any kind is lost on its own with probability `p`; the same for the same seed."""

    def drop(crossing: Crossing) -> bool:
        key = key_of(seed, crossing.source, crossing.receiver, crossing.message.kind)
        return unit(key, crossing.number) < p

    return drop


def any_of(*drops: Drop) -> Drop:
    """Lost when any of these loses it."""
    return lambda crossing: any(drop(crossing) for drop in drops)
