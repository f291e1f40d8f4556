"""Measure `mcastlab inspect` on a large capture: `python -m benchmarks.inspection [--packets N] [--json]`.

The capture is made first and not timed: a file object in segments of 1400 bytes, of which ten receivers each lose 1 %. They
request repairs after every block and the sender repairs with parity, so that all parts of the inspection are used. One process
does all of it; the time is CPU time.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from experiments.inspection.inspection import inspect_capture
from protocols.norm.messages import FLAG_FILE, FLAG_REPAIR, Data, Fti, Nack, NormMessage, Origin
from protocols.norm.requests import (
    FORM_RANGES,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.codec import NormCodec
from protocols.rng import Rng, key_of
from tests.support.capture_writer import Sent, datagram, frame
from topologies.pcapng import PcapngWriter

__all__ = ["main", "measure"]

SEGMENT, BLOCK, PARITY, RECEIVERS, LOSS, GAP = 1400, 64, 16, 10, 0.01, 1e-4
ORIGIN = Origin(1, 1, 120, 4, 2)


class SessionWriter:
    """Writes the capture of a session."""

    def __init__(self, writer: PcapngWriter) -> None:
        self._writer, self._codec, self._rng = writer, NormCodec(), Rng(key_of(1, "benchmark"))
        self._interface = writer.interface("capture")
        self.packets = self._sequence = 0

    def write(self, packets: int) -> None:
        """Write blocks, the NACKs for each and its repairs, until there are `packets`."""
        blocks = packets // BLOCK
        fti = Fti(5, blocks * BLOCK * SEGMENT, SEGMENT, BLOCK, PARITY)
        block = 0
        while self.packets < packets:
            for symbol in range(BLOCK):
                self._data(fti, block, symbol, 0)
            most = 0
            for receiver in range(RECEIVERS):
                lost = sum(self._rng.uniform() < LOSS for _ in range(BLOCK))
                most = max(most, lost)
                if lost:
                    self._nack(2 + receiver, block, lost)
            for symbol in range(BLOCK, BLOCK + most):
                self._data(fti, block, symbol, FLAG_REPAIR)
            block += 1

    def _data(self, fti: Fti, block: int, symbol: int, flags: int) -> None:
        payload = bytes([block & 255, symbol]) * (SEGMENT // 2)
        self._write_message(
            Data(ORIGIN, self._sequence, FLAG_FILE | flags, 5, 0, block, symbol, BLOCK, fti, payload, SEGMENT), 1
        )
        self._sequence = (self._sequence + 1) & 0xFFFF

    def _nack(self, receiver: int, block: int, lost: int) -> None:
        ends = (Item(5, 0, block, BLOCK), Item(5, 0, block, BLOCK + lost - 1))
        self._write_message(Nack(receiver, 0, 1, 1, 0, 0, (Request(FORM_RANGES, LEVEL_SEGMENT, ends),)), receiver)

    def _write_message(self, message: NormMessage, node: int) -> None:
        sent = Sent(self._codec.encode(message), source=(10, 0, 0, node), ident=self.packets & 0xFFFF)
        self._writer.packet(self._interface, self.packets * GAP, frame(datagram(sent)))
        self.packets += 1


def measure(packets: int, folder: Path) -> dict[str, Any]:
    """Make a capture, inspect it, and return CPU time and counts."""
    path = folder / "large.pcapng"
    with path.open("wb") as file:
        session = SessionWriter(PcapngWriter(file))
        session.write(packets)
    before = process_time()
    found = inspect_capture(path)
    seconds = process_time() - before
    plain = found.plain()
    assert plain["messages"] == session.packets
    assert not plain["violations"]
    return {
        "packets": session.packets,
        "bytes": path.stat().st_size,
        "cpu_s": round(seconds, 3),
        "us_per_packet": round(seconds / session.packets * 1e6, 2),
        "requests": sum(row["nacks"] for row in plain["receivers"]),
        "repairs": plain["senders"][0]["repairs"]["packets"],
        "scapy": plain["scapy"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time of mcastlab inspect")
    parser.add_argument("--packets", type=int, default=200_000, help="approximate number of packets")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        row = measure(options.packets, Path(folder))
    if options.json:
        print(json.dumps(row))
        return
    print(f"{row['packets']} packets, {row['bytes'] / 1e6:.0f} MB, {row['requests']} NACKs, {row['repairs']} repairs")
    print(f"{row['cpu_s']:.2f} s of CPU time, {row['us_per_packet']:.1f} us per packet")


if __name__ == "__main__":
    main()
