"""The NACK process of a receiver: back-off, suppression, hold-off (RFC 5740 5.3)."""

from enum import Enum
from math import inf

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.messages import Origin
from protocols.norm.nack_content import MOST_COMPARED, MissingRange, is_covered, is_missing_before, missing_before
from protocols.norm.position import Point, is_before
from protocols.norm.quantise import gsize_value, rtt_seconds
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.rx_object import RxObject
from protocols.norm.small_dict import SmallDict
from protocols.rng import Rng

__all__ = ["Decision", "NackProcess"]


class Decision(Enum):
    """What a receiver is to do after an input of its NACK process."""

    NOTHING = "nothing"
    BEGIN = "begin a back-off"
    RESUME = "wait for the end of the back-off after all"
    SUPPRESS = "send no NACK, because others requested everything"
    REQUEST = "send a NACK"
    NEEDLESS = "send no NACK, because nothing is missing any more"


class NackProcess:
    """One receiver's NACK process towards one sender; exists from a loss until nothing is missing.

    It is in back-off until `backoff_end` and in hold-off until `holdoff_end`. Only a back-off that may end in a NACK needs a
    wake-up, `due`. When other receivers have requested everything already, the process is suppressed at once: `due` is inf, but
    both times stay, so that a loss found before `backoff_end` that nobody requested still leads to a NACK then.
    """

    __slots__ = ("backoff_end", "due", "holdoff_end", "noted", "overheard", "suppressed_to")

    def __init__(self) -> None:
        self.noted: Point = (0, 0, 0)
        """The sender's transmit point when the process began, or the lowest point it rewound to since."""
        self.backoff_end = NEVER
        self.holdoff_end = NEVER
        self.overheard: RequestedRepairs | None = None
        """What other receivers have requested during the back-off."""
        self.suppressed_to: Point | None = None
        """Others have requested everything before this point; None while the process is not suppressed."""
        self.due = inf
        """When to be woken."""

    def is_idle_before(self, point: Point, now: float) -> bool:
        """Return whether `check` would return NOTHING, given that `now` is before `holdoff_end`. False when in doubt."""
        suppressed_to = self.suppressed_to
        return suppressed_to is None or now >= self.backoff_end or (point[0] == suppressed_to[0] and point <= suppressed_to)

    def check(self, point: Point, objects: SmallDict[RxObject | None], now: float) -> Decision:
        """Look for missing content before `point`: BEGIN, RESUME or NOTHING. A back-off or hold-off is not begun anew."""
        if now >= self.backoff_end:
            return Decision.NOTHING if now < self.holdoff_end or not is_missing_before(objects, point) else Decision.BEGIN
        suppressed_to = self.suppressed_to
        if suppressed_to is None or not is_before(suppressed_to, point):
            return Decision.NOTHING
        self.suppressed_to = point
        if self._is_covered(point, objects, MOST_COMPARED):
            return Decision.NOTHING
        self.suppressed_to = None
        self.due = self.backoff_end
        return Decision.RESUME

    def begin(self, now: float, tx_point: Point, origin: Origin, has_parity: bool, rng: Rng) -> bool:
        """Begin a back-off with the sender's timing; return whether it takes any time. If not, `expire` is to be called."""
        factor, grtt = origin.backoff, rtt_seconds(origin.grtt)
        wait = backoff(rng.uniform(), factor * grtt, gsize_value(origin.gsize)) if factor else 0.0
        self.backoff_end = now + wait
        # Without back-off and parity the sender answers within one round trip.
        self.holdoff_end = self.backoff_end + (factor + 2 if factor or has_parity else 1) * grtt
        self.noted = tx_point
        self.overheard = self.suppressed_to = None
        if wait > 0.0:
            self.due = self.backoff_end
        return wait > 0.0

    def expire(
        self, now: float, tx_point: Point, boundary: Point, objects: SmallDict[RxObject | None], fec_id: int
    ) -> tuple[Decision, list[MissingRange]]:
        """End the back-off: NEEDLESS, SUPPRESS, or REQUEST with what is missing before `boundary`."""
        self.due = inf
        self.noted = tx_point
        missing = missing_before(objects, boundary, fec_id)
        if not missing:
            self.holdoff_end = now
            return Decision.NEEDLESS, missing
        return (Decision.SUPPRESS if self._is_covered(boundary, objects) else Decision.REQUEST), missing

    def overhear(
        self, requested: RequestedRepairs, boundary: Point, objects: SmallDict[RxObject | None], now: float
    ) -> Decision:
        """Note what another receiver requested: SUPPRESS when nothing before `boundary` is left to request, else NOTHING."""
        if not self.is_listening(now):
            return Decision.NOTHING
        overheard = self.note(requested)
        if not is_covered(objects, boundary, overheard, MOST_COMPARED):
            return Decision.NOTHING
        self.suppress(boundary)
        return Decision.SUPPRESS

    def is_listening(self, now: float) -> bool:
        """Return whether requests of other receivers matter: in a back-off that is not suppressed."""
        return now < self.backoff_end and self.suppressed_to is None

    def note(self, requested: RequestedRepairs) -> RequestedRepairs:
        """Add what another receiver requested, and return all that was requested during this back-off."""
        overheard = self.overheard
        merged = self.overheard = requested if overheard is None else overheard.merged(requested)
        return merged

    def suppress(self, boundary: Point) -> None:
        """Wait for nothing: others have requested everything before `boundary`."""
        self.suppressed_to = boundary
        self.due = inf

    def rewind(self, point: Point, now: float) -> None:
        """Note that the sender sends a repair at `point`.

        If it rewound there during the hold-off, a request for anything earlier was lost, and the hold-off ends.
        """
        if is_before(point, self.noted):
            self.noted = point
            if self.backoff_end <= now < self.holdoff_end:
                self.holdoff_end = now

    def _is_covered(self, point: Point, objects: SmallDict[RxObject | None], most: float = inf) -> bool:
        return self.overheard is not None and is_covered(objects, point, self.overheard, most)
