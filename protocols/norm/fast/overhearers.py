"""The receivers of a group that a NACK may suppress, found by the first missing symbol that nobody requested yet."""

from collections.abc import Sequence
from math import inf
from typing import Any

from protocols.fast.contract import FastMachine
from protocols.fast.index import PartIndex
from protocols.fast.overhearers import Overhearers, OverhearingGroup
from protocols.machine import Address, Message
from protocols.norm.fast.nack_log import SYMBOLS, FastNackProcess, NackLog, simple_item
from protocols.norm.fast.sender_state import FastSenderState
from protocols.norm.messages import Fti, Nack
from protocols.norm.position import Point, TransmitPosition
from protocols.norm.repair_requests import RequestedRepairs

__all__ = ["NormOverhearers"]


class NormOverhearers(Overhearers):
    """Receivers in back-off by a symbol each that they miss and that nobody requested: without it they are not suppressed.

    A receiver is asked at every NACK if that is not simple, if it is about to answer a probe, or if parity repairs its object.
    """

    __slots__ = ("_by_symbol", "_irregular", "_known", "_log")

    def __init__(self, group: OverhearingGroup) -> None:
        super().__init__(group)
        self._by_symbol = PartIndex()
        # Receivers of an indexed object that are asked at every NACK nevertheless; `machines` are those of other objects.
        self._irregular: list[FastMachine] = []
        self._log = NackLog()
        # Any receiver of the sender.
        self._known: FastSenderState | None = None

    def __bool__(self) -> bool:
        return bool(self.machines or self._irregular or self._by_symbol.rows)

    def add(self, machines: Sequence[FastMachine]) -> None:
        """Add receivers in lockstep that are attentive, or that may now wait for other NACKs."""
        self._known = machines[0].fast_state
        indexed = []
        for machine in machines:
            state: FastSenderState = machine.fast_state
            item = state.objects.item
            if item is not None and not item.fti.is_coded:
                indexed.append(machine)
        if not indexed:
            self.machines += machines
            return
        found = set(indexed)
        self.machines += [machine for machine in machines if machine not in found]
        self._irregular += [machine for machine in indexed if not self._add_by_symbol(machine, machine.fast_state)]

    def _add_by_symbol(self, machine: FastMachine, state: FastSenderState) -> bool:
        """List a receiver by the first missing symbol that nobody requested; return False if that is not simple."""
        process, response, item = state.nack_process, state.probe_response, simple_item(state.objects)
        if item is None or not isinstance(process, FastNackProcess) or process.due == inf:
            return False
        is_simple = response is None or response.due == inf
        if not process.is_suppressible:
            # It overhears nothing.
            return is_simple
        process.follow(self._log)
        if not is_simple:
            return False
        uncovered: Point | None = None
        missing, key = item.missing_symbols, state.objects.key
        if process.has_heard_nothing and missing is not None:
            uncovered = key, missing.key, (missing.item & -missing.item).bit_length() - 1
        elif process.is_regular:
            uncovered = process.first_uncovered(key, item)
        if uncovered is not None:
            self._by_symbol.add_one(uncovered[:2], uncovered[2], machine)
        return uncovered is not None

    def clear(self) -> None:
        """Remove all machines, which have left the group."""
        super().clear()
        self._irregular.clear()
        self._by_symbol.clear()

    def overhear(
        self,
        message: Message,
        source: Address,
        to: Address,
        now: float,
        diverged: list[FastMachine],
        lost_by: dict[FastMachine, None],
        position: Any,
        last_heard: float,
    ) -> list[FastMachine]:
        """Deliver feedback to all but `lost_by`; return machines of an indexed object that are suppressed."""
        known, asked, irregular = self._known, self.machines, self._irregular
        requested: RequestedRepairs | None = None
        if self._log.is_followed and isinstance(message, Nack) and known is not None and known.is_addressed(message):
            requested = known.requested_repairs(message)
            self._enter(requested, now, lost_by)
            irregular += self._group.latest_losers()
        for machine in diverged:
            if machine not in lost_by:
                machine.receive(message, source, to, now)
        attentive: list[FastMachine] = []
        others: list[FastMachine] = []
        if asked:
            self.machines, others = self._ask(asked, message, source, to, now, lost_by, position, last_heard)
        if irregular:
            self._irregular = []
            attentive, more = self._ask(irregular, message, source, to, now, lost_by, position, last_heard)
            others += more
        if requested is not None and self._by_symbol.rows:
            others += self._suppress({*asked, *irregular}, lost_by, requested, now, position, last_heard)
        if attentive:
            # Behind `_suppress`, which takes them from the index.
            self.add(attentive)
        return others

    def _enter(self, requested: RequestedRepairs, now: float, lost_by: dict[FastMachine, None]) -> None:
        """Enter a NACK in the log."""
        group, log = self._group, self._log
        if log.forget(now):
            self._by_symbol.keep(lambda machine: machine.fast_state.coordinator is group and machine.fast_state.attentive)
        log.append(requested, now)
        for machine in lost_by:
            state: FastSenderState = machine.fast_state
            process = state.nack_process
            if isinstance(process, FastNackProcess):
                process.miss_last(log)

    def _suppress(
        self,
        called: set[FastMachine],
        lost_by: dict[FastMachine, None],
        requested: RequestedRepairs,
        now: float,
        position: TransmitPosition,
        last_heard: float,
    ) -> list[FastMachine]:
        """Suppress receivers for which the last NACK suffices, and return them. Leave out the `called` and `lost_by`."""
        group, suppressed = self._group, []
        fti: Fti | None = None
        boundary: Point = position.tx_point
        for machine in dict.fromkeys(self._take(requested, position.tx_point)):
            state: FastSenderState = machine.fast_state
            if state.coordinator is not group or not state.attentive or machine in called:
                continue
            process = state.nack_process
            is_open = isinstance(process, FastNackProcess) and now < process.backoff_end and process.suppressed_to is None
            if not isinstance(process, FastNackProcess) or not is_open or machine in lost_by:
                self.add([machine])
                continue
            is_behind = group.is_behind(machine)
            assert not is_behind, "those are called singly"
            item = simple_item(state.objects)
            if item is None or item.fti is not fti:
                state.position, fti = position, item.fti if item is not None else None
                boundary = state.boundary()
            if item is not None and boundary[0] == state.objects.key and process.is_regular:
                uncovered = process.first_uncovered(boundary[0], item)
                if uncovered is not None and uncovered < boundary:
                    self._by_symbol.add_one(uncovered[:2], uncovered[2], machine)
                    continue
            elif not process.covers(boundary, state.objects):
                self.add([machine])
                continue
            state.position, state.last_heard = position, last_heard
            process.suppress(boundary)
            state.note_suppression(process)
            machine.settle(state)  # type: ignore[attr-defined]
            suppressed.append(machine)
        return suppressed

    def _take(self, requested: RequestedRepairs, tx_point: Point) -> list[FastMachine]:
        """Remove and return the receivers that wait for what is requested, or for nothing that was sent before `tx_point`."""
        index, (object_id, block, symbol) = self._by_symbol, tx_point
        if requested.objects or requested.blocks:
            return index.take_all()
        taken: list[FastMachine] = []
        for unit, mask in requested.units():
            taken += index.take(unit, mask & SYMBOLS)
        for unit in [each for each in index.rows if each[0] != object_id or each[1] >= block]:
            is_same = unit == (object_id, block)
            taken += index.take(unit, SYMBOLS >> symbol << symbol if is_same else 0)
        return taken
