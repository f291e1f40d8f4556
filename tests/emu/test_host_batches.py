"""`UdpHost` takes batches of NORM packets through codec and machine as runs, on the loopback device."""

import socket
from collections.abc import Iterator

import pytest

from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp_options import UdpOptions
from experiments.contract.content import Bytes, pattern
from experiments.running.content import MemorySink
from protocols.composite import CompositeMachine
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Address, Content, Group, Message, Offer, Ports
from protocols.norm import NormCodec, NormConfig, NormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.rng import Rng
from protocols.run import Run

SIZE = 1_000_000


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
