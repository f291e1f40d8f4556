"""What differs between the receivers: when they send feedback, and to whom."""

from math import inf
from typing import ClassVar

from protocols.arq.messages import Data, Nack
from protocols.machine import Address

__all__ = ["MissingUnit", "SenderAddress", "RepairPolicy"]


class SenderAddress:
    """A sender as feedback names it: its node id, its instance, and the address its last packet came from."""

    __slots__ = ("address", "instance", "node")

    def __init__(self, node: int, instance: int, address: Address) -> None:
        self.node = node
        self.instance = instance
        self.address = address


class MissingUnit:
    """A unit known to be sent and not received. Its timer runs out at `due` seconds; `due` is set by `SenderState` alone."""

    __slots__ = ("due", "object_id", "origin", "requested", "tries", "unit")

    def __init__(self, origin: SenderAddress, object_id: int, unit: int) -> None:
        self.origin = origin
        self.object_id = object_id
        self.unit = unit
        self.due = inf
        self.requested = False
        """Whether a request was sent or overheard and the timer waits for the repair."""
        self.tries = 0
        """Requests sent or overheard; after `robust` of them the object is aborted."""

    def request(self, node: int) -> Nack:
        """Return the NACK by which receiver `node` requests the unit."""
        return Nack(self.origin.node, self.origin.instance, self.object_id, self.unit, node)


class RepairPolicy:
    """Decides when a receiver sends feedback; this base class never does.

    A method that returns a time in seconds (re)starts the missing unit's timer with it.
    """

    __slots__ = ("deadline",)
    missing_type: ClassVar[type[MissingUnit]] = MissingUnit
    requests: ClassVar[bool] = False
    """Whether the receiver sends NACKs, so that its missing units are stored; without NACKs they are only counted."""
    overhears: ClassVar[bool] = False
    """Whether NACKs of other receivers are processed, as they are where NACKs are multicast."""

    def __init__(self) -> None:
        self.deadline = inf
        """Deadline of the policy in seconds; inf for none. It is apart from the timers of missing units."""

    def on_received(self, message: Data, source: Address, is_new: bool, now: float) -> None:
        """React to a DATA message from `source`; `is_new` says whether its unit was stored for the first time."""

    def on_missing(self, missing: MissingUnit, now: float) -> float | None:
        """React to a unit found missing; None if this policy never requests it, so that it need not be remembered."""
        return None

    def on_due(self, missing: MissingUnit, now: float) -> float:
        """React to the end of a missing unit's timer, which `on_missing` started."""
        return inf

    def on_overheard(self, nack: Nack, missing: MissingUnit | None, now: float) -> float | None:
        """React to another receiver's NACK; `missing` is its unit if missing here, too. None leaves the timer as it is."""
        return None

    def wake(self, now: float) -> None:
        """Do what is due at `deadline`, and move it."""

    def counts(self) -> dict[str, int]:
        """Return the policy's counters by name (docs/protocols.md)."""
        return {}
