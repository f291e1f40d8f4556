"""Lockstep for SRM: members that received all of the source's new units advance together.

Repairs, requests and session messages come from any member and are in no chain. They are entered in a log of the group, which
is applied to a member before its next own input. At once they concern few: a request those that lack the unit, and those that
may start a repair timer for it; a repair those that lack the unit, and those whose repair timer runs; a session message nobody,
unless it reports a position of the source ahead of the group.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from protocols.arq.fast.messages import FastData, FastEnd, Position
from protocols.arq.messages import Nack
from protocols.fast.contract import FastState
from protocols.fast.units import UnitGroup, UnitMachine
from protocols.machine import Address, Message
from protocols.srm.fast.peers import Sample, Sightings, share_sightings
from protocols.srm.fast.policy import REPAIR, REPORT, REQUEST, SIGHTING, SOURCE, FastSrmPolicy, Heard
from protocols.srm.fast.unit_cache import FastUnitCache, share_units
from protocols.srm.messages import Repair, SessionMessage
from protocols.srm.repair_timers import key_of
from protocols.srm.wire import size_of

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["SrmGroup"]

LARGE: Final = 256
"""Members from which on they remember each other by numbers (`SharedPeers`), which takes less memory and more time."""
MOST_HEARD: Final = 64
"""Entries of the log from which on they are applied to all members."""
MOST_UNITS: Final = 1024
"""Units after which those that are in no cache any more are forgotten."""


class SrmGroup(UnitGroup):
    """See the module."""

    __slots__ = (
        "_active_at",
        "_behind",
        "_end",
        "_first",
        "_latest",
        "_log",
        "_paused",
        "_policies",
        "_sample",
        "_sightings",
        "_trim_at",
        "_units",
    )

    def __init__(self, machines: list[Any]) -> None:
        super().__init__(machines)
        self._policies: list[FastSrmPolicy] = [machine.policy for machine in machines]
        self._active_at = 0.0
        """When members in lockstep received content or a request last, in seconds."""
        self._behind: dict[Any, tuple[Any, float, float]] = {}
        """Members in lockstep that lost a request or a repair since the last unit, by state: the machine, and for this one when
        it received content or a request last, and a message of the source."""
        self._first = 0
        """The oldest object that the source repairs, as far as all members in lockstep know."""
        self._latest: FastData | None = None
        """The new unit delivered last."""
        self._log: list[Heard] = []
        self._paused: list[Any] = []
        """Members that began a pause of their session messages in lockstep; content and requests end it."""
        self._sightings: Sightings | None = None
        """The session messages received in a large group, stored once for all its members; None in a smaller one."""
        self._sample: Sample | None = None
        """Whom each member of a large group remembers; None in a smaller one."""
        if len(machines) >= LARGE:
            self._sightings, self._sample = share_sightings([policy.member for policy in self._policies], self._log)
        self._units = share_units([machine.policy.cache for machine in machines])
        """New units that the members received together."""
        self._end = self._units.end
        """The number of units that the members in lockstep received or left out."""
        self._trim_at = self._units.end + MOST_UNITS
        """The number of units from which on those that are in no cache any more are forgotten."""

    # -- messages --------------------------------------------------------------------------------------------------

    def tell(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a message to all members but those at the indices `lost_by`."""
        late = self.late
        if late is None:
            self._hear(message, source, to, now, lost_by)
            return
        if type(message) is SessionMessage and not self._diverged and not self.is_ahead(message):
            # It concerns no position, so the group may be advanced later.
            machines = self._machines
            self._log_session(message, now, [machines[index] for index in lost_by])
            return
        late.sync()
        position = self._position
        stood = self.stands_at(position)
        self._hear(message, source, to, now, lost_by)
        if not stood or not self.stands_at(position):
            late.wake_in_lockstep()

    def _hear(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        kind = type(message)
        if kind is FastData:
            assert isinstance(message, FastData)
            self._hear_unit(message, source, to, now, lost_by)
            return
        machines = self._machines
        lost = [machines[index] for index in lost_by]
        if kind is SessionMessage:
            assert isinstance(message, SessionMessage)
            self._hear_session(message, source, to, now, lost)
        elif kind is Repair:
            assert isinstance(message, Repair)
            self._hear_repair(message, source, to, now, lost)
        elif isinstance(message, Nack):
            self._hear_request(message, source, to, now, lost)
        else:
            if kind is FastEnd:
                assert isinstance(message, FastEnd)
                self._first = message.first
                self._release_all([machine for machine, _, _ in self._behind.values()])
            self._deliver(message, source, to, now, lost_by)

    def _hear_unit(self, message: FastData, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a new unit of the source."""
        if self._paused:
            self._end_pauses()
        if lost_by:
            machines = self._machines
            self._release_all([machines[index] for index in lost_by])
        self._behind.clear()
        is_shared, is_next = self._units.add(message), message.expects is self._position
        if is_next:
            self._put_unit(message, is_shared)
        self._first, self._active_at, self._latest = message.first, now, message
        if is_next and not self._diverged and not lost_by:
            # As `_deliver`, when nobody is to be called.
            self._position, self._last_heard = message.next_state, now
        else:
            self._deliver(message, source, to, now, lost_by)
        self._end = self._units.end

    def _put_unit(self, message: FastData, is_shared: bool) -> None:
        """Put a new unit into the caches of the members in lockstep."""
        units = self._units
        self._end = units.end
        if not is_shared:
            for machine in self._machines:
                state: Any = machine.fast_state
                if state.coordinator is self:
                    state._policy.cache.advance(units.end)
                    state._policy.cache.put(message)
        else:
            self._trim_units()

    def _trim_units(self) -> None:
        """Forget units that are in no cache any more, from time to time."""
        units = self._units
        if units.end >= self._trim_at:
            self._settle()
            units.trim()
            self._trim_at = units.end + max(MOST_UNITS, (units.end - units.start) // 4)

    def _hear_session(self, message: SessionMessage, source: Address, to: Address, now: float, lost: list[Any]) -> None:
        """Deliver a session message: it advances nobody, but may report that the source is ahead."""
        if self.is_ahead(message):
            self._call_all(message, None, source, to, now, lost)
            return
        self._log_session(message, now, lost)
        called, self._diverged = self._diverged, []
        self._call_diverged(called, message, source, to, now, lost)

    def _log_session(self, message: SessionMessage, now: float, lost: list[Any]) -> None:
        """Enter a session message in the log."""
        log = self._log
        self._leave_out(lost, len(log))
        sightings, sample, node = self._sightings, self._sample, message.node
        is_source = bool(message.positions) and message.positions[0][0] == node
        if sightings is not None and sample is not None:
            of = sightings.note(message, now), sightings.slot_of(node), round(now * 1e6), sample.of(node, is_source=is_source)
            log.append((SIGHTING, message, now, of, size_of(message)))
        else:
            log.append((SOURCE if is_source else REPORT, message, now, round(now * 1e6), size_of(message)))
        self._trim()

    def is_ahead(self, message: SessionMessage) -> bool:
        """Return whether a position of the source in a session message is beyond that of the group."""
        at = self._position
        if not isinstance(at, Position):
            return False
        for node, instance, object_id, unit in message.positions:
            if (node, instance) == at.origin and (object_id, unit) > (at.object_id, at.unit):
                return True
        return False

    def pause(self, machine: Any) -> None:
        """Note that a member in lockstep has paused its session messages."""
        self._paused.append(machine)
        if self.late is not None:
            self.late.wake_in_lockstep()

    def _leave_out(self, lost: list[Any], number: int) -> None:
        """Let members in lockstep that lost the next message, entry `number` of the log, be up to date without it."""
        for machine in lost:
            state: Any = machine.fast_state
            if state.coordinator is self:
                policy: FastSrmPolicy = state._policy
                policy.replay(self._log, number)
                policy.replayed = number + 1

    def _end_pauses(self) -> None:
        """Let members diverge that pause their session messages: content and requests change them more than others."""
        self._release_all(self._paused)
        self._paused.clear()

    def _on_activity(self, lost: list[Any], now: float, is_repair: bool) -> list[Any]:
        """Note a request or a repair of the source's content, the next entry of the log; return the diverged members."""
        if self._paused:
            self._end_pauses()
        behind = self._behind
        for state, (machine, _, heard) in list(behind.items()):
            if machine not in lost:
                behind[state] = machine, now, now if is_repair else heard
        if lost:
            self._leave_out(lost, len(self._log))
            for machine in lost:
                state = machine.fast_state
                if state.coordinator is self and state not in behind:
                    behind[state] = machine, self._active_at, self._last_heard
        self._active_at = now
        if is_repair:
            self._last_heard = now
        called, self._diverged = self._diverged, []
        return called

    def _subject(self, message: Nack | Repair) -> tuple[int, int] | None:
        """Return the unit of the source that a request or a repair is about; None if the group has not come to it."""
        at, unit = self._position, (message.object_id, message.unit)
        if not isinstance(at, Position) or (message.sender, message.instance) != at.origin or unit >= (at.object_id, at.unit):
            return None
        return unit

    def _hear_request(self, message: Nack, source: Address, to: Address, now: float, lost: list[Any]) -> None:
        subject = self._subject(message)
        if subject is None:
            self._call_all(message, None, source, to, now, lost)
            return
        called = self._on_activity(lost, now, False)
        log, key, lacking = self._log, key_of(message.sender, message.object_id, message.unit), self._lacking.get(subject, ())
        count, end, number = len(log), self._end, self._units.number_of(message)
        log.append((REQUEST, message, now, None, None))
        everyone: list[Any] = self._machines
        for index, policy in enumerate(self._policies):
            machine = everyone[index]
            state: FastState = machine.fast_state
            if state.coordinator is not self or machine in lost:
                continue
            lacks = machine in lacking
            if lacks or not policy.answers(key):
                if policy.replayed != count:
                    policy.replay(log, count)
                policy.replayed = count + 1
                held: Any = policy.cache
                cache: FastUnitCache = held
                cache.advance(end)
                # As of any class: the compiler can't read a float through a trait.
                member: Any = machine
                if lacks:
                    member.overhear(message, now)
                elif policy.on_request(message, key, cache.holds(number), now) and policy.deadline < member.deadline:
                    member._due(policy.deadline)
        self._call_diverged(called, message, source, to, now, lost)
        self._trim()

    def _hear_repair(self, message: Repair, source: Address, to: Address, now: float, lost: list[Any]) -> None:
        subject = self._subject(message)
        if subject is None or message.first > self._first:
            self._call_all(message, None, source, to, now, lost)
            return
        lacking = self._lacking.get(subject)
        if lacking is not None:
            concerned = [machine for machine in lacking if machine not in lost]
            self._release_all(concerned)
            for machine in concerned:
                del lacking[machine]
            if not lacking:
                del self._lacking[subject]
        called = self._on_activity(lost, now, True)
        log, key = self._log, key_of(message.sender, message.object_id, message.unit)
        log.append((REPAIR, message, now, key, message.distance * 1e-6))
        everyone: list[Any] = self._machines
        for index, policy in enumerate(self._policies):
            if not policy.answers(key):
                continue
            machine = everyone[index]
            if machine.fast_state.coordinator is self and machine not in lost:
                policy.replay(log, len(log))
                machine.set_deadline()
        self._call_diverged(called, message, source, to, now, lost)
        self._trim()

    def _call_diverged(
        self, machines: list[Any], message: Message, source: Address, to: Address, now: float, lost: list[Any]
    ) -> None:
        """Deliver a message to members that had diverged, but for those that lost it; some may be at the group's position."""
        if lost and machines:
            left_out = set(lost)
            self._diverged += [machine for machine in machines if machine in left_out]
            machines = [machine for machine in machines if machine not in left_out]
        for machine in machines:
            machine.receive(message, source, to, now)
        self._join(machines)

    # -- lookahead -------------------------------------------------------------------------------------------------

    def pass_on(
        self, burst: "Burst", nth: int, number: int, source: Address, to: Address, now: float, lost_by: Sequence[int]
    ) -> None:
        """Deliver burst message `nth`."""
        del number
        self._hear(burst.message(nth), source, to, now, lost_by)

    def stands_at(self, position: object) -> bool:
        """Return whether all members are at this position, so that a unit that expects it does no more than to advance them."""
        return self._position is position and not self._diverged and not self._paused and not self._units.is_mixed

    def move(self, position: object, heard: float, following: int) -> None:
        """Advance the group over units that nobody lost, the last received at `heard` seconds."""
        before, model, units = self._position, self._latest, self._units
        assert isinstance(before, Position)
        assert isinstance(position, Position)
        assert model is not None
        units.add_run(model, before.unit, position.unit - before.unit)
        self._end, self._active_at = units.end, heard
        self._behind.clear()
        super().move(position, heard, following)
        self._trim_units()

    # -- membership ------------------------------------------------------------------------------------------------

    def dissolve(self) -> None:
        """Make every machine independent; the group is not used any more."""
        super().dissolve()
        if self._sightings is not None:
            self._sightings.log = None
        self._units.in_use = False

    def refresh(self, state: Any) -> None:
        """Bring a member in lockstep up to date."""
        if self.late is not None:
            self.late.sync()
        self._refresh(state)

    def _refresh(self, state: Any) -> None:
        policy: FastSrmPolicy = state._policy
        state.position = self._position
        if state in self._behind:
            _, policy.member.active_at, state.last_heard = self._behind[state]
        else:
            policy.member.active_at, state.last_heard = self._active_at, self._last_heard
        end = len(self._log)
        if policy.replayed != end:
            policy.replay(self._log, end)
        cache: FastUnitCache = state._policy.cache
        if cache.end != self._end:
            cache.advance(self._end)

    def _update(self, machine: UnitMachine) -> None:
        state: Any = machine.fast_state
        self._refresh(state)
        self._behind.pop(state, None)
        state.coordinator = None

    def _join(self, machines: Sequence[Any]) -> None:
        """Take members at the group's position into lockstep, listed by the units they lack; the others have diverged."""
        position, heard, active, lacking = self._position, self._last_heard, self._active_at, self._lacking
        for machine in machines:
            state: Any = machine.fast_state
            if state.position is not position:
                self._diverged.append(machine)
                continue
            policy: FastSrmPolicy = state._policy
            if policy.member.active_at != active or state.last_heard != heard:
                self._behind[state] = machine, policy.member.active_at, state.last_heard
            if policy.is_paused:
                self._paused.append(machine)
            policy.replayed = len(self._log)
            state._policy.cache.skip(self._units.end)
            state.coordinator = self
            if not state.is_complete:
                for unit in state.lacks():
                    lacking.setdefault(unit, {})[machine] = None

    def _release_all(self, machines: Sequence[Any]) -> None:
        """Let those in lockstep diverge."""
        for machine in machines:
            if machine.fast_state.coordinator is self:
                self._update(machine)
                self._diverged.append(machine)

    def _settle(self) -> None:
        """Bring all members in lockstep up to date, and empty the log."""
        for machine in self._machines:
            state: Any = machine.fast_state
            if state.coordinator is self:
                self._refresh(state)
                state._policy.replayed = 0
        self._log.clear()

    def _trim(self) -> None:
        if len(self._log) >= MOST_HEARD:
            self._settle()
