"""One sender as a receiver knows it: its objects, its missing units and their timers, and what each message changes.

Units are sent in order, so every unit before the *position* (the unit that follows the last one known to be sent) that was not
received is missing. A unit is found missing by a gap, by an END or by another receiver's NACK; the `RepairPolicy` then decides
when its timer runs out and what happens at that time.
"""

from collections import deque
from collections.abc import MutableMapping
from functools import lru_cache
from heapq import heappop, heappush
from itertools import repeat
from math import inf
from operator import add
from typing import Final

from protocols.arq.messages import Data, End, Nack, units_of
from protocols.arq.repair_policy import MissingUnit, RepairPolicy, SenderAddress
from protocols.arq.rx_object import RxObject
from protocols.arq.session import Session
from protocols.events import ObjectAborted, ObjectOpened, ObjectReceived, SenderReset, SenderSilent
from protocols.machine import Address, Offer, Sink
from protocols.snapshot import Snapshot

__all__ = ["SenderState"]

Key = tuple[int, int]
"""A unit: (object id, unit)."""

# Equal for thousands of receivers of a simulation, which share one object.
_offer: Final = lru_cache(maxsize=64)(Offer)
_opened: Final = lru_cache(maxsize=64)(ObjectOpened)
_received: Final = lru_cache(maxsize=64)(ObjectReceived)
_sum: Final = lru_cache(maxsize=64)(add)

MOST_OBJECTS: Final = 1024
"""Objects that a message may span, or `keep` if that is more; messages that span more are ignored."""
MOST_MISSING: Final = 4096
"""Missing units of a sender that are requested at a time; others are requested when these have arrived or were given up."""
MOST_MISSING_IN_ALL: Final = 65_536
"""Missing units of all senders that are requested at a time. Each of n senders has an nth, at most `MOST_MISSING`, and at least
`FEW_MISSING`."""
FEW_MISSING: Final = 64
"""Missing units of a sender that are requested at a time whatever it sends; for more of them its units have to arrive."""
MORE_MISSING: Final = 8
"""Missing units that may be requested beyond `FEW_MISSING` when a unit arrives: what is lost at a loss of less than 89 %."""
MOST_LATER: Final = 1024
"""Largest number of ranges of units that are requested later; messages that name further missing units are ignored."""
MOST_UNITS_OPEN: Final = 1 << 27
"""Units of the incomplete objects of all senders, one bit of a bitmap each. Each of n senders has an nth; objects beyond are
not opened."""
_NO_LATER: Final[deque[tuple[int, int, int]]] = deque()
"""Shared by the states that request all that is missing; never modified."""


class SenderState:
    """The state of one sender, from the `first` message that was received of it at `address`."""

    __slots__ = (
        "_later",
        "_missing",
        "_object",
        "_objects",
        "_policy",
        "_session",
        "_silent_at",
        "_timers",
        "_unit",
        "last_heard",
        "origin",
        "replaced",
    )

    def __init__(self, session: Session, policy: RepairPolicy, first: Data | End, address: Address) -> None:
        self._session = session
        self._policy = policy
        self.origin = SenderAddress(first.sender, first.instance, address)
        self.replaced: int | None = None
        """The instance of the sender that was heard before this one; None for none."""
        self._objects: MutableMapping[int, RxObject | None] = {}
        """Objects sent so far and neither received nor aborted, by id in ascending order; None while no unit was received."""
        self._object, self._unit = first.first - 1, 0
        """The position: object and unit that are expected next."""
        self._missing: MutableMapping[Key, MissingUnit] = {}
        """Missing units that the policy requests."""
        self._timers: list[tuple[float, int, int]] = []
        """Heap of timers of missing units: (seconds, object id, unit). One is valid while it agrees with the unit's `due`."""
        self._later = _NO_LATER
        """Missing units that are requested later: object id, the first unit and the one behind the last."""
        self.last_heard = -inf
        self._silent_at = inf
        """When to check whether the sender is still heard; inf while no object is incomplete."""

    @property
    def reached(self) -> tuple[int, int]:
        """Object and unit that follow the last unit known to be sent."""
        return self._object, self._unit

    def note_address(self, address: Address) -> None:
        """Note the address that the sender's packets come from; requests go there."""
        self.origin.address = address

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the sender, and of the objects of it that are not complete, at `now` seconds."""
        parts = [self._object_snapshot(number, item) for number, item in self._objects.items()]
        return Snapshot("sender", str(self.origin.node), {"silence": now - self.last_heard}, {}, parts)

    def _object_snapshot(self, number: int, item: RxObject | None) -> Snapshot:
        if item is None:
            return Snapshot("object", str(number), states={"state": "unknown"})
        missing = (self._unit if number == self._object else item.units) - item.received
        values = {"size": item.size, "bytes_received": item.octets_received, "segments_missing": missing}
        return Snapshot("object", str(number), values, {"state": "incomplete" if missing else "receiving"})

    @property
    def octets_pending(self) -> int:
        """The bytes received of objects that are not complete."""
        return sum([item.octets_received for item in self._objects.values() if item is not None])

    # -- messages --------------------------------------------------------------------------------------------------

    def on_data(self, message: Data, now: float) -> bool:
        """Handle a unit of content. Returns whether it was stored, which a duplicate is not."""
        self.last_heard = now
        object_id, unit = message.object_id, message.unit
        in_order = object_id == self._object and unit == self._unit and unit
        item = self._objects.get(object_id) if in_order else None
        if item is not None and item.fits(message):
            # The short path for the next unit of an object that is being received.
            self._unit += 1
            return self._store(item, message)
        if not self._advance_to_object(message, now):
            return False
        if object_id not in self._objects:
            self._session.duplicates += 1
            return False
        item = self._objects[object_id] or self._open(message, now)
        if item is None:
            return False
        if not item.fits(message):
            self._session.ignored += 1
            return False
        if object_id == self._object and unit >= self._unit:
            if not self._advance_to_unit(item, unit, now):
                return False
            self._unit = unit + 1
        if item.has(unit):
            self._session.duplicates += 1
            return False
        return self._store(item, message)

    def on_end(self, message: End, now: float) -> None:
        """Handle the announcement that everything through an object was sent: what was not received of it is missing."""
        self.last_heard = now
        object_id = message.object_id
        if not self._advance_to_object(message, now) or object_id != self._object or object_id not in self._objects:
            return
        item = self._objects[object_id]
        if item is None:
            self._unit = max(self._unit, message.units)
            self._add_units(object_id, 0, 1, now)
        else:
            self._advance_to_unit(item, item.units, now)
        if self._later:
            self._request_later(now)

    def on_nack(self, nack: Nack, now: float) -> bool:
        """Handle another receiver's NACK: the unit was sent, and the policy may suppress a NACK of this receiver.

        Returns whether `due` may have changed.
        """
        item = self._objects.get(nack.object_id)
        is_ahead = nack.object_id == self._object and item is not None and self._unit <= nack.unit < item.units
        if is_ahead and item is not None:
            self._advance_to_unit(item, nack.unit + 1, now)
        missing = self._missing.get((nack.object_id, nack.unit))
        due = self._policy.on_overheard(nack, missing, now)
        if missing is None or due is None:
            return is_ahead
        self._start_timer(missing, due)
        return True

    def on_position(self, object_id: int, unit: int, now: float) -> None:
        """Handle another member's report of the position of the sender: what was not received before it is missing.

        A report that is more objects ahead than a sender repairs is ignored.
        """
        if object_id < self._object:
            return
        if object_id - self._object > self._session.config.keep:
            self._session.ignored += 1
            return
        if object_id > self._object and not self._enter_object(object_id, now):
            return
        if object_id not in self._objects:
            return
        item = self._objects[object_id]
        if item is not None:
            self._advance_to_unit(item, min(unit, item.units), now)
        elif unit > 0:
            self._add_units(object_id, 0, 1, now)

    @property
    def is_done(self) -> bool:
        """Whether no object of the sender is incomplete; its state can then be deleted without losing content."""
        return not self._objects

    def discard(self) -> None:
        """End the state of a sender that has restarted: incomplete objects are not repaired by its new instance."""
        self._later = _NO_LATER
        for object_id in list(self._objects):
            self._abort(object_id, "the sender restarted")
        self._session.ports.notify(SenderReset(self.origin.node))

    # -- timers ----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Serve the timers of missing units that ran out, and check whether the sender is still heard."""
        while (missing := self._next_timer()) is not None and missing.due <= now:
            self._take_timer(missing)
            if missing.tries > self._session.config.robust:
                self._abort(missing.object_id, "not repaired")
            else:
                self._start_timer(missing, self._policy.on_due(missing, now))
        if self._silent_at <= now:
            self._check_silence(now)
        if self._later:
            self._request_later(now)

    def due(self) -> float:
        """Return when `wake` is wanted, in seconds; inf for never."""
        missing = self._next_timer()
        return self._silent_at if missing is None else min(missing.due, self._silent_at)

    def _next_timer(self) -> MissingUnit | None:
        """Return the missing unit whose timer runs out first, if any has one. Forgets timers that are no longer valid."""
        timers = self._timers
        while timers:
            due, object_id, unit = timers[0]
            missing = self._missing.get((object_id, unit))
            if missing is not None and missing.due == due:
                return missing
            heappop(timers)
        return None

    def _take_timer(self, missing: MissingUnit) -> None:
        """Remove the first timer, which is that of this unit."""
        del missing
        heappop(self._timers)

    def _start_timer(self, missing: MissingUnit, due: float) -> None:
        missing.due = due
        heappush(self._timers, (due, missing.object_id, missing.unit))

    def _check_silence(self, now: float) -> None:
        """Abort incomplete objects when nothing was heard of the sender for the whole activity period."""
        self._silent_at = self.last_heard + self._activity_period()
        if self._silent_at <= now:
            self._session.ports.notify(SenderSilent(self.origin.node))
            self._later = _NO_LATER
            for object_id in list(self._objects):
                self._abort(object_id, "the sender is silent")

    def _activity_period(self) -> float:
        config = self._session.config
        return 3.0 * config.robust * config.timeout

    # -- the position ----------------------------------------------------------------------------------------------

    def _advance_to_object(self, message: Data | End, now: float) -> bool:
        """Move the position to the message's object, if it is behind; False if the message makes no sense and is ignored."""
        object_id = message.object_id
        if not 0 <= object_id - message.first <= max(MOST_OBJECTS, self._session.config.keep):
            self._session.ignored += 1
            return False
        self._forget_before(message.first)
        return object_id <= self._object or self._enter_object(object_id, now)

    def _enter_object(self, object_id: int, now: float) -> bool:
        """Move the position to the begin of an object: all objects before it were sent. False if `_may_miss` is."""
        if not self._may_miss():
            return False
        if self._object in self._objects:
            item = self._objects[self._object]
            if item is not None:
                self._advance_to_unit(item, item.units, now)
            else:
                self._add_units(self._object, 0, 1, now)
        for number in range(self._object + 1, object_id + 1):
            self._objects[number] = None
            if number < object_id:
                self._add_units(number, 0, 1, now)
        self._object, self._unit = object_id, 0
        if self._silent_at == inf:
            self._silent_at = now + self._activity_period()
        return True

    def _advance_to_unit(self, item: RxObject, unit: int, now: float) -> bool:
        """Move the position to a unit of the current object: all units before it were sent. False if `_may_miss` is."""
        del item
        if unit > self._unit:
            if not self._may_miss():
                return False
            # None of them was received: the position would be behind it.
            self._add_units(self._object, self._unit, unit, now)
            self._unit = unit
        return True

    # -- what is missing -------------------------------------------------------------------------------------------

    def _may_miss(self) -> bool:
        """Return whether further units may be missing; a message that shows them is ignored if they are too many."""
        if len(self._later) < MOST_LATER:
            return True
        self._session.ignored += 1
        return False

    def _room(self, more: int = 0) -> int:
        """Return how many more missing units may be requested now: up to `FEW_MISSING` in all, and `more` beyond that.

        `more` is `MORE_MISSING` when a unit arrives and 0 otherwise, so that a forged packet that names a long gap causes few
        requests, and a true gap is requested as units keep arriving.
        """
        most, count = min(MOST_MISSING, max(FEW_MISSING, MOST_MISSING_IN_ALL // self._session.senders)), len(self._missing)
        return max(min(most, max(FEW_MISSING, count + more)) - count, 0)

    def _add_units(self, object_id: int, first: int, end: int, now: float) -> None:
        """Note that the units from `first` to before `end` were sent and not received; have as many requested as may be."""
        if not self._policy.requests:
            self._session.data_lost += end - first
            return
        until = first if self._later else min(end, first + self._room())
        if first < until:
            # The number that was given, and not an equal one: in a simulation all receivers that miss the unit share it.
            self._add_missing(object_id, first, now)
            for unit in range(first + 1, until):
                self._add_missing(object_id, unit, now)
        if until < end:
            if not self._later:
                self._later = deque()
            units = object_id, until, end
            # The same END may come again and again.
            if not self._later or self._later[-1] != units:
                self._later.append(units)

    def _request_later(self, now: float, more: int = 0) -> None:
        """Request units that were put off, as many as there is room for; `more` as in `_room`."""
        later, most = self._later, len(self._missing) + self._room(more)
        while later and (room := most - len(self._missing)) > 0:
            object_id, first, end = later.popleft()
            if object_id not in self._objects:
                continue
            item, until = self._objects[object_id], min(end, first + room)
            if until < end:
                later.appendleft((object_id, until, end))
            for unit in range(first, until):
                if item is None or not item.has(unit):
                    self._add_missing(object_id, unit, now)
                else:
                    # It was lost, and repeated for others.
                    self._session.data_lost += 1

    def _add_missing(self, object_id: int, unit: int, now: float) -> None:
        key = (object_id, unit)
        if key not in self._missing:
            self._session.data_lost += 1
            missing = self._policy.missing_type(self.origin, object_id, unit)
            due = self._policy.on_missing(missing, now)
            if due is not None:
                self._missing[key] = missing
                self._start_timer(missing, due)

    def _forget_missing(self, key: Key) -> None:
        """Stop the timer of a unit that arrived, if it was missing."""
        if key in self._missing:
            del self._missing[key]

    def _forget_before(self, first: int) -> None:
        """Abort the objects before `first`, the oldest one the sender still repairs."""
        if self._later:
            self._later = deque(units for units in self._later if units[0] >= first)
        if self._objects and next(iter(self._objects)) < first:
            for object_id in [number for number in self._objects if number < first]:
                self._abort(object_id, "not served any more")
        if self._object < first - 1:
            for object_id in range(max(self._object + 1, first - max(MOST_OBJECTS, self._session.config.keep)), first):
                self._session.ports.notify(ObjectAborted(self.origin.node, object_id, "not served any more"))
                self._session.objects_aborted += 1
            self._object, self._unit = first - 1, 0

    # -- objects ---------------------------------------------------------------------------------------------------

    def _open(self, message: Data, now: float) -> RxObject | None:
        """Offer a new object to the application, and find missing what was sent of it; None if the application refuses it.

        None as well while other objects have too many units.
        """
        object_id, ports = message.object_id, self._session.ports
        units = units_of(message.size, message.segment)
        others = sum([item.units for item in self._objects.values() if item is not None])
        if others + units > MOST_UNITS_OPEN // self._session.senders:
            self._session.ignored += 1
            return None
        self._forget_missing((object_id, 0))
        ports.notify(_opened(self.origin.node, object_id, message.size))
        sink = ports.accept(_offer(self.origin.node, object_id, message.size, message.is_file))
        if sink is None:
            self._close(object_id)
            return None
        item = self._objects[object_id] = self._make_object(message, sink)
        sent, unit = min(self._unit, units) if object_id == self._object else units, message.unit
        self._add_units(object_id, 0, min(unit, sent), now)
        self._add_units(object_id, min(unit + 1, sent), sent, now)
        return item

    def _make_object(self, message: Data, sink: Sink) -> RxObject:
        return RxObject(message, sink)

    def _store(self, item: RxObject, message: Data) -> bool:
        """Store a unit that was not received before, and commit the object if it is complete; False if its sink failed."""
        object_id = message.object_id
        self._forget_missing((object_id, message.unit))
        session = self._session
        try:
            complete = item.store(message)
            if complete:
                item.sink.commit(item.info)
        except OSError as error:
            self._abort(object_id, f"sink: {error}")
            return False
        if complete:
            self._close(object_id)
            session.objects_received += 1
            session.octets_received = _sum(session.octets_received, item.size)
            session.ports.notify(_received(self.origin.node, object_id, item.size, item.info))
        if self._later:
            self._request_later(self.last_heard, MORE_MISSING)
        return True

    def _abort(self, object_id: int, reason: str) -> None:
        item = self._objects[object_id]
        if item is not None:
            self._session.octets_received += item.octets_received
            try:
                item.sink.abort()
            except OSError as error:
                reason = f"{reason}; sink: {error}"
        self._close(object_id)
        self._session.objects_aborted += 1
        self._session.ports.notify(ObjectAborted(self.origin.node, object_id, reason))

    def _close(self, object_id: int) -> None:
        """Forget an object that was received, refused or aborted, and its missing units."""
        item = self._objects[object_id]
        del self._objects[object_id]
        if self._missing:
            for key in self._missing_of(object_id, item):
                del self._missing[key]
        if not self._objects:
            self._silent_at = inf

    def _missing_of(self, object_id: int, item: RxObject | None) -> list[Key]:
        """Return the units of an object that are missing: of one that was not opened only its head can be."""
        sent = 1 if item is None else self._unit if object_id == self._object else item.units
        if sent < len(self._missing):
            return [key for key in zip(repeat(object_id), range(sent)) if key in self._missing]
        return [key for key in self._missing if key[0] == object_id]
