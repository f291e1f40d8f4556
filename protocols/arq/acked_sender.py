"""The sender of protocol A: a timer for each unit that is not acknowledged by all receivers."""

from heapq import heappop, heappush
from math import inf
from typing import Final

from protocols.arq.config import AConfig
from protocols.arq.messages import Ack, Data, Nack
from protocols.arq.sender import ArqSender, Key
from protocols.arq.tx_object import TxObject
from protocols.machine import Group, Message, Ports

__all__ = ["AckedSender"]

MOST_RECEIVERS: Final = 1 << 18
"""Receivers that are known at a time; ACKs of others are counted and ignored."""


class _Outstanding:
    """A unit that was sent and is not acknowledged by all receivers; `acked` are the node ids of those that did."""

    __slots__ = ("acked", "tries")

    def __init__(self) -> None:
        self.acked: set[int] = set()
        self.tries = 0


class AckedSender(ArqSender):
    """Repeats each unit every `timeout` seconds until every known receiver has acknowledged it.

    A receiver is known from its first ACK on, and forgotten when it sent none for `robust` time-outs.
    """

    __slots__ = ("_acks", "_heard_at", "_outstanding", "_timeouts", "_timers")

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self._heard_at: dict[int, float] = {}
        """When the last ACK of each known receiver came, in seconds, by node id."""
        self._outstanding: dict[Key, _Outstanding] = {}
        self._timers: list[tuple[float, Key]] = []
        """Heap of the timers of outstanding units."""
        self._acks = self._timeouts = 0

    def counts(self) -> dict[str, int]:
        """Return what was sent, the ACKs received, and how often a timer ran out before all ACKs had come."""
        return {**super().counts(), "acks_received": self._acks, "timeouts": self._timeouts}

    def _on_submit(self) -> None:
        """Do nothing: timers start when units are sent."""

    def _on_feedback(self, message: Ack | Nack, now: float) -> None:
        if isinstance(message, Nack):
            return
        self._acks += 1
        if message.node not in self._heard_at and len(self._heard_at) >= MOST_RECEIVERS:
            return
        self._heard_at[message.node] = now
        outstanding = self._outstanding.get((message.object_id, message.unit))
        if outstanding is not None:
            outstanding.acked.add(message.node)

    def _on_sent(self, key: Key, repair: bool, now: float) -> None:
        outstanding = self._outstanding.get(key)
        if outstanding is None:
            outstanding = self._outstanding[key] = _Outstanding()
        outstanding.tries += 1
        heappush(self._timers, (now + self._config.timeout, key))

    def _on_timers(self, now: float) -> None:
        timers = self._timers
        while timers and timers[0][0] <= now:
            key = heappop(timers)[1]
            if key[0] not in self._store.objects or self._is_acknowledged(self._outstanding[key], now):
                self._outstanding.pop(key, None)
                continue
            self._timeouts += 1
            self._repairs[key] = None

    def _read(self, item: TxObject, unit: int, repair: bool) -> Data | None:
        message = super()._read(item, unit, repair)
        if message is None:
            # The object is not served any more; of units that were to be repeated no timer runs.
            for key in [key for key in self._outstanding if key[0] == item.object_id]:
                del self._outstanding[key]
        return message

    def _on_idle(self, now: float) -> Message | None:
        if not self._finished and not self._outstanding:
            self._finish()
        return None

    def _next_timer(self) -> float:
        if self._timers:
            return self._timers[0][0]
        return inf if self._finished else self._next_at

    def _is_acknowledged(self, outstanding: _Outstanding, now: float) -> bool:
        """Return whether all known receivers have the unit. After `robust` tries, silent receivers are forgotten first."""
        config = self._config
        if outstanding.tries > config.robust:
            silent = now - config.robust * config.timeout
            self._heard_at = {node: when for node, when in self._heard_at.items() if when > silent}
            if not self._heard_at:
                return True
        return bool(self._heard_at) and self._heard_at.keys() <= outstanding.acked
