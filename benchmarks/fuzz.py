"""Feed changed and random packets to the codec, a NORM sender and a NORM receiver, and report what they do.

    python -m benchmarks.fuzz [--packets 1000000] [--seed 1] [--json]

Each packet begins as a message of an attack (`benchmarks.attacks`), of the sender or of the receiver under test, or as random
bytes. Most are changed: bits, bytes, length, or parts of two messages joined. A packet that the codec decodes is given to both
machines; time goes on, so that they send NACKs, repairs and answers, which are encoded. Any exception but `WireError` of the
codec ends the program with a traceback, the number of the packet and its bytes; machines begin anew every `RENEWED` packets,
with the next of `MODES`. The sender sends objects and a stream, and asks for ACKs; the receiver takes streams.
"""

import argparse
import json
import resource
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from time import process_time
from typing import Any

from benchmarks.attacks import KINDS, VICTIM, packets
from benchmarks.hostile import GROUP, Silent
from experiments.running.content import Generated
from protocols.acknowledgement import AckRequest
from protocols.errors import WireError
from protocols.machine import Content, Machine, Packet
from protocols.norm.config import NormConfig
from protocols.norm.host_receiver import NormHostReceiver
from protocols.norm.sender import NormSender
from protocols.norm.wire.codec import NormCodec
from protocols.stream import StreamSettings

__all__ = ["Fuzzer", "main"]

RECEIVER = 9
"""Node id of the receiver."""
RENEWED = 20_000
"""Packets after which new machines take the place of the old."""
STEP = 2e-4
"""Seconds between two packets: those of 40 Mbit/s are 0.28 ms apart."""
REPORTED = 500_000
MODES: tuple[dict[str, Any], ...] = ({}, {"congestion": "norm"}, {"feedback": "unicast"}, {"parity": 0, "feedback": "none"})
"""Settings of both machines, beside those that all have."""
LONGEST = 1500
"""Bytes of the longest packet that is changed; longer ones are cut."""
SLOW = 1e-3
"""CPU seconds per kilobyte from which on a packet is counted as slow."""
SOURCES = tuple((f"10.0.0.{number}", 6003) for number in range(1, 9))
KINDS_USED = tuple(kind for kind in KINDS if kind not in ("random bytes", "mutated packets", "NACKs of 64 kB"))
EACH = 1000
"""Packets of each kind."""


class Wire(Silent):
    """Ports that encode what a machine sends and keep some of it."""

    def __init__(self, kept: "deque[bytes]") -> None:
        super().__init__()
        self._codec = NormCodec()
        self._kept = kept

    def send(self, packet: Packet) -> None:
        """Encode a packet."""
        self._kept.append(self._codec.encode(packet.message))


class StreamEnd:
    """The application's end of a stream; it drops what it is given."""

    by_message = True

    def write(self, data: bytes, starts: Sequence[int]) -> None:
        """Drop bytes."""

    def skip(self) -> None:
        """Drop nothing."""

    def commit(self, info: bytes) -> None:
        """End the stream."""

    def abort(self) -> None:
        """End the stream."""


class Fuzzer:
    """Makes packets from a seed, feeds them, and counts: `decoded`, `refused`, `slow`, `slowest` (seconds per kilobyte)."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._codec = NormCodec()
        self._heard: deque[bytes] = deque(maxlen=64)
        self._pool = [packet[:LONGEST] for kind in KINDS_USED for packet in islice(packets(kind), EACH)]
        self._machines: list[Machine] = []
        self._now = 0.0
        self.fed = self.decoded = self.refused = self.slow = 0
        self.slowest = 0.0
        self.sent: dict[str, int] = {}

    def run(self, count: int) -> None:
        """Feed so many packets. An unexpected exception is raised with the packet in a note."""
        for _ in range(count):
            if self.fed % RENEWED == 0:
                self._renew()
            data = self._make()
            begin = process_time()
            try:
                self._feed(data)
            except Exception as error:
                error.add_note(f"packet {self.fed}: {data.hex()}")
                raise
            cost = (process_time() - begin) / max(len(data) / 1000, 1.0)
            self.fed += 1
            self.slow += cost > SLOW
            self.slowest = max(self.slowest, cost)

    def _renew(self) -> None:
        for machine in self._machines:
            for name, number in machine.counts().items():
                self.sent[name] = self.sent.get(name, 0) + number
        mode = MODES[self.fed // RENEWED % len(MODES)]
        config = NormConfig(
            **{"rate": 5e6, "grtt": 0.01, "segment": 200, "block": 16, "parity": 4, "repair_share": 0.33} | mode
        )
        sender = NormSender(Wire(self._heard), config, VICTIM.source_id, GROUP, VICTIM.instance_id)
        receiver = NormHostReceiver(Wire(self._heard), NormConfig(**mode), RECEIVER, GROUP)
        receiver.accept_streams(lambda offer: StreamEnd())
        self._machines, self._now = [sender, receiver], 0.0
        for machine in self._machines:
            machine.start(0.0)
        ids = [sender.submit(Content(Generated(size, 1), b"name"), 0.0) for size in (0, 1, 5000, 400_000)]
        stream = sender.open_stream(StreamSettings(64_000), 0.0)
        sender.write_stream(stream, bytes(50_000), range(0, 50_000, 1000), 0.0)
        for object_id in (*ids, stream):
            sender.require_acks(object_id, AckRequest((RECEIVER,), everybody=True), 0.0)

    def _feed(self, data: bytes) -> None:
        """Decode a packet, give it to the machines, and let time go on."""
        now = self._now = self._now + STEP
        try:
            message = self._codec.decode(data)
        except WireError:
            self.refused += 1
        else:
            self.decoded += 1
            source = SOURCES[self.fed & 7]
            for machine in self._machines:
                machine.receive(message, source, GROUP, now)
        for machine in self._machines:
            if machine.deadline <= now:
                machine.wake(now)
                assert machine.deadline > now, f"{type(machine).__name__} does not go on"

    # -- packets ---------------------------------------------------------------------------------------------------

    def _below(self, limit: int) -> int:
        return int(self._rng.random() * limit)

    def _make(self) -> bytes:
        choice = self._below(16)
        if choice == 0:
            return self._rng.randbytes(self._below(64))
        data = self._heard[self._below(len(self._heard))] if choice < 8 and self._heard else self._of_attack()
        # One in four stays as it was: a valid message in an unexpected state.
        return data if choice & 3 == 3 else self._changed(data[:LONGEST])

    def _of_attack(self) -> bytes:
        return self._pool[self._below(len(self._pool))]

    def _changed(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(1 + self._below(4)):
            kind, place = self._below(6), self._below(min(len(changed), 80) or 1)
            if not changed:
                changed = bytearray(self._of_attack())
            elif kind == 0:
                changed[place] ^= 1 << self._below(8)
            elif kind == 1:
                changed[place] = (0, 1, 0x7F, 0x80, 0xFF, self._below(256))[self._below(6)]
            elif kind == 2:
                del changed[place:]
            elif kind == 3:
                del changed[place : place + 1 + self._below(8)]
            elif kind == 4:
                changed[place:place] = self._rng.randbytes(1 + self._below(8))
            else:
                changed[place:] = self._of_attack()[place:LONGEST]
        return bytes(changed)


def report(fuzzer: Fuzzer) -> dict[str, Any]:
    """Return the counters of a run, with the highest resident memory in bytes."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counts = {"packets": fuzzer.fed, "decoded": fuzzer.decoded, "refused": fuzzer.refused, "exceptions": 0}
    costs = {"slow": fuzzer.slow, "slowest_us_per_kB": round(1e6 * fuzzer.slowest), "cpu_s": round(process_time())}
    return counts | costs | {"rss": memory, "machines": fuzzer.sent}


def steps(total: int, step: int) -> Iterator[int]:
    """Yield numbers of at most `step` whose sum is `total`."""
    while total > 0:
        yield min(step, total)
        total -= step


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Feed changed packets to codec and machines.")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    fuzzer = Fuzzer(options.seed)
    for step in steps(options.packets, REPORTED):
        fuzzer.run(step)
        row = report(fuzzer)
        print(", ".join(f"{name} {row[name]}" for name in row if name != "machines"), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(report(fuzzer)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
