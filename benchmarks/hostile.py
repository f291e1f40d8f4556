"""Measure what crafted messages cost a NORM sender and a NORM receiver.

    python -m benchmarks.hostile [--json] [--small 1MB] [--large 1GB] [--senders 1000]

Each kind of message is decoded and delivered to a machine with little state (an object of `--small` bytes, one sender) and to
one with much state (`--large` bytes, `--senders` senders); a wake-up that becomes due at once belongs to the message. The
result is CPU time in microseconds, per message and per kilobyte of it, where a part of a kilobyte counts as one. The exit code
is 1 when any message takes more than 1000 us per kilobyte.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from time import process_time
from typing import Any, NamedTuple

from experiments.running.content import Extent
from protocols.connection import Connection
from protocols.errors import WireError
from protocols.events import Event
from protocols.machine import Content, Group, Machine, Offer, Packet, Sink
from protocols.norm.config import NormConfig
from protocols.norm.messages import FLAG_FILE, Data, Flush, Fti, Nack, NormMessage, Origin, Probe, Squelch
from protocols.norm.receiver import NormReceiver
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.sender import NormSender
from protocols.norm.tx_object import TxObject
from protocols.norm.wire.codec import NormCodec
from protocols.rng import Rng
from protocols.storage import Change
from topologies.units import parse_size

__all__ = ["KINDS", "LIMIT", "Known", "main", "measure", "receiver", "sender"]

LIMIT = 1000.0
"""Microseconds per kilobyte."""
KILOBYTE = 1000
GROUP = Group("239.1.1.1:6003")
SENDER = 1
ORIGIN = Origin(SENDER, 1, 60, 4, 3)
SEGMENT, BLOCK, PARITY = 1400, 64, 16
LONGEST = 64_000
"""Bytes of the longest message."""


class Known(NamedTuple):
    """The state of a machine: bytes of the object under way, number of objects in the window, number of senders."""

    size: int
    objects: int
    senders: int


class Silent:
    """Ports that drop what a machine sends; every object is wanted, and its content dropped."""

    trace: Callable[[str, object], None] | None = None
    size = 0
    epoch = 0.0

    def __init__(self) -> None:
        self.rng = Rng(1)

    def send(self, packet: Packet) -> None:
        """Drop a packet."""

    def notify(self, event: Event) -> None:
        """Drop an event."""

    def alarm(self, when: float) -> None:
        """Ignore a deadline."""

    def join(self, group: Group) -> None:
        """Ignore a group."""

    def leave(self, group: Group) -> None:
        """Ignore a group."""

    def listen(self) -> None:
        """Accept no connections."""

    def connect(self, peer: object) -> Connection:
        """Begin a connection that is never established."""
        return Connection(peer)

    def hang_up(self, connection: Connection) -> None:
        """Ignore a connection."""

    def keep(self, octets: int) -> None:
        """Ignore the number."""

    def fail(self, reason: str) -> None:
        """Ignore the reason."""

    def hold(self, connection: Connection) -> None:
        """Ignore a connection."""

    def release(self, connection: Connection) -> None:
        """Ignore a connection."""

    def store(self, changes: Sequence[Change]) -> int:
        """Drop a batch."""
        return 0

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> int:
        """Read nothing."""
        return 0

    def work(self, seconds: float) -> None:
        """Ignore processor time."""

    def accept(self, offer: Offer) -> Sink | None:
        """Accept every object."""
        return self

    def read(self, offset: int, n: int) -> bytes:
        """Return zeros."""
        return bytes(n)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Drop content."""

    def commit(self, info: bytes) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


def sender(known: Known) -> NormSender:
    """Return a sender that has sent all its objects, the first of them of `known.size` bytes."""
    machine = NormSender(Silent(), NormConfig(rate=1e9, cache_size=1 << 48), SENDER, GROUP)
    machine.start(0.0)
    for number in range(known.objects):
        machine.submit(Content(Extent(known.size if not number else 100_000), b"name"), 0.0)
    for item in machine._window.objects.values():
        _finish(item)
    machine._unsent.clear()
    machine.wake(0.0)
    return machine


def _finish(item: TxObject) -> None:
    item.block, item.info_sent, item.info_due = item.partition.blocks, True, False


def receiver(known: Known) -> NormReceiver:
    """Return a receiver that is in a back-off for 512 incomplete blocks of the sender's object and knows other senders."""
    machine = NormReceiver(Silent(), NormConfig(), 9, GROUP)
    machine.start(0.0)
    for node in range(2, known.senders + 1):
        machine.receive(_data(Origin(node, 1, 60, 4, 3), 0, 0, 0, 0), node, GROUP, 0.0)
    fti = Fti(5, known.size, SEGMENT, BLOCK, PARITY)
    for number, block in enumerate(range(min(fti.partition.blocks, 512))):
        machine.receive(_data(ORIGIN, number, 0, block, 1, fti), GROUP, GROUP, 0.0)
    return machine


def _data(origin: Origin, sequence: int, object_id: int, block: int, symbol: int, fti: Fti | None = None) -> Data:
    fti = fti or Fti(5, 100_000, SEGMENT, BLOCK, PARITY)
    length = fti.partition.payload(fti.partition.first(block) + symbol)
    names = fti.fec_id, object_id, block, symbol, fti.partition.length(block), fti
    return Data(origin, sequence & 0xFFFF, FLAG_FILE, *names, bytes(length), length)


# -- crafted messages --------------------------------------------------------------------------------------------------


def _nack(level: int, form: int, rows: list[tuple[int, int, int]]) -> Nack:
    requests = (Request(form, level, tuple([Item(5, *row) for row in rows])),)
    return Nack(7, 0, SENDER, 1, 0, 0, requests)


def _repeated(level: int, form: int, make: Callable[[int], list[tuple[int, int, int]]], size: int) -> Iterator[Nack]:
    """Yield NACKs of `size` bytes with rows `make(n)`, where n goes on from one to the next."""
    numbers = count()
    while True:
        rows: list[tuple[int, int, int]] = []
        while 32 + 8 * len(rows) < size:
            rows += make(next(numbers))
        yield _nack(level, form, rows)


def _every_block(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_BLOCK, FORM_RANGES, lambda n: [(0, 0, 0), (0, 0xFFFFFF, 0)], size)


def _every_other_block(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_BLOCK, FORM_RANGES, lambda n: [(0, 2 * n % 11_000, 0), (0, 2 * n % 11_000, 0)], size)


def _nested_blocks(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_BLOCK, FORM_RANGES, lambda n: [(0, n % 5000, 0), (0, 11_000 - n % 5000, 0)], size)


def _every_symbol(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_SEGMENT, FORM_RANGES, lambda n: [(0, n % 11_000, 0), (0, n % 11_000, 255)], size)


def _every_parity(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_SEGMENT, FORM_ITEMS, lambda n: [(0, n % 11_000, 64 + n % 16)], size)


def _every_object(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_OBJECT, FORM_RANGES, lambda n: [(n % 3, 0, 0), (0x7FFF, 0, 0)], size)


def _every_info(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_INFO, FORM_ITEMS, lambda n: [(2 * n & 0xFFFF, 0, 0)], size)


def _no_object(size: int) -> Iterator[Nack]:
    return _repeated(LEVEL_SEGMENT, FORM_ITEMS, lambda n: [(5000 + n % 40_000, n & 0xFFFF, 1)], size)


def _squelches(size: int) -> Iterator[NormMessage]:
    while True:
        yield Squelch(ORIGIN, 600, 5, 0, 0, 0, 0, tuple(range(1000, 1000 + (size - 20) // 2)))


def _new_senders(size: int) -> Iterator[NormMessage]:
    for n in count(100_000):
        yield _data(Origin(n, 1, 60, 4, 3), 0, 0, 0, 0)


def _new_probers(size: int) -> Iterator[NormMessage]:
    for n in count(100_000):
        yield Probe(Origin(n, 1, 60, 4, 3), 0, 0, 1, 0, 0x4005)


def _new_instances(size: int) -> Iterator[NormMessage]:
    for n in count(2):
        yield _data(Origin(SENDER, n & 0xFFFF, 60, 4, 3), 0, 0, 0, 0)


def _new_sizes(size: int) -> Iterator[NormMessage]:
    for n in count(1):
        fti = Fti(5, (1 << 48) - n if n % 2 else 200 * ((1 << 24) - n), 65_000 if n % 2 else 100, 255, 0)
        if fti.partition.blocks <= 1 << 24:
            yield _data(ORIGIN, n, n & 0x7FFF, fti.partition.blocks - 1, 0, fti)


def _jumps(size: int) -> Iterator[NormMessage]:
    for n in count(1):
        yield Flush(ORIGIN, n & 0xFFFF, 5, n * 300 & 0xFFFF, 1, 1)


def _squelched_jumps(size: int) -> Iterator[NormMessage]:
    for n in count(1):
        yield Squelch(ORIGIN, n & 0xFFFF, 5, n * 300 & 0xFFFF, 0, 0)


def _holes(size: int) -> Iterator[NormMessage]:
    fti = Fti(5, 255 * 8 * (1 << 24), 8, 255, 0)
    for n in count(1):
        yield _data(ORIGIN, 600 + n & 0xFFFF, 1, 2 * n & 0xFFFFFF, 3, fti)


NACKS: dict[str, Callable[[int], Iterator[Any]]] = {
    "NACK every block": _every_block,
    "NACK every other block": _every_other_block,
    "NACK nested ranges": _nested_blocks,
    "NACK every symbol": _every_symbol,
    "NACK parity": _every_parity,
    "NACK every object": _every_object,
    "NACK every INFO": _every_info,
    "NACK absent objects": _no_object,
}
KINDS: dict[str, dict[str, Callable[[int], Iterator[Any]]]] = {
    "sender": NACKS,
    "receiver": NACKS
    | {
        "SQUELCH": _squelches,
        "DATA of new senders": _new_senders,
        "CC of new senders": _new_probers,
        "DATA of new instances": _new_instances,
        "DATA of other sizes": _new_sizes,
        "FLUSH of later objects": _jumps,
        "SQUELCH before later objects": _squelched_jumps,
        "DATA with holes": _holes,
    },
}
"""Kinds of messages by the machine that receives them. A kind yields messages of about the given number of bytes, as far as its
messages have a variable length."""


# -- measuring ---------------------------------------------------------------------------------------------------------


def handle(machine: Machine, codec: NormCodec, data: bytes, now: float) -> None:
    """Decode a packet and deliver it as a host does, and run a wake-up that is due afterwards."""
    try:
        machine.receive(codec.decode(data), GROUP, GROUP, now)
    except WireError:
        return
    if machine.deadline <= now:
        machine.wake(now)


def measure(role: str, kind: str, size: int, known: Known) -> dict[str, Any]:
    """Return a row with the median CPU time of 15 messages of a kind of about `size` bytes, in a machine with this state."""
    machine: Machine = sender(known) if role == "sender" else receiver(known)
    codec = NormCodec()
    made = KINDS[role][kind](size)
    packets = [codec.encode(next(made)) for _ in range(15)]
    times = []
    for packet in packets:
        begin = process_time()
        handle(machine, codec, packet, 1e-3)
        times.append(process_time() - begin)
    cost, octets = 1e6 * sorted(times)[len(times) // 2], len(packets[0])
    row = {"machine": role, "kind": kind, "bytes": octets, "size": known.size, "senders": known.senders}
    return row | {"us": round(cost, 1), "us_per_kB": round(cost / max(octets / KILOBYTE, 1.0), 1)}


def main() -> int:
    """Run the program; the exit code is 1 when something is above the limit."""
    parser = argparse.ArgumentParser(description="Measure what crafted messages cost.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--small", type=parse_size, default=1_000_000)
    parser.add_argument("--large", type=parse_size, default=1_000_000_000)
    parser.add_argument("--senders", type=int, default=1000)
    options = parser.parse_args()
    states = Known(options.small, 1, 1), Known(options.large, 256, options.senders)
    rows = [
        measure(role, kind, size, known)
        for role, kinds in KINDS.items()
        for kind in kinds
        for size in ((44, 828, LONGEST) if kind in NACKS or kind == "SQUELCH" else (0,))
        for known in states
    ]
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(
                f"{row['machine']:8} {row['kind']:24} {row['bytes']:6} B  of {row['size']:11} B, {row['senders']:5} senders"
                f"  {row['us']:9} us  {row['us_per_kB']:8} us/kB"
            )
    return int(any(row["us_per_kB"] > LIMIT for row in rows))


if __name__ == "__main__":
    sys.exit(main())
