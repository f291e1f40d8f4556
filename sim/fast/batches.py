"""Feedback of many hosts to one address, as one event for each instant and link.

The members of a counted group that answer one packet send at one instant over equal links, so their packets reach the switch
together. There they queue for the next link one behind the other, so their times of arrival at a host behind it can be
computed. If the receiver only records them (`FeedbackBatch.is_noted_by`) they are delivered late: before its next other input,
or when the last has arrived. In all other cases the packets are sent and forwarded one by one.
"""

from bisect import bisect_left
from collections import deque
from itertools import accumulate, compress, repeat
from typing import Any

from protocols.fast.feedback import FeedbackBatch
from protocols.machine import Packet
from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.fast.machines import fast_machine
from sim.flight import Flight, Grouped, Hop, Place, Route
from sim.host import SimHost
from sim.kernel import Kernel
from sim.link import Link
from sim.member_uplinks import MemberUplinks
from sim.queue_entry import ARRIVAL, QueueEntry, post
from sim.switch import Switch

__all__ = ["Batches", "Inbox", "Train"]


class Train:
    """Packets of a batch from number `first` on that were sent together; `serial` is that of packet 0.

    `places` are the numbers of the hosts of all packets of the batch, which are in the group of `endpoint`.
    """

    __slots__ = ("_times", "batch", "cost", "delay", "end", "endpoint", "first", "last", "places", "route", "serial", "start")

    def __init__(
        self, batch: FeedbackBatch, endpoint: Endpoint, places: list[int], route: Route, serial: int, first: int, end: int
    ) -> None:
        self.batch = batch
        self.endpoint = endpoint
        self.places = places
        self.route = route
        self.serial = serial
        self.first = first
        self.end = end
        """Number behind the last packet."""
        self.start = self.cost = self.delay = self.last = 0.0
        """On the last link: when the transmission of the first packet begins, seconds for each, propagation, last arrival."""
        self._times: list[float] | None = None

    def order(self, number: int, hop: int) -> int:
        """Return the order of a packet's arrival behind link `hop`, counted from 1 (`sim.flight.Flight`)."""
        return (self.places[number] + 1) << 80 | (self.serial + number) << 24 | hop

    def before(self, order: int, hop: int) -> int:
        """Return how many packets arrive behind link `hop` before an arrival of this order at the same instant."""
        at = bisect_left(self.places, (order >> 80) - 1, self.first, self.end)
        return at - self.first + (at < self.end and self.order(at, hop) < order)

    def flight(self, number: int, hop: int) -> Flight:
        """Return a packet behind link `hop` as if it had been sent on its own."""
        batch, place = self.batch, self.places[number]
        host = self.endpoint.fabric.hosts[place]
        assert isinstance(host, SimHost)
        return Flight(batch.message(number), None, batch.size, place, host.name, self.route, self.order(number, hop))

    def queue_behind(self, link: Link, now: float) -> None:
        """Offer the packets to the last link of their way, one behind the other."""
        count, queue = self.end - self.first, link.queue
        link.offered += count
        self.start, self.cost, self.delay = max(queue.free_at, now), (self.batch.size + link.overhead) / queue.rate, link.delay
        (end,) = deque(accumulate(repeat(self.cost, count), initial=self.start), maxlen=1)
        queue.advance(end)
        self.last = end + self.delay

    def times(self) -> list[float]:
        """Return when the packets arrive behind the last link, in seconds."""
        if self._times is None:
            ends = accumulate(repeat(self.cost, self.end - self.first - 1), initial=self.start + self.cost)
            self._times = [end + self.delay for end in ends]
        return self._times

    def first_time(self) -> float:
        """Return when the first packet arrives behind the last link, in seconds."""
        return self.start + self.cost + self.delay if self._times is None else self._times[0]

    def split(self, count: int) -> "Train":
        """Return a train of the first `count` packets, which this one is without from now on.

        A train that was offered to the last link is split behind `times` only.
        """
        head = Train(self.batch, self.endpoint, self.places, self.route, self.serial, self.first, self.first + count)
        if self._times is not None:
            head._times, self._times = self._times[:count], self._times[count:]
        self.first += count
        return head


class Inbox:
    """The packets on their way to a host whose machine only records them."""

    def __init__(self, host: SimHost) -> None:
        self.host = host
        self._machine: Any = None
        self._fabric = host.endpoint.fabric
        self._kernel: Kernel = self._fabric.kernel
        self._trains: deque[Train] = deque()
        self._callbacks = (self._on_last,)

    def add(self, train: Train) -> None:
        """Take packets that were offered to the last link."""
        self._machine = machine = self.host.machine
        fast = fast_machine(machine)
        assert fast is not None
        fast.fast_state.coordinator = self
        self._trains.append(train)
        post(self._kernel.queue, train.last, ARRIVAL, train.order(train.end - 1, 2), QueueEntry(self._callbacks, None))

    def release(self, machine: Any) -> None:
        """Deliver what has arrived, because the machine gets another input."""
        del machine
        self.catch_up()

    def catch_up(self) -> None:
        """Deliver what arrived up to the present event."""
        kernel = self._kernel
        when, priority, order, *_ = kernel.key
        if when < kernel.env._now:
            # A user's code drives SimPy instead of the kernel.
            when, priority, order = kernel.env._now, 0, 0
        trains = self._trains
        while trains and trains[0].last < when:
            self._deliver(trains.popleft())
        while trains and trains[0].first_time() <= when:
            head, times = trains[0], trains[0].times()
            count = bisect_left(times, when)
            while (
                count < len(times)
                and times[count] == when
                and (ARRIVAL, head.order(head.first + count, 2)) <= (priority, order)
            ):
                count += 1
            if count < len(times):
                if count:
                    self._deliver(head.split(count))
                break
            self._deliver(trains.popleft())
        if not trains and self._machine is not None:
            self._machine.fast_state.coordinator = None

    def _on_last(self, entry: QueueEntry) -> None:
        del entry
        self.catch_up()

    def _deliver(self, train: Train) -> None:
        machine, times = self.host.machine, train.times()
        self._fabric.delivered += len(times)
        if machine is self._machine:
            train.batch.deliver(machine, train.first, times)
            return
        # The machine was replaced meanwhile.
        for number, when in enumerate(times, train.first):
            flight = train.flight(number, 2)
            machine.receive(flight.message, flight.source, train.route.to, when)


class Batches:
    """Sends batches over the links of one network."""

    def __init__(self) -> None:
        self._inboxes: dict[int, Inbox] = {}
        self._callbacks = (self._on_switch,)

    def catch_up(self) -> None:
        """Deliver what has arrived."""
        for inbox in self._inboxes.values():
            inbox.catch_up()

    def send(self, batch: FeedbackBatch, now: float) -> None:
        """Send a batch of members of one group."""
        group = batch.group
        known = group.places
        if known is None:
            known = group.places = [machine.ports.place for machine in group.machines]
        endpoint: Endpoint = group.machines[0].ports.endpoint
        fabric = endpoint.fabric
        route = endpoint.route_to(batch.to)
        places = list(compress(known, batch.answering))
        when = None
        if _is_simple(endpoint, route):
            uplinks = endpoint.member_uplink(places[0] - endpoint.base)
            when = uplinks.carry_batch(places, batch.size, now) if isinstance(uplinks, MemberUplinks) else None
        if when is None:
            for number, place in enumerate(places):
                host = fabric.hosts[place]
                assert isinstance(host, SimHost)
                host.send(Packet(batch.message(number), batch.size, batch.to))
            return
        serial = fabric.serial + 1
        fabric.serial += len(places)
        fabric.traffic.add(batch.kind, batch.size, len(places))
        fabric.fingerprinter.controls(now, places, batch.kind, batch.size)
        for observer in fabric.observers:
            observer.sent_feedback(now, places, batch.kind, batch.size)
        arriving: FeedbackBatch | None = batch
        assert isinstance(uplinks, MemberUplinks)
        if lost := uplinks.lost_of_batch():
            arriving, missing = batch.without(lost), set(lost)
            places = [place for number, place in enumerate(places) if number not in missing]
        if arriving is not None:
            self._post(fabric, Train(arriving, endpoint, places, route, serial, 0, len(places)), when)

    def _post(self, fabric: Fabric, train: Train, when: float) -> None:
        post(fabric.kernel.queue, when, ARRIVAL, train.order(train.first, 1), QueueEntry(self._callbacks, train))

    def _on_switch(self, entry: QueueEntry) -> None:
        """Forward packets that arrive at the switch of their group."""
        train: Train = entry.content
        endpoint = train.endpoint
        fabric = endpoint.fabric
        kernel, now = fabric.kernel, fabric.kernel.env._now
        queue: list[Any] = kernel.env._queue
        if queue and queue[0][:3] < (now, ARRIVAL, train.order(train.end - 1, 1)):
            # Another packet comes between them.
            _, priority, order, *_ = queue[0]
            head = train.split(max(1, train.before(order, 1)) if priority == ARRIVAL else 1)
            self._post(fabric, train, now)
            train = head
        kernel.busy = True
        uplinks = endpoint.member_uplink(0)
        assert isinstance(uplinks, MemberUplinks)
        link = _last_link(uplinks.head, train)
        if link is None:
            for number in range(train.first, train.end):
                uplinks.head.arrive(train.flight(number, 1), (), now)
        else:
            train.queue_behind(link, now)
            self._inbox(train.route).add(train)
        kernel.settle_inputs()

    def _inbox(self, route: Route) -> Inbox:
        host = route.target
        assert isinstance(host, SimHost)
        inbox = self._inboxes.get(host.place)
        if inbox is None:
            inbox = self._inboxes[host.place] = Inbox(host)
        return inbox


def _is_simple(endpoint: Endpoint, route: Route) -> bool:
    """Return whether packets of a node to an address are unicast, in a network without watchers and faults."""
    fabric = endpoint.fabric
    is_plain = type(endpoint) is Endpoint and type(fabric.forwarding) is Grouped and fabric.codec is None
    return is_plain and route.target is not None and not fabric.fault_shims


def _last_link(switch: Place, train: Train) -> Link | None:
    """Return the next link if it is a plain one to the host that a train is for, and the host only records the packets."""
    target = train.route.target
    if type(switch) is not Switch or type(target) is not SimHost or not _is_simple(target.endpoint, train.route):
        return None
    links = switch.next_links(train.route)
    link: Hop | None = links[0] if len(links) == 1 and len(target.endpoint.uplinks) == 1 else None
    if type(link) is not Link or link.head is not target.endpoint or link.framing is not None or link.sampler is not None:
        return None
    is_free = link.reservation is None and link.queue.limit is None
    return link if is_free and train.batch.is_noted_by(target.machine) else None
