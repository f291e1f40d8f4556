"""With keys, a transfer over UDP sockets is whole whatever somebody without a key sends: forged or replayed packets."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp import open_receiver
from emu.udp_options import UdpOptions
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.worlds import LossyCodec, free_port
from protocols.events import Event, ObjectReceived
from protocols.machine import Codec, Content, Group, Offer, Sink
from protocols.norm.config import NormConfig
from protocols.norm.messages import Data, Fti, Nack, NormMessage, Origin, Squelch
from protocols.norm.receiver import NormReceiver
from protocols.norm.requests import (
    FORM_RANGES,
    LEVEL_BLOCK,
    Item,
    Request,
)
from protocols.norm.sender import NormSender
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.norm.wire.codec import NormCodec
from protocols.rng import Rng

SIZE, SEGMENT, BLOCK = 200_000, 500, 16
CONFIG: dict[str, Any] = {
    "rate": 1e6,
    "segment": SEGMENT,
    "block": BLOCK,
    "parity": 4,
    "grtt": 0.005,
    "gsize": 10,
    "robust": 20,
    "backoff": 2,
}
LOSS = 0.05
KEY = bytes(range(32))
LONGEST = 20.0
Forge = Callable[[Data], list[NormMessage]]


@pytest.fixture
def loop() -> Iterator[Loop]:
    """Return a new loop."""
    loop = new_loop()
    yield loop
    loop.close()


@dataclass
class Attacker:
    """Answers every DATA of the group with forged messages, bare and with a key of its own, and with old packets."""

    loop: Loop
    port: int
    forge: Forge | None = None
    """Makes forged messages from an overheard segment."""
    replays: int = 0
    """How often every overheard packet, whoever sent it, is sent again."""
    heard: list[bytes] = field(default_factory=list)
    sent: int = 0

    def __post_init__(self) -> None:
        self._plain, self._other = NormCodec(), AuthenticatedCodec(NormCodec(), {0: KEY[::-1]}, time.time)
        self._hearing = open_receiver(("239.255.77.2", self.port), "127.0.0.1", 1 << 20)
        self._sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        self._sending.bind(("127.0.0.1", 0))
        self.loop.add_reader(self._hearing, self._on_readable)

    def _on_readable(self) -> None:
        # One packet only: the hosts read what the attacker sends before it sends more, so their buffers do not overflow on a
        # slow machine.
        with suppress(BlockingIOError):
            data, source = self._hearing.recvfrom(65_535)
            if source != self._sending.getsockname():
                self._attack(data)

    def _attack(self, data: bytes) -> None:
        self.heard.append(data)
        for _ in range(self.replays):
            self._send(data)
        if self.replays:
            # An old one as well, long after its time.
            self._send(self.heard[len(self.heard) // 2])
        message = self._plain.decode(data)
        if self.forge is not None and isinstance(message, Data):
            for forged in self.forge(message):
                self._send(self._plain.encode(forged))
                self._send(self._other.encode(forged))

    def _send(self, data: bytes) -> None:
        self._sending.sendto(data, ("239.255.77.2", self.port))
        self.sent += 1

    def close(self) -> None:
        """Close the sockets."""
        self.loop.remove_reader(self._hearing)
        self._hearing.close()
        self._sending.close()


@dataclass
class Outcome:
    """The result of a transfer: the content received (None: aborted or incomplete), seconds, and faults by host."""

    content: bytes | None = field(repr=False)
    seconds: float
    sent: dict[str, int]
    faults: list[dict[str, int]]


def transfer(loop: Loop, forge: Forge | None = None, replays: int = 0, *, keyed: bool = True) -> Outcome:
    """Send an object over a lossy path while an attacker is at work."""
    port, sinks = free_port(), list[CheckedSink]()
    group = Group(f"239.255.77.2:{port}")

    def codec() -> Codec:
        return AuthenticatedCodec(NormCodec(), {0: KEY}, time.time) if keyed else NormCodec()

    codecs = [codec(), LossyCodec(codec(), LOSS, 1), LossyCodec(codec(), LOSS, 2)]
    # Single packets, because the attacker does not take batches apart.
    hosts = [
        UdpHost(loop, codecs[i], interface="127.0.0.1", port=free_port(), rng=Rng(i), options=UdpOptions(ttl=0), burst=1)
        for i in range(3)
    ]
    attacker = Attacker(loop, port, forge, replays)

    def accept(offer: Offer) -> Sink:
        sinks.append(CheckedSink(offer.size))
        return sinks[-1]

    complete: list[Event] = []

    def stop_when_quiet(before: int) -> None:
        """Stop when no host has refused a packet since the last call: some attacks go on behind the transfer."""
        refused = sum(sum(host.faults.values()) for host in hosts)
        if refused == before:
            loop.stop()
        else:
            loop.call_later(0.25, partial(stop_when_quiet, refused))

    def on_event(event: Event) -> None:
        if isinstance(event, ObjectReceived):
            complete.append(event)
            if len(complete) == 2:
                stop_when_quiet(-1)

    try:
        config = NormConfig(**CONFIG)
        for node, taken in ((1, accept), (2, lambda offer: CheckedSink(offer.size))):
            hosts[node].run(NormReceiver(hosts[node], config, node + 1, group), on_event, taken)
        sender = NormSender(hosts[0], config, 1, group, 7)
        hosts[0].run(sender, lambda event: None)
        content = pattern(SIZE)
        hosts[0].call(sender.submit, Content(Bytes(content), b"name"))
        loop.run(LONGEST if keyed else 1.0)
        whole = [bytes(sink.content) for sink in sinks if sink.info == b"name" and not sink.aborted]
        counts = sender.counts() | {"attacks": attacker.sent}
        return Outcome(
            whole[0] if len(whole) == 1 == len(sinks) else None, hosts[0].now, counts, [host.faults for host in hosts]
        )
    finally:
        attacker.close()
        for host in hosts:
            host.close()


def squelch(heard: Data) -> list[NormMessage]:
    """Say in the sender's name that its objects can't be repaired any more."""
    return [Squelch(heard.origin, heard.sequence + 1 & 0xFFFF, 5, heard.object_id + 1 & 0xFFFF, 0, 0, 0, (heard.object_id,))]


def garbage(heard: Data) -> list[NormMessage]:
    """Send other content for the segments that the sender sends next."""
    fti, block = heard.fti, heard.block + 1
    assert fti is not None
    length = fti.partition.length(min(block, fti.partition.blocks - 1))
    made = (min(block, fti.partition.blocks - 1), heard.symbol % length, length, fti, bytes(SEGMENT), SEGMENT)
    return [Data(heard.origin, heard.sequence + 2 & 0xFFFF, heard.flags, 5, heard.object_id, *made)]


def new_instance(heard: Data) -> list[NormMessage]:
    """Pretend that the sender restarted, with another FTI."""
    origin = heard.origin
    other = Origin(origin.source_id, origin.instance_id + 1 + heard.symbol & 0xFFFF, origin.grtt, origin.backoff, origin.gsize)
    fti = Fti(5, 5_000_000, SEGMENT, BLOCK, 4)
    return [Data(other, heard.sequence, heard.flags, 5, heard.object_id, 0, 0, BLOCK, fti, bytes(SEGMENT), SEGMENT)]


def everything_again(heard: Data) -> list[NormMessage]:
    """Request all blocks of the object, as two receivers."""
    assert heard.fti is not None
    last = heard.fti.partition.blocks - 1
    items = (Item(5, heard.object_id, 0, 0, BLOCK), Item(5, heard.object_id, last, 0, BLOCK))
    request = (Request(FORM_RANGES, LEVEL_BLOCK, items),)
    return [Nack(node, 0, heard.origin.source_id, heard.origin.instance_id, 0, 0, request) for node in (2, 9)]


FORGERIES = {"squelch": squelch, "garbage": garbage, "new instance": new_instance, "everything again": everything_again}


@pytest.mark.timed
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_forged_messages_leave_a_transfer_with_keys_whole(loop: Loop, forge: Forge) -> None:
    outcome = transfer(loop, forge)
    assert outcome.content == pattern(SIZE)
    assert outcome.seconds < LONGEST / 2
    # Every host has refused every packet that it did not lose or drop, and the sender repaired only what was lost.
    arrived = [faults["unauthenticated"] + faults["receive_drops"] for faults in outcome.faults]
    assert min(arrived) > outcome.sent["attacks"] * (1 - 3 * LOSS), outcome
    assert outcome.sent["attacks"] > SIZE // SEGMENT
    assert outcome.sent["repairs_sent"] < 0.5 * SIZE / SEGMENT


@pytest.mark.parametrize("forge", [squelch, garbage])
def test_the_same_messages_ruin_a_transfer_without_keys(loop: Loop, forge: Forge) -> None:
    assert transfer(loop, forge, keyed=False).content != pattern(SIZE)


def test_packets_sent_again_at_once_and_later_change_nothing(loop: Loop) -> None:
    outcome = transfer(loop, replays=3)
    assert outcome.content == pattern(SIZE)
    assert outcome.seconds < LONGEST / 2
    assert all(faults["replayed"] > SIZE / SEGMENT for faults in outcome.faults)
    # The replayed NACKs are not answered again.
    assert outcome.sent["repairs_sent"] < 0.5 * SIZE / SEGMENT


def test_receivers_count_no_refusals_in_a_transfer_without_attacks(loop: Loop) -> None:
    outcome = transfer(loop)
    assert outcome.content == pattern(SIZE)
    assert not {"unauthenticated", "replayed", "stale"} & {name for faults in outcome.faults for name in faults}
