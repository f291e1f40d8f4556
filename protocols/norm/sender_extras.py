"""State of a sender at a receiver besides its content, in the sessions that need it.

A simulated receiver in a large group needs none of it, so it is an object of its own, made when something of it is set first.
"""

from math import inf
from typing import TYPE_CHECKING, Final

from protocols.machine import Address
from protocols.norm.nack_modes import NackModes
from protocols.norm.position import Point
from protocols.norm.sender_requests import SenderRequests

if TYPE_CHECKING:
    from protocols.norm.congestion.receiver import ReceiverCongestion

__all__ = ["NO_EXTRAS", "ExtraState", "Extras"]


class Extras:
    """The values; only `ExtraState.change_extras` returns one to be changed."""

    __slots__ = (
        "ages",
        "congestion",
        "flushed",
        "ignored",
        "is_shared",
        "modes",
        "replaced",
        "replaced_at",
        "requests",
        "silent_periods",
        "source",
        "strangers",
    )

    def __init__(self) -> None:
        self.ages: dict[int, float] | None = None
        """When incomplete objects were found first, as of the last look; None: they do not expire."""
        self.congestion: ReceiverCongestion | None = None
        """The congestion on the way from the sender; None while feedback does not report it."""
        self.flushed: Point | None = None
        """The point within a block that the last such FLUSH named as the end of what was sent."""
        self.modes: NackModes | None = None
        """Repair boundary and limits of requests for its objects; None for every request, at each block boundary."""
        self.requests: SenderRequests | None = None
        """Requests of the sender besides those for content; None while there are none."""
        self.source: Address | None = None
        """The address the sender's messages come from; None for any (see `sender_host`)."""
        self.replaced: tuple[Address, ...] = ()
        """Earlier addresses of the sender on its host, the oldest first."""
        self.ignored, self.replaced_at = 0, 0
        """Messages from these since the present one took their place, and how many were received of the sender then."""
        self.is_shared = False
        """Whether two programs of that host were heard to have the sender's id."""
        self.strangers = 0
        """Messages in the sender's name from other hosts that were ignored."""
        self.silent_periods = 0
        """Activity periods in a row in which nothing was heard of the sender."""

    def due(self) -> float:
        """Return when feedback is due because of them; inf for never."""
        due = inf if self.requests is None else self.requests.due
        return due if self.congestion is None else min(due, self.congestion.due)


NO_EXTRAS: Final = Extras()
"""Stands for extras of which nothing was set, in all states."""


class ExtraState:
    """A state with `Extras`, which are read from `extras` and set in what `change_extras` returns."""

    __slots__ = ("extras",)

    def __init__(self) -> None:
        self.extras = NO_EXTRAS

    def change_extras(self) -> Extras:
        """Return the extras, of which something is to be set."""
        if self.extras is NO_EXTRAS:
            self.extras = Extras()
        return self.extras

    def change_modes(self) -> NackModes:
        """Return what is requested of the sender's objects, to be changed."""
        extras = self.change_extras()
        if extras.modes is None:
            extras.modes = NackModes("normal", "block")
        return extras.modes
