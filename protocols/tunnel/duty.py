"""Which of several tunnels at one site carries: the one that serves longest, as long as the others hear it."""

from math import inf
from typing import Final

from protocols.machine import Address
from protocols.tunnel.messages import Presence

__all__ = ["Duty"]

PATIENCE: Final = 3
"""Periods after which a silent tunnel is taken for dead."""
LEAST: Final = 0.01
"""Seconds between two PRESENCE at least."""
MOST_TUNNELS: Final = 64
"""Tunnels of one site that are remembered."""


class Duty:
    """The part of a tunnel that sends and receives PRESENCE in its site, every `hello` seconds while it serves.

    `site` is the number of the site; 0: that of the tunnel that serves already, else `node`.
    """

    __slots__ = ("_heard", "_hello", "_is_given", "_node", "_quiet_until", "_sent_at", "_since", "due", "site")

    def __init__(self, node: int, site: int, hello: float) -> None:
        self._node, self._hello = node, hello
        self._is_given = bool(site)
        self.site = site or node
        self._since = 0
        self._quiet_until = self._sent_at = -inf
        self._heard: dict[Address, float] = {}
        self.due = inf
        """When PRESENCE is to be sent, in seconds."""

    def begin(self, since: int, now: float) -> None:
        """Serve, `since` so many microseconds after 1970."""
        self._since, self.due = since, now

    def is_quiet(self, now: float) -> bool:
        """Return whether another tunnel of the site serves."""
        return now < self._quiet_until

    def is_tunnel(self, source: Address, now: float) -> bool:
        """Return whether another tunnel of the site multicasts from this address."""
        return self._heard.get(source, -inf) + PATIENCE * self._hello > now

    def hear(self, presence: Presence, source: Address, now: float) -> None:
        """Note another tunnel: be quiet if it serves longer, else send PRESENCE soon.

        Two that were given different numbers of sites both serve, although they hear each other.
        """
        if source not in self._heard and len(self._heard) >= MOST_TUNNELS:
            del self._heard[next(iter(self._heard))]
        self._heard[source] = now
        if self._is_given and presence.site != self.site:
            return
        if (presence.since, presence.node) < (self._since, self._node):
            self._quiet_until = self.due = now + PATIENCE * self._hello
            if not self._is_given:
                self.site = presence.site
        elif not self.is_quiet(now):
            self.due = min(self.due, max(now, self._sent_at + LEAST))

    def next(self, now: float) -> Presence:
        """Return the PRESENCE that is due."""
        self._sent_at, self.due = now, now + self._hello
        return Presence(self.site, self._node, self._since)
