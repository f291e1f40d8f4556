"""Every protocol in every world: content arrives, and hosts meet their side of the contract (see `watch`)."""

import time

import pytest

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.worlds import WORLDS
from protocols.composite import CompositeMachine
from protocols.errors import UsageError
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from tests.contract.cases import CASES, TOY_CASE
from tests.support.toy import ToyData

pytestmark = [pytest.mark.parametrize("world", WORLDS)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_content_arrives_equal_and_once(case: Case, world: str) -> None:
    checks.arrives(case, WORLDS[world], 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_content_arrives_equal_and_once_over_lossy_links(case: Case, world: str) -> None:
    checks.arrives(case, WORLDS[world], 0.1)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_application_may_call_the_machine_during_an_event(case: Case, world: str) -> None:
    checks.answers_after_events(case, WORLDS[world])


class Caller(Machine):
    """Send its number to the group every 10 ms, three times, and keep the numbers it receives."""

    __slots__ = ("group", "left", "number", "received")

    def __init__(self, ports: Ports, number: int, group: Group) -> None:
        super().__init__(ports)
        self.number, self.group, self.left = number, group, 3
        self.received: list[int] = []

    def start(self, now: float) -> None:
        """Join; the first message is sent after all have joined."""
        self.ports.join(self.group)
        self._due(now + 0.05)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep the received number."""
        assert isinstance(message, ToyData)
        assert to == self.group
        self.received.append(message.sender)

    def wake(self, now: float) -> None:
        """Send the number."""
        if self.deadline > now:
            return
        self.left -= 1
        message = ToyData(self.number, 0, 0, b"x", 1)
        self.ports.send(Packet(message, len(TOY_CASE.codec().encode(message)), self.group))
        self._due(now + 0.01 if self.left else float("inf"))

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


def test_hosts_receive_multicast_of_others_and_not_their_own(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 3, 0.0)
    callers = [Caller(host, number, place.group) for number, host in enumerate(place.hosts)]
    for host, caller in zip(place.hosts, callers, strict=True):
        host.run(caller, lambda event: None)
    place.run(5.0, lambda: all(len(caller.received) >= 6 for caller in callers))
    place.close()
    for caller in callers:
        assert sorted(caller.received) == sorted(3 * [other.number for other in callers if other is not caller])


def test_application_timers_fire_in_order_and_never_early(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 2, 0.0)
    host = place.hosts[0]
    fired: list[tuple[float, float]] = []
    host.run(Caller(host, 0, place.group), lambda event: None)
    for when in (0.03, 0.01, 0.02):
        host.later(when, lambda when=when: fired.append((when, host.now)))  # type: ignore[misc]
    place.run(5.0, lambda: len(fired) == 3)
    place.close()
    assert [when for when, _ in fired] == [0.01, 0.02, 0.03]
    # A real clock and a real timer may differ by their resolution.
    assert all(now >= when - 1e-4 for when, now in fired)


def test_machines_of_one_host_hear_each_other_and_not_themselves(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 2, 0.0)
    composite = CompositeMachine(place.hosts[0])
    hosts = [*(composite.component(name) for name in ("", "second", "third")), place.hosts[1]]
    callers = [Caller(host, number, place.group) for number, host in enumerate(hosts)]
    for host, caller in zip(hosts, callers, strict=True):
        host.run(caller, lambda event: None)
    place.run(5.0, lambda: all(len(caller.received) >= 9 for caller in callers))
    place.close()
    for caller in callers:
        assert sorted(caller.received) == sorted(3 * [other.number for other in callers if other is not caller])


class Namer(Machine):
    """Send its number to an address at 50 ms, and keep numbers and sources of what it receives."""

    __slots__ = ("heard", "number", "to")

    def __init__(self, ports: Ports, number: int, to: Address) -> None:
        super().__init__(ports)
        self.number, self.to = number, to
        self.heard: list[tuple[int, Address]] = []

    def start(self, now: float) -> None:
        """Wait until all have started."""
        self._due(now + 0.05)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep it, and answer the first."""
        assert isinstance(message, ToyData)
        self.heard.append((message.sender, source))
        if message.sender < 100:
            self.say(message.sender + 100, source)

    def wake(self, now: float) -> None:
        """Send."""
        if self.deadline <= now:
            self.say(self.number, self.to)
            self._due(float("inf"))

    def say(self, number: int, to: Address) -> None:
        """Send a number."""
        message = ToyData(number, 0, 0, b"x", 1)
        self.ports.send(Packet(message, len(TOY_CASE.codec().encode(message)), to))

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


def test_programs_name_machines_of_hosts_by_their_ports(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 2, 0.0)
    # Each of four machines sends to the next one, two of them on one host.
    composites = [CompositeMachine(host) for host in place.hosts]
    hosts = [composite.component(str(port)) for port in (0, 1) for composite in composites]
    names = [(name, port) for port in (0, 1) for name in place.names]
    namers = [Namer(host, number, host.address_of(*names[(number + 1) % 4])) for number, host in enumerate(hosts)]
    for host, namer in zip(hosts, namers, strict=True):
        host.run(namer, lambda event: None)
    place.run(5.0, lambda: all(len(namer.heard) == 2 for namer in namers))
    place.close()
    for number, namer in enumerate(namers):
        assert sorted(heard for heard, _ in namer.heard) == [(number - 1) % 4, number + 100]


def test_an_unknown_name_is_refused(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 2, 0.0)
    try:
        if not world.startswith("fake"):
            with pytest.raises(UsageError):
                place.hosts[0].address_of("nobody")
    finally:
        place.close()


def test_epoch_is_the_time_of_day_at_the_beginning(world: str) -> None:
    place = WORLDS[world](TOY_CASE, 2, 0.0)
    place.run(0.05, lambda: False)
    found = [host.epoch + host.now - (time.time() if world == "udp" else place.now) for host in place.hosts]
    place.close()
    assert all(abs(difference) < 0.5 for difference in found)
