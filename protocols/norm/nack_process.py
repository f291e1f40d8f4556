"""The NACK process of a receiver: back-off, suppression, hold-off (RFC 5740 5.3)."""

from math import inf
from typing import TYPE_CHECKING

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.nack_content import Place, is_covered
from protocols.norm.quantise import gsize_value, rtt_seconds
from protocols.norm.repair_requests import RequestedRepairs
from protocols.serial import ahead

if TYPE_CHECKING:
    from protocols.norm.sender_state import SenderState

__all__ = ["NackProcess", "is_before"]


def is_before(a: Place, b: Place) -> bool:
    """Does place `a` come before `b` in transmission order?"""
    if a[0] == b[0]:
        return a < b
    return ahead(a[0], b[0]) < 0


class NackProcess:
    """One receiver's NACK process towards one sender; exists from a loss until nothing is missing.

    Until `expiry` it is in back-off, then until `holdoff` it keeps silent; both are mere times, and only a back-off that may
    end in a NACK has a wake-up, `due`. When others have asked for everything already, it falls quiet at once: `due` is inf,
    but the times stand, so that a need which comes up before `expiry` and nobody asked for still speaks at `expiry`.
    """

    __slots__ = ("_remote", "asked", "covered", "due", "expiry", "holdoff", "noted")

    def __init__(self, remote: "SenderState") -> None:
        self._remote = remote
        self.noted: Place = (0, 0, 0)
        """Where the sender was when the process began, or where it went back to since."""
        self.expiry = NEVER
        """When the back-off is over."""
        self.holdoff = NEVER
        """Until then a back-off or hold-off is under way; after it no repair changes anything here."""
        self.asked: RequestedRepairs | None = None
        """What others have asked for during the back-off."""
        self.covered: Place | None = None
        """Up to where they have asked for everything; None while this receiver is not quiet."""
        self.due = inf
        """When to be woken."""

    def rests(self, place: Place, now: float) -> bool:
        """Would `check` change nothing, before `holdoff`? False when in doubt."""
        covered = self.covered
        return covered is None or now >= self.expiry or (place[0] == covered[0] and place <= covered)

    def check(self, now: float, place: Place) -> bool:
        """Something may be missing before `place`: begin, unless a process is under way; True when that changes `due`."""
        if now >= self.expiry:
            if now < self.holdoff or not self._remote.lacks_before(place):
                return False
            self.begin(now)
            return True
        covered = self.covered
        if covered is None or not is_before(covered, place):
            return False
        self.covered = place
        if self._is_covered(place):
            return False
        self._resume()
        return True

    def _resume(self) -> None:
        """There is something to ask for that nobody did."""
        self.covered = None
        self.due = self.expiry
        receiver = self._remote.receiver
        receiver.nacks_suppressed -= 1
        if receiver.ports.trace is not None:
            receiver.ports.trace("nack_resumed", {"until": self.expiry})

    def begin(self, now: float) -> None:
        """Something is missing: back off."""
        remote = self._remote
        origin, ports = remote.origin, remote.receiver.ports
        assert origin is not None
        factor, grtt = origin.backoff, rtt_seconds(origin.grtt)
        wait = backoff(ports.rng.uniform(), factor * grtt, gsize_value(origin.gsize)) if factor else 0.0
        self.expiry = now + wait
        # Without back-off and parity an answer comes within one round trip.
        rest = factor + 2 if factor or remote.parity else 1
        self.holdoff = self.expiry + rest * grtt
        self.noted = remote.at.place
        self.asked = self.covered = None
        if ports.trace is not None:
            ports.trace("nack_backoff", {"until": self.expiry})
        if wait > 0.0:
            self.due = self.expiry
        else:
            self.expire(now)

    def expire(self, now: float) -> None:
        """The back-off is over: ask for what is missing, unless others did."""
        self.due = inf
        remote = self._remote
        place = remote.boundary()
        self.noted = remote.at.place
        needs = remote.needs_before(place)
        trace = remote.receiver.ports.trace
        if not needs:
            self.holdoff = now
            if trace is not None:
                trace("nack_needless", {})
        elif self._is_covered(place):
            remote.receiver.nacks_suppressed += 1
            if trace is not None:
                trace("nack_suppressed", {"due": self.expiry})
        else:
            if trace is not None:
                trace("nack_due", {"silent_until": self.holdoff})
            remote.send_nack(needs, now)

    def overhear(self, demand: RequestedRepairs, now: float) -> bool:
        """Another receiver asked for this; True when there is nothing left to ask for."""
        if now >= self.expiry or self.covered is not None:
            return False
        asked = self.asked
        asked = self.asked = demand if asked is None else asked.merged(demand)
        remote = self._remote
        place = remote.boundary()
        if not is_covered(remote.objects, place, asked):
            return False
        self.fall_quiet(place)
        return True

    def fall_quiet(self, place: Place) -> None:
        """Others have asked for everything up to there."""
        self.covered = place
        self.due = inf
        receiver = self._remote.receiver
        receiver.nacks_suppressed += 1
        if receiver.ports.trace is not None:
            receiver.ports.trace("nack_suppressed", {"due": self.expiry})

    def _is_covered(self, place: Place) -> bool:
        return self.asked is not None and is_covered(self._remote.objects, place, self.asked)

    def rewind(self, place: Place, now: float) -> None:
        """The sender sends a repair at `place`. If it went back there, a request for anything earlier was lost."""
        noted = self.noted
        if is_before(place, noted):
            self.noted = place
            if self.expiry <= now < self.holdoff:
                self.holdoff = now
