"""Limits for each source address, so that a flood of forged messages from one leaves a receiver or a sender to the others.

Addresses are those of hosts, without ports. Each has token buckets; an attacker who forges addresses has the buckets of all of
them. Honest nodes do not reach the limits: a receiver counts new sender ids, of which a host has one, and a sender has a
`RepairLimit` only with `NormConfig.repair_share`.
"""

from typing import Final

from protocols.machine import Address

__all__ = ["NEW_SENDERS", "NEW_SENDERS_RATE", "RepairLimit", "SourceLimit", "host_of"]

MOST_SOURCES: Final = 1024
"""Addresses that are remembered; of further ones the oldest is forgotten."""
NEW_SENDERS: Final = 32
NEW_SENDERS_RATE: Final = 4.0
"""Sender ids that an address may bring at once, and per second from then on."""
NACKS: Final = 32
NACKS_PER_GRTT: Final = 8
"""NACKs of an address that are served at once, and per GRTT from then on: twice what a receiver sends."""
BURST: Final = 0.25
"""Seconds of the rate that repairs may take before they share it with new content."""
LEAST_BURST: Final = 65_536
"""Bytes that they may take in any case."""
SQUELCH_INTERVAL: Final = 2
"""GRTT between two SQUELCH."""
CLASHES: Final = 16
"""Hosts with the same node id that are reported at the most."""


def host_of(source: Address) -> Address:
    """Return an address without its port."""
    return source[0] if isinstance(source, tuple) else source


class SourceLimit:
    """A token bucket for each address: `burst` uses at once, and `rate` per second from then on."""

    __slots__ = ("_buckets", "burst")

    def __init__(self, burst: float) -> None:
        self.burst = burst
        self._buckets: dict[Address, tuple[float, float]] = {}
        """Tokens left and the time of that figure in seconds, by address."""

    def left(self, source: Address, now: float, rate: float) -> float:
        """Return the tokens in the bucket of an address at `now` seconds, with `rate` of them per second."""
        rest, at = self._buckets.get(host_of(source), (self.burst, now))
        return min(self.burst, rest + (now - at) * rate)

    def take(self, source: Address, amount: float, now: float, rate: float) -> None:
        """Take an amount from the bucket of an address, which may then be below 0."""
        left, host = self.left(source, now, rate) - amount, host_of(source)
        if host not in self._buckets and len(self._buckets) >= MOST_SOURCES:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[host] = left, now

    def admits(self, source: Address, now: float, rate: float) -> bool:
        """Take one token; return False if there is none."""
        if self.left(source, now, rate) < 1.0:
            return False
        self.take(source, 1.0, now, rate)
        return True


class RepairLimit:
    """What requests may cost a sender that has new content to send.

    All repairs together take `share` of the rate, beyond a burst of `BURST` seconds. So do the repairs that one address
    requests: its NACKs are ignored while it has requested more, unless the sender has nothing else to send. Of an address
    `NACKS_PER_GRTT` NACKs are served. Amounts are bytes.
    """

    __slots__ = ("_asked", "_credit", "_most", "_nacks", "_rate", "_share", "_squelch_at")

    def __init__(self, share: float, rate: float) -> None:
        self._share = share
        self._asked = SourceLimit(LEAST_BURST)
        self.follow(rate)
        self._credit = self._most
        self._nacks = SourceLimit(NACKS)
        self._squelch_at = 0.0

    def follow(self, rate: float) -> None:
        """Limit repairs by another rate of the sender from now on, bytes per second."""
        self._rate = self._share * rate
        self._asked.burst = self._most = max(BURST * rate, LEAST_BURST)

    def admits(self, source: Address, now: float, grtt: float, is_idle: bool) -> bool:
        """Return whether a NACK is to be served; `is_idle`: the sender has nothing else to send."""
        return self._nacks.admits(source, now, NACKS_PER_GRTT / grtt) and (
            is_idle or self._asked.left(source, now, self._rate) > 0.0
        )

    def has_nacks(self, source: Address, now: float, grtt: float) -> bool:
        """Return whether an address may send one more NACK, without taking one."""
        return self._nacks.left(source, now, NACKS_PER_GRTT / grtt) >= 1.0

    def charge(self, source: Address, octets: int, now: float) -> None:
        """Note how many bytes an address has requested."""
        self._asked.take(source, octets, now, self._rate)

    def may_squelch(self, now: float, grtt: float) -> bool:
        """Return whether a SQUELCH may be sent, and note that it is."""
        if now < self._squelch_at:
            return False
        self._squelch_at = now + SQUELCH_INTERVAL * grtt
        return True

    @property
    def favours_new(self) -> bool:
        """Whether new content comes before repairs, because these have used up their share."""
        return self._credit < 0.0

    def sent(self, octets: int, is_repair: bool) -> None:
        """Note a message while both repairs and new content wait."""
        if is_repair:
            self._credit -= octets
        else:
            self._credit = min(self._most, self._credit + octets * self._share / (1.0 - self._share))
