"""The UDP host keeps the contract between machines and hosts, on the loopback device."""

import socket
from collections.abc import Callable, Iterator
from math import inf

import pytest

from emu.host import Loop, UdpHost, new_loop
from emu.namespaces import enter_network_namespace, run_isolated
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from protocols.errors import LivelockError, UsageError
from protocols.machine import Address, Event, Group, Machine, Message, Ports
from protocols.rng import Rng
from tests.emu.number_protocol import GROUP, PORT, AllSent, NumberCodec, NumberReceiver, NumberSender
from topologies.generators import Star


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A fresh loop."""
    loop = new_loop()
    yield loop
    loop.close()


class Hosts:
    """Makes hosts on the loopback device and closes them."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.made: list[UdpHost] = []

    def __call__(self, *, held: bool = False) -> UdpHost:
        """One more host, on a port of its own."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        rng = Rng(len(self.made))
        self.made.append(UdpHost(self.loop, NumberCodec(), interface="lo", port=port, ttl=0, rng=rng, held=held))
        return self.made[-1]


@pytest.fixture
def make(loop: Loop) -> Iterator[Hosts]:
    """Hosts that are closed after the test."""
    hosts = Hosts(loop)
    yield hosts
    for host in hosts.made:
        host.close()


def ignore(event: Event) -> None:
    """An application that wants nothing."""


def stopping(loop: Loop) -> Callable[[Event], None]:
    """An application that ends the run when an event comes, a little later so that what is under way arrives."""

    def on_event(event: Event) -> None:
        loop.call_later(0.1, loop.stop)

    return on_event


def test_a_group_hears_every_packet_once_and_the_sender_does_not_hear_itself(loop: Loop, make: Hosts) -> None:
    hosts = [make() for _ in range(3)]
    ears = [NumberReceiver(host) for host in hosts[1:]]
    for host, ear in zip(hosts[1:], ears, strict=True):
        host.run(ear, ignore)
    voice = NumberSender(hosts[0], total=500, rate=20_000, burst=5)
    hosts[0].run(voice, stopping(loop))
    loop.run(5)
    for ear in ears:
        assert ear.numbers == list(range(500))
        assert set(ear.destinations) == {GROUP}
        assert set(map(type, ear.sources)) == {tuple}
        assert ear.times == sorted(ear.times)
    assert voice.heard == []
    assert hosts[0].traffic.packets == {"counted": 500}
    assert hosts[0].traffic.octets == {"counted": 500 * 1400}
    assert hosts[0].faults == {"malformed": 0, "send_errors": 0, "receive_drops": 0, "slow_drops": 0}


def test_an_answer_to_the_source_of_a_packet_arrives(loop: Loop, make: Hosts) -> None:
    asking, answering = make(), make()
    ear = NumberReceiver(answering)
    answering.run(ear, ignore)
    voice = NumberSender(asking, total=1, rate=1000)
    asking.run(voice, stopping(loop))
    loop.run(5)
    third = make()
    third.run(NumberSender(third, total=3, rate=1000, to=ear.sources[0]), stopping(loop))
    loop.run(5)
    assert voice.heard == [0, 1, 2]


def test_unicast_to_a_hosts_own_port_arrives_there(loop: Loop, make: Hosts) -> None:
    speaking, hearing = make(), make()
    (own,) = [where for where in hearing._sockets if where != hearing._own_address]
    ear = NumberReceiver(hearing, Group(f"127.0.0.1:{own[1]}"))  # type: ignore[index]
    hearing.run(ear, ignore)
    speaking.run(NumberSender(speaking, total=3, rate=1000, to=own), stopping(loop))
    loop.run(5)
    assert ear.numbers == [0, 1, 2]
    assert set(ear.destinations) == {own}


def test_a_group_left_is_heard_no_more(loop: Loop, make: Hosts) -> None:
    speaking, hearing = make(), make()
    ear = NumberReceiver(hearing)
    hearing.run(ear, ignore)
    hearing.leave(GROUP)
    speaking.run(NumberSender(speaking, total=10, rate=10_000), stopping(loop))
    loop.run(5)
    assert ear.numbers == []
    hearing.join(GROUP)
    hearing.join(GROUP)
    with pytest.raises(UsageError, match="group"):
        hearing.join(Group("nonsense"))


def test_garbage_is_counted_and_dropped(loop: Loop, make: Hosts) -> None:
    host = make()
    ear = NumberReceiver(host, None)
    host.run(ear, ignore)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"nonsense", b"x" * 2000):
            stranger.sendto(data, host._own_address)
    loop.run(0.05)
    assert ear.numbers == []
    assert host.faults["malformed"] == 3


class Script(Machine):
    """Does what a test says at its only wake-up."""

    def __init__(self, ports: Ports, at: float) -> None:
        super().__init__(ports)
        self.at = at
        self.woken: list[float] = []

    def start(self, now: float) -> None:
        """Plan the wake-up."""
        self._due(self.at)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """There is nothing to do."""

    def wake(self, now: float) -> None:
        """Say two things and sleep for ever."""
        self.woken.append(now)
        self.ports.notify(AllSent())
        self.ports.notify(AllSent())
        self._due(inf)

    def poke(self, word: str, now: float) -> str:
        """A verb for applications."""
        self.ports.notify(AllSent())
        return word

    def counts(self) -> dict[str, int]:
        """How often it woke."""
        return {"woken": len(self.woken)}


def test_wake_ups_come_when_due_and_once(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Script(host, 0.05)
    host.run(machine, ignore)
    host.later(0.1, loop.stop)
    loop.run(5)
    assert len(machine.woken) == 1
    assert machine.woken[0] >= 0.0499


def test_an_alarm_moves_the_wake_up_forward(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Script(host, 100.0)
    host.run(machine, ignore)
    host.call(lambda now: machine._due(0.02))
    host.later(0.08, loop.stop)
    loop.run(5)
    assert len(machine.woken) == 1


def test_an_application_may_call_inside_an_event_and_hears_the_rest_first(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Script(host, 0.01)
    log: list[str] = []

    def on_event(event: Event) -> None:
        log.append("event")
        if len(log) == 1:
            log.append(host.call(machine.poke, "answer"))

    host.run(machine, on_event)
    host.later(0.05, loop.stop)
    loop.run(5)
    assert log == ["event", "event", "event", "answer"]


def test_a_call_from_inside_the_machine_is_refused(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Script(host, inf)
    host.run(machine, ignore)
    with pytest.raises(UsageError, match="inside the machine"):
        host.call(lambda now: host.call(machine.poke, "no"))


def test_a_host_runs_one_machine(make: Hosts) -> None:
    host = make()
    host.run(Script(host, inf), ignore)
    with pytest.raises(UsageError, match="already"):
        host.run(Script(host, inf), ignore)


class Stuck(Script):
    """Wants to be woken for ever at once."""

    def wake(self, now: float) -> None:
        """Stay due."""
        self.woken.append(now)


def test_a_livelock_is_an_error(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Stuck(host, 0.01)
    host.run(machine, ignore)
    with pytest.raises(LivelockError, match="Stuck"):
        loop.run(5)
    assert len(machine.woken) == 1


def test_an_error_of_an_application_ends_the_run(loop: Loop, make: Hosts) -> None:
    host = make()

    def break_down(event: Event) -> None:
        raise KeyError("broken")

    host.run(Script(host, 0.01), break_down)
    with pytest.raises(KeyError, match="broken"):
        loop.run(5)


def test_a_held_host_says_nothing_and_stays_at_time_zero_until_it_begins(loop: Loop, make: Hosts) -> None:
    speaking, hearing = make(held=True), make()
    ear = NumberReceiver(hearing)
    hearing.run(ear, ignore)
    voice = NumberSender(speaking, total=3, rate=1000)
    times: list[float] = []
    speaking.run(voice, stopping(loop))
    speaking.later(0.001, lambda: times.append(speaking.now))
    loop.run(0.05)
    assert (speaking.now, ear.numbers, times) == (0.0, [], [])
    speaking.begin(loop.time() + 0.02)
    loop.run(5)
    assert ear.numbers == [0, 1, 2]
    # Counted from when this was written, it would be 71 ms and more.
    assert 0.001 <= times[0] < 0.06


def slow_link(total: int) -> tuple[int, list[int], dict[str, int]]:
    """A sender with a small buffer on a slow link, and a listener at its other end, both in one process."""
    star = Star.model_validate({"receivers": 1, "trunk": {"rate": "20Mbit"}})
    plan = plan_emulation(star.build())
    network, loop = EmulatedNetwork(plan), new_loop()
    # A socket stays in the network it was made in, wherever its process goes.
    enter_network_namespace(network.pid("r1"))
    hearing = UdpHost(loop, NumberCodec(), interface=plan.addresses["r1"], port=PORT, rng=Rng(1))
    ear = NumberReceiver(hearing)
    hearing.run(ear, ignore)
    enter_network_namespace(network.pid("sender"))
    address = plan.addresses["sender"]
    # It does not hear itself, since nobody would empty that small a buffer in time on a busy machine.
    speaking = UdpHost(loop, NumberCodec(), interface=address, port=PORT, rng=Rng(2), buffers=100_000, burst=1, loopback=False)
    voice = NumberSender(speaking, total, rate=50_000, burst=10)
    speaking.run(voice, stopping(loop))
    loop.run(10)
    return voice.fulls, ear.numbers, speaking.faults


@pytest.mark.emu
def test_a_sender_that_is_faster_than_its_link_is_told_and_loses_nothing() -> None:
    fulls, heard, faults = run_isolated(lambda: slow_link(500))
    assert fulls > 0
    assert heard == list(range(500))
    assert not any(faults.values())
