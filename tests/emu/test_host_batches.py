"""`UdpHost` takes batches of NORM packets through codec and machine as runs, on the loopback device."""

import socket
from collections.abc import Callable, Iterator

import pytest

from emu.addresses import SocketAddress
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp import SendQueue
from emu.udp_options import UdpOptions
from experiments.contract.content import Bytes, pattern
from experiments.running.content import MemorySink
from protocols.composite import CompositeMachine
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Address, Content, Group, Machine, Message, Offer, Packet, Ports
from protocols.norm import NormCodec, NormConfig, NormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.rng import Rng
from protocols.run import Run
from protocols.tunnel.wire import TunnelCodec

SIZE = 1_000_000


class Echo(Machine):
    """Sends back every message, and calls `over` with the last of so many."""

    __slots__ = ("_left", "_over")

    def __init__(self, ports: Ports, messages: int, over: Callable[[], None]) -> None:
        super().__init__(ports)
        self._left, self._over = messages, over

    def start(self, now: float) -> None:
        """Wait for messages."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.ports.send(Packet(message, 0, source))
        self._left -= 1
        if not self._left:
            self._over()

    def wake(self, now: float) -> None:
        """Do nothing."""

    def counts(self) -> dict[str, int]:
        return {}


class Watched(NormBatchReceiver):
    """A receiver that counts runs."""

    __slots__ = ("messages", "runs")

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self.runs = self.messages = 0

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.messages += 1
        super().receive(message, source, to, now)

    def receive_run(self, run: Run, source: Address, to: Address, now: float) -> None:
        self.runs += 1
        super().receive_run(run, source, to, now)


class Transfer:
    """A NORM sender and a receiver on the loopback device."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            self.group = Group(f"239.7.7.31:{sock.getsockname()[1]}")
        self.config = NormConfig(rate=40e6, grtt=0.005, gsize=10, robust=3)
        self.sending, self.receiving = (
            UdpHost(loop, NormCodec(), interface="lo", port=0, rng=Rng(n), options=UdpOptions(ttl=0)) for n in (1, 2)
        )
        self.sinks: list[MemorySink] = []
        self.received: list[ObjectReceived] = []

    def accept(self, offer: Offer) -> MemorySink:
        """Return a sink in memory."""
        self.sinks.append(MemorySink(offer.size))
        return self.sinks[-1]

    def note(self, event: Event) -> None:
        """Note what was received."""
        if isinstance(event, ObjectReceived):
            self.received.append(event)

    def run(self) -> NormSender:
        """Send an object; end when it was sent and flushed."""
        sender = NormSender(self.sending, self.config, 1, self.group)
        self.sending.run(sender, lambda event: self.loop.stop() if isinstance(event, FlushCompleted) else None)
        self.sending.call(sender.submit, Content(Bytes(pattern(SIZE)), b"", is_file=False))
        self.loop.run(20)
        return sender

    def check(self) -> None:
        """Assert that the object was received."""
        (expected,) = {sink.sha256 for sink in self.sinks}
        whole = MemorySink(SIZE)
        whole.write(0, pattern(SIZE))
        whole.commit(b"")
        assert expected == whole.sha256
        assert len(self.received) == 1


@pytest.fixture
def transfer() -> Iterator[Transfer]:
    """Return a transfer whose hosts are closed after the test."""
    loop = new_loop()
    made = Transfer(loop)
    yield made
    made.sending.close()
    made.receiving.close()
    loop.close()


def test_an_object_is_received_in_runs(transfer: Transfer) -> None:
    receiver = Watched(transfer.receiving, NormConfig(), 2, transfer.group)
    transfer.receiving.run(receiver, transfer.note, transfer.accept)
    sender = transfer.run()
    transfer.check()
    packets = transfer.sending.traffic.packets["data"]
    counts = sender.counts()
    assert packets == counts["data_sent"] + counts["repairs_sent"]
    assert packets >= -(-SIZE // transfer.config.segment)
    assert receiver.runs > 0
    assert receiver.messages < packets


def test_a_composite_machine_gets_single_messages(transfer: Transfer) -> None:
    composite = CompositeMachine(transfer.receiving)
    component = composite.component("")
    receiver = Watched(component, NormConfig(), 2, transfer.group)
    component.run(receiver, transfer.note, transfer.accept)
    transfer.run()
    transfer.check()
    assert receiver.runs == 0


def test_a_slow_reader_counts_single_messages(transfer: Transfer) -> None:
    receiver = Watched(transfer.receiving, NormConfig(), 2, transfer.group)
    transfer.receiving.run(receiver, transfer.note, transfer.accept)
    transfer.receiving.read_at(1e-9, 10_000)
    transfer.run()
    transfer.check()
    assert receiver.runs == 0


def test_what_packets_that_wait_cause_to_be_sent_leaves_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    transmit = SendQueue._transmit

    def counted(queue: SendQueue, batch: list[bytes], to: SocketAddress, device: int, dscp: int | None) -> None:
        calls.append(len(batch))
        transmit(queue, batch, to, device, dscp)

    monkeypatch.setattr(SendQueue, "_transmit", counted)
    # However long this process is suspended.
    monkeypatch.setattr("emu.host._LONGEST_BATCH", 60.0)
    loop = new_loop()
    host = UdpHost(loop, TunnelCodec(None), interface="lo", port=0, rng=Rng(1))
    host.run(Echo(host, 30, loop.stop), lambda event: None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        packets = [bytes([number]) * 100 for number in range(30)]
        for packet in packets:
            sock.sendto(packet, host.unicast_address)
        loop.run(20)
        assert [sock.recv(200) for _ in packets] == packets
    host.close()
    loop.close()
    assert calls == [30]
