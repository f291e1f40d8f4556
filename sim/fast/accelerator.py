"""The fast engine's accelerator: lockstep groups of receivers, and packets scheduled ahead for senders that plan bursts."""

from collections.abc import Sequence
from typing import Any, Final

from protocols.fast.contract import FastMachine, FastState
from protocols.fast.group import MachineGroup
from protocols.machine import Address, Machine, Message
from sim.acceleration import Accelerator, deliver_each
from sim.endpoint import Endpoint
from sim.fast.batches import Batches
from sim.fast.lookahead import Lookahead
from sim.fast.machines import are_hosted, begins_chain, fast_machine, fast_machines, make_group
from sim.fast.shared_hop import SharedHop
from sim.fast.tree import Tree, tree_of
from sim.fast.unnoticed import Unnoticed
from sim.flight import Flight, Hop, Route
from sim.group_members import GroupMembers
from sim.host import SimHost
from sim.link import Link, LinkGroup
from sim.timers import KernelHost

__all__ = ["LockstepAccelerator"]

LOCKSTEP_MINIMUM: Final = 4
"""The smallest number of machines that is worth a lockstep group."""


class LockstepAccelerator(Accelerator):
    """See `sim.acceleration`. Without `look_ahead` every packet is sent and forwarded one by one."""

    def __init__(self, *, look_ahead: bool) -> None:
        super().__init__()
        self._look_ahead = look_ahead
        # By route and place of the host; None where packets can't be scheduled ahead.
        self._lookaheads: dict[tuple[Route, int], Lookahead | None] = {}
        # By link.
        self._shared: dict[Hop, SharedHop] = {}
        self._active: list[Lookahead] = []
        self._batches = Batches()
        self._counts_later = Unnoticed(self.unnoticed)

    def deliver(self, members: GroupMembers, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """See `Accelerator`; a lockstep group is made at the first message of a chain."""
        # As any object, because to check its type here takes longer than most deliveries.
        known: Any = members.lockstep
        lockstep: MachineGroup | None = known
        if lockstep is None:
            machines = members.machines
            assert machines is not None, "the members are packed before a delivery"
            if len(machines) >= LOCKSTEP_MINIMUM and begins_chain(flight.message):
                lockstep = members.lockstep = self._make_group(members, flight.route.to)
            if lockstep is None:
                deliver_each(machines, flight, lost_by, now)
                return
        lockstep.tell(flight.message, flight.source, flight.route.to, now, lost_by)

    def _make_group(self, members: GroupMembers, to: Address) -> MachineGroup | None:
        group = make_group(members, to)
        if group is not None and are_hosted(members.machines or ()):
            group.send_batch = self._batches.send
        return group

    def wake(self, host: KernelHost, now: float) -> None:
        """See `Accelerator`; the machine may go on with a burst it planned, or plan another one."""
        machine = fast_machine(host.machine)
        if machine is None:
            for part in fast_machines(host.machine):
                each: Machine = part
                if each.deadline <= now and part.fast_state.coordinator is not None:
                    part.wake_in_lockstep(now)
            host.machine.wake(now)
            return
        state: FastState = machine.fast_state
        if state.coordinator is not None:
            machine.wake_in_lockstep(now)
            if machine.plans_bursts:
                # A machine outside of a group has planned after its last wake-up.
                self._plan(host, machine)
        # As a `Machine`: the compiler can't read a float through a trait.
        if host.machine.deadline <= now:
            machine.wake(now)
            if machine.plans_bursts:
                self._plan(host, machine)

    def before_input(self, machine: Machine) -> None:
        """See `Accelerator`."""
        found = fast_machine(machine)
        if found is not None:
            found.leave_lockstep()
        else:
            for part in fast_machines(machine):
                part.leave_lockstep()

    def before_receive(self, machine: Machine, message: Message) -> None:
        """See `Accelerator`; a machine that plans bursts updates them in `receive`, as when a group gets the message."""
        found = fast_machine(machine)
        if found is None:
            for part in fast_machines(machine):
                part.leave_lockstep_for(message)
        elif not found.plans_bursts:
            found.leave_lockstep_for(message)

    def takes_feedback_only(self, machine: Machine) -> bool:
        """See `Accelerator`."""
        found = fast_machine(machine)
        return found is not None and found.takes_feedback_only

    def unnoticed_begin(self, fabric: Any) -> None:
        """See `Accelerator`."""
        self._counts_later.begin(fabric)

    def listeners_change(self, host: KernelHost) -> None:
        """See `Accelerator`."""
        assert isinstance(host, SimHost)
        self._counts_later.restore(host)
        for shared in self._shared.values():
            if shared.endpoint is host.endpoint:
                shared.listeners_change(host.member)

    def route_changed(self, route: Route) -> None:
        """See `Accelerator`."""
        for known, place in [key for key in self._lookaheads if key[0] is route]:
            lookahead = self._lookaheads.pop((known, place))
            if lookahead is not None:
                lookahead.unfold()

    def catch_up(self) -> None:
        """See `Accelerator`."""
        for lookahead in self._active:
            lookahead.catch_up()
        for shared in self._shared.values():
            shared.catch_up()
        self._batches.catch_up()
        self._counts_later.catch_up()

    def stop_lookahead(self) -> None:
        """See `Accelerator`."""
        self._look_ahead = False
        for lookahead in list(self._active):
            lookahead.unfold()

    def _plan(self, host: KernelHost, machine: FastMachine) -> None:
        """Schedule what a host's machine plans to send, if it can be on the route that the host used last."""
        assert isinstance(host, SimHost)
        route = host.endpoint.route
        if route is None or not self._look_ahead:
            return
        key = (route, host.place)
        lookahead = self._lookaheads.get(key)
        if lookahead is None and key not in self._lookaheads:
            tree = tree_of(route, host) if type(host) is SimHost else None
            if tree is not None:
                self._share_links(tree, host, route.to)
            lookahead = None if tree is None else Lookahead(host, route, tree, self._active, self._plan)
            self._lookaheads[key] = lookahead
        if lookahead is not None:
            lookahead.plan(machine)

    def _share_links(self, tree: Tree, host: SimHost, to: Address) -> None:
        """Let several senders schedule packets on the last links of a tree that another tree has, or that lead to a sender."""
        for branch in tree.leaves:
            link = branch.link
            assert isinstance(link, (Link, LinkGroup))
            assert isinstance(link.head, Endpoint)
            if link not in self._shared:
                others = [key for key, other in self._lookaheads.items() if other is not None and other.tree.ends_with(link)]
                if others or link.head is host.endpoint or link.head.unconcerned.get(to):
                    self._shared[link] = SharedHop(link)
                for key in others:
                    # A new one, with the shared link, is made when it is needed.
                    lookahead = self._lookaheads.pop(key)
                    assert lookahead is not None
                    lookahead.unfold()
            if link in self._shared:
                branch.share(self._shared[link])
