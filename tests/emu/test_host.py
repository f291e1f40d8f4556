"""`UdpHost` keeps the contract between machines and hosts, on the loopback device."""

import socket
import time
from collections.abc import Callable, Iterator
from math import inf, nan

import pytest

from emu.addresses import SocketAddress
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.namespaces import enter_network_namespace, run_isolated
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from emu.udp_options import UdpOptions
from protocols.errors import LivelockError, UsageError
from protocols.machine import Address, Event, Group, Machine, Message, Ports
from protocols.rng import Rng
from tests.emu.number_protocol import GROUP, PORT, AllSent, NumberCodec, NumberMessage, NumberReceiver, NumberSender
from topologies.generators import Star


@pytest.fixture
def loop() -> Iterator[Loop]:
    """Return a new loop."""
    loop = new_loop()
    yield loop
    loop.close()


class Hosts:
    """Makes hosts on the loopback device and closes them."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.made: list[UdpHost] = []

    def __call__(self, *, held: bool = False, joining: float = 0.0) -> UdpHost:
        """Return a new host, on a port of its own."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        options, rng = UdpOptions(ttl=0), Rng(len(self.made))
        self.made.append(
            UdpHost(self.loop, NumberCodec(), interface="lo", port=port, options=options, rng=rng, held=held, joining=joining)
        )
        return self.made[-1]


@pytest.fixture
def make(loop: Loop) -> Iterator[Hosts]:
    """Return a maker of hosts that are closed after the test."""
    hosts = Hosts(loop)
    yield hosts
    for host in hosts.made:
        host.close()


def ignore(event: Event) -> None:
    """Ignore an event."""


def stopping(loop: Loop) -> Callable[[Event], None]:
    """Return a handler of events that stops the loop 0.1 s later, so that packets in transit arrive."""

    def on_event(event: Event) -> None:
        loop.call_later(0.1, loop.stop)

    return on_event


def test_a_group_receives_every_packet_once_and_the_sender_none_of_its_own(loop: Loop, make: Hosts) -> None:
    hosts = [make() for _ in range(3)]
    receivers = [NumberReceiver(host) for host in hosts[1:]]
    for host, receiver in zip(hosts[1:], receivers, strict=True):
        host.run(receiver, ignore)
    sender = NumberSender(hosts[0], total=500, rate=20_000, burst=5)
    hosts[0].run(sender, stopping(loop))
    loop.run(5)
    for receiver in receivers:
        assert receiver.numbers == list(range(500))
        assert set(receiver.destinations) == {GROUP}
        assert set(map(type, receiver.sources)) == {tuple}
        assert receiver.times == sorted(receiver.times)
    assert sender.received == []
    assert hosts[0].traffic.packets == {"counted": 500}
    assert hosts[0].traffic.octets == {"counted": 500 * 1400}
    assert hosts[0].faults == {"malformed": 0, "send_errors": 0, "receive_drops": 0, "slow_drops": 0}


def test_an_answer_to_the_source_of_a_packet_arrives(loop: Loop, make: Hosts) -> None:
    asking, answering = make(), make()
    receiver = NumberReceiver(answering)
    answering.run(receiver, ignore)
    sender = NumberSender(asking, total=1, rate=1000)
    asking.run(sender, stopping(loop))
    loop.run(5)
    third = make()
    third.run(NumberSender(third, total=3, rate=1000, to=receiver.sources[0]), stopping(loop))
    loop.run(5)
    assert sender.received == [0, 1, 2]


def test_unicast_to_a_hosts_own_port_arrives_there(loop: Loop, make: Hosts) -> None:
    sending_host, receiving_host = make(), make()
    own = receiving_host.unicast_address
    receiver = NumberReceiver(receiving_host, Group(f"127.0.0.1:{own[1]}"))
    receiving_host.run(receiver, ignore)
    sending_host.run(NumberSender(sending_host, total=3, rate=1000, to=own), stopping(loop))
    loop.run(5)
    assert receiver.numbers == [0, 1, 2]
    assert set(receiver.destinations) == {own}


def test_nothing_is_received_after_leaving_a_group(loop: Loop, make: Hosts) -> None:
    sending_host, receiving_host = make(), make()
    receiver = NumberReceiver(receiving_host)
    receiving_host.run(receiver, ignore)
    receiving_host.leave(GROUP)
    sending_host.run(NumberSender(sending_host, total=10, rate=10_000), stopping(loop))
    loop.run(5)
    assert receiver.numbers == []
    receiving_host.join(GROUP)
    receiving_host.join(GROUP)
    with pytest.raises(UsageError, match="group"):
        receiving_host.join(Group("nonsense"))


@pytest.mark.parametrize("joining", [0.0, 0.05])
def test_a_group_whose_port_is_in_use_is_refused_and_leaves_nothing_behind(loop: Loop, make: Hosts, joining: float) -> None:
    host = make(joining=joining)
    host.run(NumberReceiver(host), ignore)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("0.0.0.0", 0))
        group = Group(f"239.7.7.7:{sock.getsockname()[1]}")
        with pytest.raises(UsageError, match="in use"):
            host.join(group)
    assert group not in host._ports.readers
    host.join(group)
    assert group in host._ports.readers
    loop.run(0.1)


def test_packets_of_a_group_arrive_only_after_the_time_of_joining(loop: Loop, make: Hosts) -> None:
    host = make(joining=0.1)
    receiver = NumberReceiver(host)
    host.run(receiver, ignore)
    sender = make()
    sender.run(NumberSender(sender, total=40, rate=200), stopping(loop))
    loop.run(5)
    # The numbers of the first 100 ms are missing, with a tolerance for a busy machine.
    assert receiver.numbers
    assert 10 <= min(receiver.numbers) <= 35
    assert receiver.numbers == list(range(receiver.numbers[0], 40))


def test_a_group_that_is_left_while_it_is_joined_is_not_received(loop: Loop, make: Hosts) -> None:
    host = make(joining=0.05)
    receiver = NumberReceiver(host)
    host.run(receiver, ignore)
    host.leave(GROUP)
    sender = make()
    sender.run(NumberSender(sender, total=20, rate=200), stopping(loop))
    loop.run(5)
    assert receiver.numbers == []


def test_malformed_datagrams_are_counted_and_dropped(loop: Loop, make: Hosts) -> None:
    host = make()
    receiver = NumberReceiver(host, None)
    host.run(receiver, ignore)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for data in (b"", b"nonsense", b"x" * 2000):
            sock.sendto(data, host._first.own_address)
    loop.run(0.05)
    assert receiver.numbers == []
    assert host.faults["malformed"] == 3


class Script(Machine):
    """Wakes once at a given time, and notifies the application."""

    def __init__(self, ports: Ports, at: float) -> None:
        super().__init__(ports)
        self.at = at
        self.woken: list[float] = []

    def start(self, now: float) -> None:
        """Set the deadline."""
        self._due(self.at)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """There is nothing to do."""

    def wake(self, now: float) -> None:
        """Notify the application twice, and clear the deadline."""
        self.woken.append(now)
        self.ports.notify(AllSent())
        self.ports.notify(AllSent())
        self._due(inf)

    def poke(self, word: str, now: float) -> str:
        """Notify the application once, and return the word."""
        self.ports.notify(AllSent())
        return word

    def counts(self) -> dict[str, int]:
        """Number of wake-ups."""
        return {"woken": len(self.woken)}


def test_a_machine_is_woken_once_when_due(loop: Loop, make: Hosts) -> None:
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


def test_an_application_may_call_within_an_event_after_pending_events(loop: Loop, make: Hosts) -> None:
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


def test_a_call_from_within_the_machine_is_refused(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = Script(host, inf)
    host.run(machine, ignore)
    with pytest.raises(UsageError, match="within the machine"):
        host.call(lambda now: host.call(machine.poke, "no"))


def test_a_host_runs_one_machine(make: Hosts) -> None:
    host = make()
    host.run(Script(host, inf), ignore)
    with pytest.raises(UsageError, match="already"):
        host.run(Script(host, inf), ignore)


class AlwaysDue(Script):
    """Violates the contract: its deadline never moves."""

    def wake(self, now: float) -> None:
        """Stay due."""
        self.woken.append(now)


def test_a_livelock_is_an_error(loop: Loop, make: Hosts) -> None:
    host = make()
    machine = AlwaysDue(host, 0.01)
    host.run(machine, ignore)
    with pytest.raises(LivelockError, match="AlwaysDue"):
        loop.run(5)
    assert len(machine.woken) == 1


class Timeless(Script):
    """Violates the contract: its deadline is not a number."""

    def wake(self, now: float) -> None:
        """Set the deadline to NaN."""
        self.deadline = nan


def test_a_deadline_that_never_comes_is_an_error(loop: Loop, make: Hosts) -> None:
    host = make()
    host.run(Timeless(host, 0.01), ignore)
    with pytest.raises(LivelockError, match="Timeless is due at nan"):
        loop.run(5)


def test_an_exception_of_an_application_ends_the_run(loop: Loop, make: Hosts) -> None:
    host = make()

    def break_down(event: Event) -> None:
        raise KeyError("broken")

    host.run(Script(host, 0.01), break_down)
    with pytest.raises(KeyError, match="broken"):
        loop.run(5)


def test_a_held_host_sends_nothing_and_stays_at_time_zero_until_it_begins(loop: Loop, make: Hosts) -> None:
    sending_host, receiving_host = make(held=True), make()
    receiver = NumberReceiver(receiving_host)
    receiving_host.run(receiver, ignore)
    sender = NumberSender(sending_host, total=3, rate=1000)
    times: list[float] = []
    sending_host.run(sender, stopping(loop))
    sending_host.later(0.001, lambda: times.append(sending_host.now))
    loop.run(0.05)
    assert (sending_host.now, receiver.numbers, times) == (0.0, [], [])
    sending_host.begin(loop.time() + 0.02)
    loop.run(5)
    assert receiver.numbers == [0, 1, 2]
    # Relative to the start of the process instead of the epoch it would be 71 ms or more.
    assert 0.001 <= times[0] < 0.06


def slow_link(total: int) -> tuple[int, list[int], dict[str, int]]:
    """Run a sender with a small buffer on a slow link, and a receiver at the other end, both in one process."""
    star = Star.model_validate({"receivers": 1, "trunk": {"rate": "20Mbit"}})
    plan = plan_emulation(star.build())
    network, loop = EmulatedNetwork(plan), new_loop()
    # A socket stays in the namespace it was made in.
    enter_network_namespace(network.pid("r1"))
    receiving_host = UdpHost(loop, NumberCodec(), interface=plan.addresses["r1"], port=PORT, rng=Rng(1))
    receiver = NumberReceiver(receiving_host)
    receiving_host.run(receiver, ignore)
    enter_network_namespace(network.pid("sender"))
    address = plan.addresses["sender"]
    # Without loopback: the small receive buffer would overflow on a busy machine.
    sending_host = UdpHost(
        loop,
        NumberCodec(),
        interface=address,
        port=PORT,
        rng=Rng(2),
        buffers=100_000,
        burst=1,
        options=UdpOptions(loopback=False),
    )
    sender = NumberSender(sending_host, total, rate=50_000, burst=10)
    sending_host.run(sender, stopping(loop))
    loop.run(10)
    return sender.fulls, receiver.numbers, sending_host.faults


@pytest.mark.emu
def test_a_sender_faster_than_its_link_is_blocked_and_loses_nothing() -> None:
    fulls, received, faults = run_isolated(lambda: slow_link(500))
    assert fulls > 0
    assert received == list(range(500))
    assert not any(faults.values())


class SlowReceiver(NumberReceiver):
    """A receiver that needs 1 ms for a packet."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        time.sleep(0.001)
        super().receive(message, source, to, now)


def run_until(loop: Loop, is_over: Callable[[], bool]) -> None:
    """Run the loop until the condition holds, which a busy machine may take long for; 20 seconds at the most."""
    for _ in range(400):
        loop.run(0.05)
        if is_over():
            return


def send_numbers(address: str, to: SocketAddress, numbers: range) -> None:
    """Send numbers from an address of the loopback device."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        for number in numbers:
            sock.sendto(NumberCodec().encode(NumberMessage(number, 100)), to)


def test_a_source_that_wants_little_is_served_beside_one_that_wants_everything(loop: Loop, make: Hosts) -> None:
    host = make()
    own = host.unicast_address
    receiver = SlowReceiver(host)
    host.run(receiver, ignore)
    send_numbers("127.0.0.2", own, range(3000))
    loop.call_later(0.1, send_numbers, "127.0.0.3", own, range(10_000, 10_020))
    loop.run(1.0)
    arrived = [number for number in receiver.numbers if number >= 10_000]
    assert arrived == list(range(10_000, 10_020)), "all of them, in order, though the other would take three seconds"
    flood = [number for number in receiver.numbers if number < 10_000]
    assert flood == sorted(flood), "the other is served, too"
    assert len(flood) > 50


def test_a_single_source_loses_nothing_that_the_kernel_has_room_for(loop: Loop, make: Hosts) -> None:
    host = make()
    own = host.unicast_address
    receiver = SlowReceiver(host)
    host.run(receiver, ignore)
    send_numbers("127.0.0.2", own, range(400))
    run_until(loop, lambda: len(receiver.numbers) == 400 and not host._is_queueing)
    assert receiver.numbers == list(range(400))
    assert not host._is_queueing, "it has caught up"


class Choosy(SlowReceiver):
    """A slow receiver that only wants datagrams whose last byte is 1."""

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        assert source[0] == "127.0.0.1"  # type: ignore[index]
        return data[-1] == 1


def test_a_host_that_cannot_keep_up_decodes_only_what_the_machine_wants(loop: Loop, make: Hosts) -> None:
    host = make()
    own = host.unicast_address
    receiver = Choosy(host)
    host.run(receiver, ignore)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in range(400):
            sock.sendto(NumberCodec().encode(NumberMessage(number, 100))[:-1] + bytes([number % 2]), own)
    run_until(loop, lambda: bool(receiver.numbers) and receiver.numbers[-1] == 399)
    unwanted = [number for number in receiver.numbers if number % 2 == 0]
    assert [number for number in receiver.numbers if number % 2] == list(range(1, 400, 2))
    assert unwanted == list(range(0, 2 * len(unwanted), 2)), "those that came before it was known to be late"
    assert 0 < len(unwanted) < 100
    assert host.faults["malformed"] == 0


def test_a_large_datagram_is_decoded_only_if_the_machine_wants_it(loop: Loop, make: Hosts) -> None:
    host = make()
    own = host.unicast_address
    receiver = Choosy(host)
    host.run(receiver, ignore)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number, size, last in ((1, 9000, 0), (2, 9000, 1), (3, 500, 0), (4, 500, 1)):
            sock.sendto(NumberCodec().encode(NumberMessage(number, size))[:-1] + bytes([last]), own)
    loop.run(0.2)
    assert receiver.numbers == [2, 3, 4]


def test_every_port_of_a_host_has_a_codec_of_its_own() -> None:
    loop = new_loop()
    made: list[NumberCodec] = []

    def make() -> NumberCodec:
        made.append(NumberCodec())
        return made[-1]

    host = UdpHost(loop, make(), make_codec=make, interface="127.0.0.1", port=0, rng=Rng(1))
    try:
        for port in (0, 1, 2):
            host.open_port(port)
        encoders = [host._ports[port].encode for port in (0, 1, 2)]
        assert [encoder.__self__ for encoder in encoders] == made  # type: ignore[attr-defined]
    finally:
        host.close()
        loop.close()
