"""The machines of a lockstep group that feedback may concern."""

from collections.abc import Container, Sequence
from typing import Protocol

from protocols.fast.contract import Coordinator, FastMachine, FastState, Overheard
from protocols.machine import Address, Message

__all__ = ["Overhearers", "OverhearingGroup"]


class OverhearingGroup(Coordinator, Protocol):
    """A lockstep group as its overhearers see it."""

    def with_losses(self) -> Container[FastMachine]:
        """Return the machines with losses that they have not noticed."""

    def is_behind(self, machine: FastMachine) -> bool:
        """Apply the losses a machine could notice; if there are others, put its position before them and return True."""

    def latest_losers(self) -> list[FastMachine]:
        """Return the machines that lost the latest message of the group, or earlier ones, and have not noticed it."""


class Overhearers:
    """Attentive machines. This one calls each of them at each feedback; a protocol may find those that it concerns."""

    __slots__ = ("_group", "machines")

    def __init__(self, group: OverhearingGroup) -> None:
        self._group = group
        self.machines: list[FastMachine] = []
        """Those that every feedback may concern; some repeatedly."""

    def __bool__(self) -> bool:
        return bool(self.machines)

    def add(self, machines: Sequence[FastMachine]) -> None:
        """Add machines in lockstep that have become attentive, or that may now wait for other feedback."""
        self.machines += machines

    def clear(self) -> None:
        """Remove all machines, which have left the group."""
        self.machines.clear()

    def overhear(
        self,
        message: Message,
        source: Address,
        to: Address,
        now: float,
        diverged: list[FastMachine],
        lost_by: dict[FastMachine, None],
        position: object,
        last_heard: float,
    ) -> list[FastMachine]:
        """Deliver feedback to all but `lost_by`, also to machines that have diverged.

        Returns machines in lockstep that may wait for something else now. `position` and `last_heard` are those of the group.
        """
        for machine in diverged:
            if machine not in lost_by:
                machine.receive(message, source, to, now)
        self.machines, others = self._ask(self.machines, message, source, to, now, lost_by, position, last_heard)
        return others

    def _ask(
        self,
        machines: list[FastMachine],
        message: Message,
        source: Address,
        to: Address,
        now: float,
        lost_by: Container[FastMachine],
        position: object,
        last_heard: float,
    ) -> Overheard:
        """Deliver feedback to those of some machines that are in lockstep and attentive, but not to `lost_by`."""
        group, behind = self._group, self._group.with_losses()
        attentive: list[FastMachine] = []
        others: list[FastMachine] = []
        called: list[FastMachine] = []
        for machine in dict.fromkeys(machines):
            state: FastState = machine.fast_state
            if state.coordinator is group and state.attentive:
                called.append(machine)
        special = [machine for machine in called if machine in lost_by or machine in behind]
        if special:
            # Not those that only had losses that they could notice.
            apart = dict.fromkeys([machine for machine in special if machine in lost_by or group.is_behind(machine)])
            called = [machine for machine in called if machine not in apart]
            for machine in apart:
                if machine not in lost_by:
                    machine.receive(message, source, to, now)
                    others.append(machine)
                state = machine.fast_state
                if state.attentive:
                    attentive.append(machine)
        if called:
            still, more = called[0].overhear_batch(called, message, source, to, now, position, last_heard)
            attentive += still
            others += more
        return attentive, others
