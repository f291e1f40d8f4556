"""A sender of files by FJM: a publisher of files (`protocols.file_messages`) with a topic manager of its own.

So a session of senders and receivers needs nobody else. Of several senders the manager of one is the guard; managers that stand
alone take part, too.
"""

from collections import deque
from typing import Final

from protocols.file_messages import FileSender
from protocols.fjm.manager import FjmManager
from protocols.fjm.publisher import FjmPublisher
from protocols.inner_ports import InnerPorts
from protocols.layer import unheard
from protocols.machine import Packet, Ports
from protocols.roles import RoleContext

__all__ = ["FjmSender"]

MOST_DELAYED: Final = 1000
"""Packets kept while the network is full."""


class FjmSender(FileSender):
    """Publishes files, and manages their topic."""

    __slots__ = ("_delayed", "_is_full")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(FjmPublisher, ports, context)
        self.hears_itself = True
        self._is_full = False
        # Packets that one machine sends while the network is full, of which only another machine knows.
        self._delayed: deque[tuple[InnerPorts, Packet]] = deque(maxlen=MOST_DELAYED)
        self.inner("manager", lambda own: FjmManager(own, context), unheard)

    def send_heard(self, inner: InnerPorts, packet: Packet) -> object:
        """Send a packet, or keep it while the network is full; more than `MOST_DELAYED` are lost, the first ones."""
        if self._is_full:
            self._delayed.append((inner, packet))
        else:
            self._is_full = bool(super().send_heard(inner, packet))
        return self._is_full

    def resume(self, now: float) -> None:
        """Send what waited, and resume the machines if there is room."""
        self._is_full = False
        while self._delayed and not self._is_full:
            self.send_heard(*self._delayed.popleft())
        self._hear(now)
        if not self._is_full:
            super().resume(now)
