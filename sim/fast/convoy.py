"""Feedback of many hosts to one address as one event for each instant and link.

The members of a counted group that answer one packet send at one instant over equal links, so their packets reach the switch
together. There they queue for the next link one behind the other, and their arrivals at a host behind it are arithmetic. If the
receiver only notes them (`FeedbackBatch.is_noted_by`) they are delivered late: before its next other input, or when the last
has arrived. Whatever is not as simple is sent packet by packet.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import Any

from protocols.fast.feedback import FeedbackBatch
from protocols.machine import Packet
from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.fast.machines import fast_machine
from sim.flight import Flight, Grouped, Hop, Route
from sim.host import SimHost
from sim.link import Link
from sim.occurrence import ARRIVAL, Occurrence, post
from sim.switch import Switch

__all__ = ["Convoys", "Inbox"]


class Convoy:
    """Packets of a batch, from number `first` on, which arrive somewhere at one time; `serial` is that of packet 0."""

    __slots__ = ("batch", "count", "endpoint", "first", "route", "serial")

    def __init__(self, batch: FeedbackBatch, endpoint: Endpoint, route: Route, serial: int, first: int, count: int) -> None:
        self.batch = batch
        self.endpoint = endpoint
        """The node of hosts that sent them."""
        self.route = route
        self.serial = serial
        self.first = first
        self.count = count

    def host(self, number: int) -> SimHost:
        """Return the host that sent packet `number` of the batch."""
        host: SimHost = self.batch.machines[number].ports
        return host

    def order(self, number: int, hop: int) -> int:
        """Return the order of a packet's arrival behind link `hop`, counted from 1 (`sim.flight.Flight`)."""
        return (self.host(number).place + 1) << 80 | (self.serial + number) << 24 | hop

    def flight(self, number: int, hop: int) -> Flight:
        """Return a packet that was carried over `hop` links as if it had been sent on its own."""
        batch, host = self.batch, self.host(number)
        message, order = batch.message(number), self.order(number, hop)
        return Flight(message, message.identity, batch.size, host.place, host.name, self.route, order)


class Convoys:
    """Sends batches over the links of one network."""

    def __init__(self) -> None:
        self._inboxes: dict[int, Inbox] = {}
        self._callbacks = (self._on_arrival,)

    def send(self, batch: FeedbackBatch, now: float) -> None:
        """Send a batch of the members of one group."""
        endpoint: Endpoint = batch.machines[0].ports.endpoint
        fabric = endpoint.fabric
        route = endpoint.route_to(batch.to)
        if not self._is_simple(endpoint, fabric, route) or not batch.message(0).identity is None:
            for number, machine in enumerate(batch.machines):
                machine.ports.send(Packet(batch.message(number), batch.size, batch.to))
            return
        count, serial = len(batch.machines), fabric.serial + 1
        fabric.serial += count
        fabric.traffic.add(batch.kind, batch.size, count)
        hosts = [machine.ports for machine in batch.machines]
        fabric.fingerprinter.controls(now, [host.place for host in hosts], batch.kind, batch.size)
        starts: list[tuple[float, int]] = []
        for number, host in enumerate(hosts):
            when = self._uplink(endpoint, host, batch, serial + number, route, now)
            if not starts or when != starts[-1][0]:
                starts.append((when, number))
        for (when, first), (_, end) in zip(starts, [*starts[1:], (0.0, count)], strict=True):
            self._post(fabric, Convoy(batch, endpoint, route, serial, first, end - first), when)

    def _is_simple(self, endpoint: Endpoint, fabric: Fabric, route: Route) -> bool:
        """Whether the batch is unicast in a network that nobody watches or disturbs."""
        return (
            route.target is not None
            and type(endpoint) is Endpoint
            and type(fabric.forwarding) is Grouped
            and fabric.codec is None
            and not fabric.observers
            and not fabric.fault_shims
            and type(endpoint.member_uplink(0)) is Link
            and endpoint.is_lossless
        )

    def _post(self, fabric: Fabric, convoy: Convoy, when: float) -> None:
        post(fabric.kernel.env, when, ARRIVAL, convoy.order(convoy.first, 1), Occurrence(self._callbacks, convoy))

    def _on_arrival(self, occurrence: Occurrence) -> None:
        """Forward packets at the switch that the group is linked to."""
        convoy: Convoy = occurrence.content
        fabric = convoy.endpoint.fabric
        kernel = fabric.kernel
        now = kernel.env._now
        kernel.busy = True
