"""State of one client at a broker."""

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple

from protocols.broker.confirmation import Confirmation
from protocols.broker.heartbeats import Heartbeats
from protocols.broker.messages import Send
from protocols.central.outbox import EMPTY, Outbox
from protocols.norm.maps import SmallDict
from protocols.snapshot import Snapshot

__all__ = ["MOST_SELECTOR_CHARACTERS", "NOTHING", "BrokersClient", "Subscribed", "subscribed"]

MOST_SELECTOR_CHARACTERS: Final = 65_536
"""Characters of the selectors of a client together; each takes some 80 bytes at the broker."""

NOTHING: Final[dict[Any, Any]] = {}
"""An empty table, shared by the clients that have published nothing, or acknowledge nothing; never modified."""


class Subscribed(NamedTuple):
    """A subscription of a client; `acknowledges`: it acknowledges each message."""

    destination: str
    selector: str
    acknowledges: bool


@lru_cache(maxsize=64)
def subscribed(destination: str, selector: str, acknowledges: bool) -> Subscribed:
    """Return a subscription, the same object for most clients of a broker."""
    return Subscribed(destination, selector, acknowledges)


@dataclass(slots=True)
class BrokersClient:
    """One connection: what waits to be sent on it, what it published and is not accepted, and its subscriptions."""

    outbox: Outbox
    beats: Heartbeats | None = None
    """None before the client began a session."""
    waiting: deque[Send] = field(default_factory=lambda: EMPTY)
    subscriptions: SmallDict[Subscribed] = field(default_factory=SmallDict)
    """By the client's name for the subscription."""
    selector_characters: int = 0
    """Characters of the selectors of all its subscriptions."""
    began_at: float = 0.0
    """When its session began, in seconds; before that, when it connected."""
    unconfirmed: dict[Confirmation, None] = field(default_factory=lambda: NOTHING)
    """What it published, and subscribers have not acknowledged, in order."""
    unacknowledged: dict[str, tuple[Confirmation, str]] = field(default_factory=lambda: NOTHING)
    """The copies it has to acknowledge, by `Delivery.ack`, each with its name for the subscription."""
    acknowledged: int = 0
    """Copies that it has acknowledged."""
    is_held: bool = False
    """Whether nothing is read of it."""
    is_leaving: bool = False
    """Whether it disconnects when all that it published is accepted."""
    last_receipt: str = ""
    """The receipt requested by its DISCONNECT."""
    full_since: float = inf
    """When its queue became full, in seconds, or it last took something since then; inf if it has room."""
    taken: int = 0
    """Frames taken by its connection at that time, and copies acknowledged."""

    def has_room(self, most: int) -> bool:
        """Return whether fewer than `most` messages wait for it, and fewer are not acknowledged."""
        return len(self.outbox.waiting) < most and len(self.unacknowledged) < most

    def is_stalled(self, now: float, most: int, time: float) -> bool:
        """Return whether it has had no room for `time` seconds, or has not acknowledged what was sent, and took nothing."""
        progress = self.outbox.sent + self.acknowledged
        if self.has_room(most) and (not self.unacknowledged or self.outbox.is_full):
            self.full_since = inf
        elif self.full_since == inf or self.taken != progress:
            self.full_since, self.taken = now, progress
        return now - self.full_since >= time

    def snapshot(self, name: str) -> Snapshot:
        """Return the statistics of the client; `name` is its place among those that are connected."""
        waiting = Snapshot("queue", "messages", {"held": len(self.outbox.waiting)})
        return Snapshot("subscriber", name, {"subscriptions": len(self.subscriptions)}, parts=(waiting,))
