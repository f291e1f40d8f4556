"""The intervals that request and repair timers are drawn from, fixed or adaptive (Floyd et al. 1997, sections IV and VII).

A timer runs d * (start + width * U) seconds, with d the distance in seconds and U uniform in [0, 1): `start` is C1 or D1,
`width` is C2 or D2. A large width lets the first timer to run out suppress the others of members equally far away; a large
start lets near members suppress far ones.
"""

from functools import lru_cache
from math import log10, sqrt
from typing import Final

from protocols.rng import Rng
from protocols.srm.config import SrmConfig
from protocols.srm.member import Member

__all__ = ["AdaptiveInterval", "Interval", "repair_interval", "request_interval"]

ALPHA: Final = 0.25
"""Weight of a new value in the averages."""
AVERAGE_DUPLICATES: Final = 1.0
AVERAGE_DELAY: Final = 1.0
"""Targets: duplicates per loss, and delay in round-trip times."""
TOLERANCE: Final = 0.1
FEW_DUPLICATES: Final = 0.25
LARGEST_WIDTH: Final = 16.0
"""Largest width by the number of members. The paper has 1, and neglects transmission times, in which more timers run out."""
REFERENCE: Final = 32.0
"""Members up to which the steps of the width are those of the paper, so that large groups need no more losses to adapt."""
MUCH_FARTHER: Final = 1.5
"""A duplicate from a member this many times as far away shows that this member is close, so that it needs less random wait."""


class Interval:
    """An interval that stays as it was configured."""

    __slots__ = ("delay", "start", "width")

    def __init__(self, start: float, width: float) -> None:
        self.start = start
        self.width = width
        self.delay = 0.0
        """Mean round-trip times from a timer's start to the first request or repair, own or not; 0 before the first."""

    def draw(self, distance: float, rng: Rng) -> float:
        """Return a wait in seconds at this distance in seconds."""
        return distance * (self.start + self.width * rng.uniform())

    def on_loss(self) -> None:
        """React to a new loss, before its timer is drawn."""

    def on_sent(self) -> None:
        """React to an own request or repair, the first for its loss."""

    def on_answer(self, delay: float) -> None:
        """React to the first request or repair for a loss, own or not, `delay` round-trip times after the timer was set."""
        self.delay += ALPHA * (delay - self.delay) if self.delay else delay

    def on_duplicate(self, own: float | None, other: float) -> None:
        """React to a duplicate; `own` and `other` are the distances in seconds, `own` None if this member sent none."""


class _Bounds:
    """Bounds of the parts of an adaptive interval in a group of so many members (0: unknown), and the steps of its width."""

    __slots__ = ("configured", "highest", "is_repair", "lowest", "members", "step")

    def __init__(self, start: float, width: float, members: int, is_repair: bool) -> None:
        self.configured = start, width
        self.is_repair = is_repair
        self.members = members or 1
        self.lowest = min(start, 0.5), min(width, 1.0)
        self.highest = start, width
        self.step = 1.0
        """Factor of the steps of the width."""
        if members:
            self.step = max(members / REFERENCE, 1.0)
            self.highest = max(start, log10(members) if is_repair else 2.0), max(width, LARGEST_WIDTH * members)


# Equal for thousands of members of a simulation, which share one object.
_bounds: Final = lru_cache(maxsize=256)(_Bounds)


class AdaptiveInterval(Interval):
    """An interval that widens while there are more duplicates than wanted and narrows while delays are long."""

    __slots__ = ("_bounds", "_duplicates", "_is_closest", "_mean_duplicates", "_member")

    def __init__(self, config: SrmConfig, member: Member, is_repair: bool) -> None:
        start, width = (config.d1, config.d2) if is_repair else (config.c1, config.c2)
        super().__init__(start, width)
        self._member = member
        self._bounds = _bounds(self.start, self.width, 0, is_repair)
        self._duplicates = 0
        """Duplicates since the last loss."""
        self._mean_duplicates = -1.0
        """Mean number of duplicates per loss; -1 before the first loss."""
        self._is_closest = False

    def on_loss(self) -> None:
        """Change the interval by the averages (section VII-A)."""
        members = self._member.group_size()
        if members != self._bounds.members:
            self._resize(members)
        if self._mean_duplicates < 0.0:
            self._mean_duplicates = 0.0
            return
        self._mean_duplicates += ALPHA * (self._duplicates - self._mean_duplicates)
        self._duplicates = 0
        duplicates = self._mean_duplicates
        if self._is_closest:
            self._is_closest = False
            self._move(0.0, -0.1)
        elif duplicates >= AVERAGE_DUPLICATES:
            self._move(0.1, 0.5)
        elif duplicates >= AVERAGE_DUPLICATES - TOLERANCE:
            self._move(0.05, 0.0)
        else:
            self._move(-0.05 if duplicates < FEW_DUPLICATES else 0.0, -0.1 if self.delay > AVERAGE_DELAY else 0.0)

    def on_sent(self) -> None:
        """Begin earlier next time: a member that sends is likely to be near the loss."""
        self._move(-0.05, 0.0)

    def on_duplicate(self, own: float | None, other: float) -> None:
        """Count a duplicate; one from much farther away shows that this member is closest."""
        self._duplicates += 1
        if own is not None and other > MUCH_FARTHER * own:
            self._is_closest = True

    def _resize(self, members: int) -> None:
        """Follow the estimated group size: the width of repair timers by its square root, steps and bounds in proportion."""
        former = self._bounds
        if former.is_repair:
            self.width *= sqrt(members / former.members)
        self._bounds = _bounds(*former.configured, members, former.is_repair)

    def _move(self, start: float, width: float) -> None:
        """Add to both parts, within their bounds."""
        bounds = self._bounds
        lowest, highest = bounds.lowest, bounds.highest
        # Conditional expressions take a seventh of the time of min and max.
        if start:
            start += self.start
            self.start = lowest[0] if start < lowest[0] else highest[0] if start > highest[0] else start
        width = self.width + width * bounds.step
        self.width = lowest[1] if width < lowest[1] else highest[1] if width > highest[1] else width


def request_interval(config: SrmConfig, member: Member) -> Interval:
    """Return the interval of request timers; an adaptive one only if it has a random part."""
    if config.timers == "adaptive" and config.c2 > 0.0:
        return AdaptiveInterval(config, member, False)
    return Interval(config.c1, config.c2)


def repair_interval(config: SrmConfig, member: Member) -> Interval:
    """Return the interval of repair timers; an adaptive one only if it has a random part."""
    if config.timers == "adaptive" and config.d2 > 0.0:
        return AdaptiveInterval(config, member, True)
    return Interval(config.d1, config.d2)
