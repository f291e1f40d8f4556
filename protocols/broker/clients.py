"""State of one client at a broker."""

from collections import deque
from dataclasses import dataclass, field
from math import inf

from protocols.broker.heartbeats import Heartbeats
from protocols.broker.messages import Send
from protocols.central.outbox import Outbox
from protocols.snapshot import Snapshot

__all__ = ["BrokersClient"]


@dataclass(slots=True)
class BrokersClient:
    """One connection: what waits to be sent on it, what it published and is not accepted, and its subscriptions."""

    outbox: Outbox
    beats: Heartbeats | None = None
    """None before the client began a session."""
    waiting: deque[Send] = field(default_factory=deque)
    subscriptions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Destination and selector, by the client's name for the subscription."""
    is_held: bool = False
    """Whether nothing is read of it."""
    is_leaving: bool = False
    """Whether it disconnects when all that it published is accepted."""
    last_receipt: str = ""
    """The receipt requested by its DISCONNECT."""
    full_since: float = inf
    """When its queue became full, in seconds, or it last took something since then; inf if it has room."""
    taken: int = 0
    """Frames taken by its connection at that time."""

    def snapshot(self, name: str) -> Snapshot:
        """Return the statistics of the client; `name` is its place among those that are connected."""
        waiting = Snapshot("queue", "messages", {"held": len(self.outbox.waiting)})
        return Snapshot("subscriber", name, {"subscriptions": len(self.subscriptions)}, parts=(waiting,))
