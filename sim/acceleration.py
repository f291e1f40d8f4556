"""The hooks at which an engine may replace the handling of single packets by shortcuts with equal results.

The simulator calls an `Accelerator` wherever the fast engine can avoid a call for each packet and machine. The strict engine
has `NoAccelerator`, which makes the plain calls at each hook; the fast engine's accelerator is in `sim.fast`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from mypy_extensions import trait

from protocols.machine import Machine, Message
from sim.flight import Flight, MarkedFlight, Route
from sim.group_members import GroupMembers
from sim.timers import KernelHost

__all__ = ["Accelerator", "NoAccelerator", "Passing", "Reservation", "deliver_each"]

# Base classes and no protocols: the compiled build calls methods of known classes at a third of the cost.


@trait
class Reservation(ABC):
    """Packets in flight over a link that were scheduled on it ahead of time, instead of being offered one by one."""

    @abstractmethod
    def before_offer(self, link: object, flight: Flight) -> None:
        """Another packet is offered to the link: bring the link up to date, or cancel what is affected."""


Passing: TypeAlias = "tuple[float, int, Flight]"
"""A packet on its way to a host on which it has no effect: when it arrives (seconds), the host's place, the packet."""


class Accelerator(ABC):
    """Base of the hooks; the methods without an implementation are those every engine needs."""

    def __init__(self) -> None:
        self.unnoticed: list[Passing] = []
        """Packets whose deliveries are counted later, instead of an event for each (`takes_feedback_only`)."""

    @abstractmethod
    def deliver(self, members: GroupMembers, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver a packet to the machines of a group, except those at the indices `lost_by`, which ascend."""

    @abstractmethod
    def wake(self, host: KernelHost, now: float) -> None:
        """Handle the deadline of a host's machine, which has come."""

    def before_input(self, machine: Machine) -> None:
        """Bring a machine up to date before an input that goes to it alone."""

    def before_receive(self, machine: Machine, message: Message) -> None:
        """Bring a machine up to date before a message that goes to it alone."""

    def takes_feedback_only(self, machine: Machine) -> bool:
        """Return whether nothing else that is sent to a group has an effect on the machine, so that it may pass unnoticed."""
        del machine
        return False

    def unnoticed_begin(self, fabric: Any) -> None:
        """`unnoticed` is not empty any more; `fabric` is the network's `sim.fabric.Fabric`."""

    def listeners_change(self, host: KernelHost) -> None:
        """Note that a host is about to join or leave a group."""

    def route_changed(self, route: Route) -> None:
        """Note that the links of a route are about to be computed anew."""

    def catch_up(self) -> None:
        """Bring the counters of links, traffic and deliveries up to date."""

    def stop_lookahead(self) -> None:
        """Forward every packet one by one from now on, those scheduled ahead included: links are about to change."""


class NoAccelerator(Accelerator):
    """The null object: every machine receives every packet by a call of its own."""

    def deliver(self, members: GroupMembers, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """See `Accelerator`."""
        machines = members.machines
        assert machines is not None, "the members are packed before a delivery"
        deliver_each(machines, flight, lost_by, now)

    def wake(self, host: KernelHost, now: float) -> None:
        """See `Accelerator`."""
        host.machine.wake(now)


def deliver_each(machines: list[Machine], flight: Flight, lost_by: Sequence[int], now: float) -> None:
    """Call `receive` of all machines but those at the ascending indices `lost_by`."""
    message, source, to = flight.message, flight.source, flight.route.to
    if isinstance(flight, MarkedFlight):
        missed = set(lost_by)
        for position, machine in enumerate(machines):
            if position not in missed:
                machine.receive_marked(message, source, to, now)
        return
    begin = 0
    for position in lost_by:
        for machine in machines[begin:position]:
            machine.receive(message, source, to, now)
        begin = position + 1
    for machine in machines[begin:] if begin else machines:
        machine.receive(message, source, to, now)
