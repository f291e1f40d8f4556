"""Count NACK and repair storms: requests and repairs per loss, the time until they end, the load over time.

NACK implosion is many requests per loss; efficient repair is one transmission per loss, for all receivers that miss it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from protocols.cross import is_cross
from protocols.machine import Message
from sim.timers import KernelHost

__all__ = ["StormCounters"]

BINS = 64
"""Bins of a load curve at most; their width doubles when the run is longer."""
SHORTEST = 2.0**-7
"""Width of the narrowest bin in seconds."""
REQUESTS = ("nack", "request")
"""Kinds of the messages that request repair."""


class StormCounters:
    """Count the packets sent in one run, at a cost per packet that does not depend on the number of receivers.

    `senders` are the places of the senders in the topology.
    """

    def __init__(self, senders: Iterable[int]) -> None:
        self._senders = frozenset(senders)
        self._highest: dict[int, int] = {}
        self._repaired: dict[int, int] = {}
        self._sent_at: dict[int, float] = {}
        self._waits = 0.0
        self._waited = 0
        self._requests = 0
        self._first_request: float | None = None
        self._last_activity = 0.0
        self._width = SHORTEST
        self._load: dict[str, list[int]] = {"content": [0] * BINS, "repairs": [0] * BINS, "feedback": [0] * BINS}

    @property
    def content(self) -> int:
        """Content packets that were sent for the first time."""
        return len(self._sent_at)

    def sent(self, now: float, host: KernelHost, message: Message, size: int) -> None:
        """Count a packet of `size` bytes that a host sends at `now` seconds; cross traffic is ignored."""
        if is_cross(message):
            return
        if message.identity is None:
            self.sent_feedback(now, (host.place,), message.kind, size)
        elif self._is_repair(message.repair, message.identity, now):
            self._last_activity = now
            self._add("repairs", now, size)
        else:
            self._add("content", now, size)

    def sent_new(self, times: Sequence[float], host: KernelHost, kind: str, size: int, identity: int) -> None:
        """Count packets with new content; see `sim.stats.Observer`."""
        del host, kind
        self._highest[identity >> 32] = identity + len(times) - 1
        self._sent_at.update(zip(range(identity, identity + len(times)), times, strict=True))
        self._widen_for(times[-1])
        load, width, begin = self._load["content"], self._width, 0
        while begin < len(times):
            place = int(times[begin] / width)
            end = bisect_left(times, (place + 1) * width, begin)
            load[place] += (end - begin) * size
            begin = end

    def sent_feedback(self, now: float, places: Sequence[int], kind: str, size: int) -> None:
        """Count packets without content from hosts at these places, but for those of senders; see `sim.stats.Observer`."""
        count = len(places) - len(self._senders.intersection(places))
        if not count:
            return
        if kind in REQUESTS:
            self._requests += count
            self._last_activity = now
            if self._first_request is None:
                self._first_request = now
        self._add("feedback", now, count * size)

    def plain(self, *, losses: int, duplicates: int | None) -> dict[str, Any]:
        """Return the counters as plain values; `losses` and `duplicates` are lost packets and duplicate content packets.

        `duplicates` is None if no receiver counts them.
        """
        repairs = sum(self._repaired.values())
        began = self._first_request
        return {
            "losses": losses,
            "requests": self._requests,
            "requests_per_loss": self._requests / len(self._repaired) if repairs else None,
            "duplicates": duplicates,
            "repairs": repairs,
            "repair_multiplicity": repairs / len(self._repaired) if repairs else None,
            "repair_wait": self._waits / self._waited if self._waited else None,
            "time_to_quiet": None if began is None else self._last_activity - began,
            "load": {"bin": self._width, **self._curves()},
        }

    def _is_repair(self, is_marked: bool, identity: int, now: float) -> bool:
        """Return whether a content packet is a repair or a repetition: identities of first transmissions of an object increase.

        `is_marked`: the packet says so itself.
        """
        group = identity >> 32
        if not is_marked and identity > self._highest.get(group, -1):
            self._highest[group] = identity
            self._sent_at[identity] = now
            return False
        times = self._repaired.get(identity, 0)
        if not times and identity in self._sent_at:
            # Parity that is sent only as repair has no first transmission, so it has no wait.
            self._waits += now - self._sent_at[identity]
            self._waited += 1
        self._repaired[identity] = times + 1
        return True

    def _add(self, kind: str, now: float, size: int) -> None:
        self._widen_for(now)
        self._load[kind][int(now / self._width)] += size

    def _widen_for(self, now: float) -> None:
        """Double the width of the bins until the last one reaches a time."""
        while now >= BINS * self._width:
            self._width *= 2
            for kind, curve in self._load.items():
                self._load[kind] = [curve[i] + curve[i + 1] for i in range(0, BINS, 2)] + [0] * (BINS // 2)

    def _curves(self) -> dict[str, list[int]]:
        """Return the bytes in each bin, up to the last bin that is not empty."""
        length = max((place + 1 for curve in self._load.values() for place, octets in enumerate(curve) if octets), default=0)
        return {kind: curve[:length] for kind, curve in self._load.items()}
