"""Every protocol in every world: content arrives, and hosts meet their side of the contract (see `watch`)."""

import pytest

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.worlds import WORLDS
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
