"""One sender as a fast receiver knows it: a state that a `UnitGroup` can advance."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.rx_object import FastRxObject
from protocols.arq.messages import Data, End, Nack
from protocols.arq.repair_policy import MissingUnit, RepairPolicy, SenderAddress
from protocols.arq.rx_object import RxObject
from protocols.arq.sender_state import MORE_MISSING, SenderState
from protocols.arq.session import Session
from protocols.fast.contract import Coordinator
from protocols.fast.units import UnitMessage, UnitState
from protocols.machine import Address, Sink
from protocols.norm.maps import NONE, SmallDict

__all__ = ["FastSenderState"]

_NOTHING: Final[Any] = SmallDict()
_NO_TIMERS: Final[list[tuple[float, int, int]]] = []
"""Shared by the receivers that miss few units; never modified."""
FEW: Final = 8
"""Missing units up to which there is no heap of their timers, which takes 120 bytes for one."""
_APART: Final[Any] = object()
"""The position of a receiver that is nowhere in the sender's chain."""


@lru_cache(maxsize=64)
def _origin_of(node: int, instance: int, address: Address) -> SenderAddress:
    """Return the address of a sender, one object for all its receivers."""
    return SenderAddress(node, instance, address)


def _order(missing: MissingUnit) -> tuple[float, int, int]:
    """Return the order in which timers run out."""
    return missing.due, missing.object_id, missing.unit


@lru_cache(maxsize=64)
def _same(number: float) -> float:
    """Return an equal number, one object for all receivers that ask for it at one time."""
    return number


class FastSenderState(SenderState, UnitState):
    """As `SenderState`; `position` is the sender's own object wherever both expect the same unit of the same open object.

    While the position advances from outside, the units passed over were received (`sync`).
    """

    __slots__ = ("_few_objects", "_synced", "coordinator", "duplicates", "is_complete", "overheard", "position")
    attentive = False

    def __init__(self, session: Session, policy: RepairPolicy, first: Data | End, address: Address) -> None:
        super().__init__(session, policy, first, address)
        self.origin = _origin_of(first.sender, first.instance, address)
        # Few objects are open and few units missing at a time: dictionaries would be half of a receiver's memory.
        self._few_objects: SmallDict[FastRxObject | None] = SmallDict()
        """The same object as `_objects`, with the type that it has here."""
        objects: Any = self._few_objects
        self._objects = objects
        self._missing, self._timers = _NOTHING, _NO_TIMERS
        self.position = self._synced = _APART
        """`_synced` is the position that the rest of the state agrees with."""
        self.coordinator: Coordinator | None = None
        self.duplicates = self.overheard = 0
        self.is_complete = True

    def note_address(self, address: Address) -> None:
        """See `SenderState`; the object with the former address is that of other receivers, too."""
        origin = self.origin
        if address != origin.address:
            self.origin = _origin_of(origin.node, origin.instance, address)
            for missing in self._missing.values():
                missing.origin = self.origin

    def sync(self) -> None:
        """Bring the rest of the state up to the position."""
        if self.position is not self._synced:
            position: Position = self.position
            synced: Position = self._synced
            self._session.data_received += position.sent - synced.sent
            item = self._few_objects.get(position.object_id)
            if item is not None:
                item.reached = position.unit
            self._unit = position.unit
            self._synced = position

    def lacks(self) -> Iterable[tuple[int, int]]:
        """Return the missing units as (object id, unit)."""
        return [
            (number, unit)
            for number, item in self._few_objects.items()
            if item is not None and item.gaps is not None
            for unit in item.gaps
        ]

    def take(self, message: FastData, now: float) -> bool | None:
        """Handle the usual DATA of the chain: the next new unit after lost ones, or a repair; None if it is another one.

        Returns whether the unit was stored, as `on_data`.
        """
        self.sync()
        if message.expects is None or self._synced is _APART:
            return None
        before: Position = message.expects
        after: Position = message.next_state
        synced: Position = self._synced
        if before.origin is not synced.origin:
            return None
        if message.repair:
            is_new = self.take_repair(message, now)
            is_there = after.object_id == self._object and after.unit == self._unit
            if is_new is not None and is_there and self._synced is synced:
                # Nothing but repairs was lost.
                self.position = self._synced = after
            return is_new
        objects, object_id, unit = self._few_objects, message.object_id, message.unit
        item = objects.get(object_id)
        first: int = objects.first
        if item is None or object_id != synced.object_id or unit < synced.unit or first < message.first:
            return None
        if synced.unit < unit:
            if self._later:
                return None
            self.is_complete = False
            self._add_units(object_id, synced.unit, unit, now)
        item.reach(unit)
        item.reached = self._unit = unit + 1
        self.last_heard = now
        self.position = self._synced = after
        if self._later:
            self._request_later(now, MORE_MISSING)
            self.leave_chain()
        return True

    def take_repair(self, message: Data, now: float) -> bool | None:
        """Handle the repair of a unit before the position, which is left as it is; None if the message does more.

        Returns whether the unit was stored, as `on_data`.
        """
        self.sync()
        objects, object_id, unit, first = self._few_objects, message.object_id, message.unit, message.first
        known: int = objects.first
        if not first <= object_id <= self._object or NONE < known < first:
            return None
        item = objects.get(object_id)
        if item is None:
            if object_id in objects:
                return None
        elif (object_id == self._object and unit >= self._unit) or not item.fits(message):
            return None
        self.last_heard = now
        gaps = None if item is None else item.gaps
        if item is None or gaps is None or unit not in gaps:
            self._session.duplicates += 1
            return False
        is_new = self._store(item, message)
        self._drop_missing()
        if is_new:
            self.is_complete = item.gaps is None and self._has_no_gaps()
        return is_new

    def _has_no_gaps(self) -> bool:
        """Return whether no unit is missing of any object that is open."""
        return all(item is not None and item.gaps is None for item in self._few_objects.values())

    # -- messages --------------------------------------------------------------------------------------------------

    def on_data(self, message: Data, now: float) -> bool:
        """Handle a unit of content."""
        self.sync()
        is_new = super().on_data(message, now)
        self._link(message)
        return is_new

    def on_end(self, message: End, now: float) -> None:
        """Handle an END."""
        self.sync()
        super().on_end(message, now)
        self._link(message)

    def on_nack(self, nack: Nack, now: float) -> bool:
        """Handle another receiver's NACK, by which the position may advance."""
        self.sync()
        unit = self._unit
        has_changed = super().on_nack(nack, now)
        if self._unit != unit:
            self.leave_chain()
        return has_changed

    def leave_chain(self) -> None:
        """Take a position that no message of the sender expects."""
        self.position = self._synced = _APART

    def suppress(self, nack: Nack, now: float) -> None:
        """Handle another receiver's NACK for a unit before the position, which is left as it is."""
        missing = self._missing.get((nack.object_id, nack.unit))
        due = self._policy.on_overheard(nack, missing, now)
        if missing is not None and due is not None:
            self._start_timer(missing, due)

    def wakes_in_place(self, now: float) -> bool:
        """Return whether `wake` does nothing but to serve timers: it does not abort objects or ask when a message came last."""
        if self._missing is _NOTHING:
            return now < self._silent_at
        most = self._session.config.robust
        return now < self._silent_at and not any(each.due <= now and each.tries > most for each in self._missing.values())

    def _link(self, message: Data | End) -> None:
        """Set the position after a message: the sender's own where this receiver expects the same.

        It does not while missing units are put off, since each unit that arrives has some of them requested. Nor does it while
        an object is open that the sender repairs no longer: the next unit in order leaves it open, any other message aborts it.
        """
        position: Position | None = message.next_state if isinstance(message, UnitMessage) else None
        is_repaired = not NONE < self._few_objects.first < message.first
        if position is not None and is_repaired and not self._later and self._is_at(position):
            self.position = self._synced = position
            self.is_complete = self._has_no_gaps()
        else:
            self.position = self._synced = _APART

    def _is_at(self, position: Position) -> bool:
        """Return whether the same messages have the same effects as on others there, apart from units that are missing.

        They have not if the application refused the object, or while an object was announced and not yet opened.
        """
        objects, number = self._objects, self._object
        if number != position.object_id or self._unit != position.unit:
            return False
        return (number in objects or position.is_end) and (not objects or None not in objects.values())

    # -- hooks of the plain state ----------------------------------------------------------------------------------

    def _add_missing(self, object_id: int, unit: int, now: float) -> None:
        if self._missing is _NOTHING:
            missing: Any = SmallDict()
            self._missing = missing
        super()._add_missing(object_id, unit, now)

    def _start_timer(self, missing: MissingUnit, due: float) -> None:
        if self._timers:
            super()._start_timer(missing, due)
            return
        missing.due = due
        if len(self._missing) > FEW:
            self._timers = sorted([_order(each) for each in self._missing.values()])

    def due(self) -> float:
        """Return when `wake` is wanted, in seconds; inf for never."""
        return self._silent_at if self._missing is _NOTHING else super().due()

    def _next_timer(self) -> MissingUnit | None:
        if self._timers:
            return super()._next_timer()
        # A `SmallDict`, as in `_add_missing`.
        held: Any = self._missing
        missing: SmallDict[MissingUnit | None] = held
        return missing.item if missing.more is None else min(held.more.values(), key=_order)

    def _take_timer(self, missing: MissingUnit) -> None:
        if self._timers:
            super()._take_timer(missing)

    def _drop_missing(self) -> None:
        """Give the memory back when nothing is missing; timers of missing units are void then."""
        if not self._missing:
            self._missing, self._timers = _NOTHING, _NO_TIMERS

    def _enter_object(self, object_id: int, now: float) -> bool:
        is_there = super()._enter_object(object_id, now)
        self._silent_at = _same(self._silent_at)
        return is_there

    def _abort(self, object_id: int, reason: str) -> None:
        """Abort an object: what follows of it has another effect here than on others at the position."""
        self.sync()
        super()._abort(object_id, reason)
        self.leave_chain()

    def _make_object(self, message: Data, sink: Sink) -> RxObject:
        return FastRxObject(message, sink)

    def _open(self, message: Data, now: float) -> RxObject | None:
        item = super()._open(message, now)
        if isinstance(item, FastRxObject):
            item.reach(min(self._unit, item.units) if message.object_id == self._object else item.units)
        return item

    def _advance_to_unit(self, item: RxObject, unit: int, now: float) -> bool:
        is_there = super()._advance_to_unit(item, unit, now)
        assert isinstance(item, FastRxObject)
        item.reach(min(unit, self._unit))
        return is_there
