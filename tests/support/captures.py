"""Recorded traffic of NRL NORM in `tests/vectors/norm`."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapReader

__all__ = ["CAPTURES", "VECTORS", "expected", "udp_payloads", "vector"]

VECTORS = Path(__file__).parent.parent / "vectors" / "norm"
CAPTURES = tuple(sorted(path.stem for path in VECTORS.glob("*.pcap")))

_ETHERNET = 14


def vector(name: str) -> Any:
    """Load a JSON file of the vectors."""
    return json.loads((VECTORS / name).read_text())


@cache
def expected() -> dict[str, Any]:
    """Return the output of an independent decoder, by capture."""
    return dict(vector("expected.json"))


@cache
def udp_payloads(capture: str) -> tuple[bytes, ...]:
    """Return every frame's UDP payload in order, so that index + 1 is the frame number."""
    return tuple(_payloads(VECTORS / f"{capture}.pcap"))


def _payloads(path: Path) -> Iterator[bytes]:
    for frame, _ in RawPcapReader(str(path)):
        assert frame[12:14] == b"\x08\x00", "IPv4"
        assert frame[_ETHERNET + 9] == 17, "UDP"
        udp = _ETHERNET + (frame[_ETHERNET] & 15) * 4
        yield frame[udp + 8 : udp + int.from_bytes(frame[udp + 4 : udp + 6])]
