"""Recorded traffic of the Java Distributor in `tests/vectors/distributor`, and what tests need of the protocol."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.captures.datagrams import Capture

__all__ = ["CAPTURES", "GROUP", "VECTORS", "expected", "payloads", "vectors"]

VECTORS = Path(__file__).parent.parent / "vectors" / "distributor"
CAPTURES = sorted(path.stem for path in VECTORS.glob("*.pcap"))
GROUP = "224.10.10.44:5656"


def vectors(name: str) -> Any:
    """Load a JSON file of the vectors."""
    return json.loads((VECTORS / f"{name}.json").read_text())


def expected(name: str) -> list[dict[str, Any]]:
    """Return the decoded datagrams of a capture."""
    return list(vectors(name)["datagrams"])


def payloads(name: str) -> Iterator[tuple[float, bytes]]:
    """Yield time (seconds since the first) and UDP payload of the datagrams to the group of a capture."""
    host, _, port = GROUP.partition(":")
    began: float | None = None
    for datagram in Capture(VECTORS / f"{name}.pcap"):
        if datagram.target == host and datagram.port == int(port):
            began = datagram.time if began is None else began
            yield datagram.time - began, datagram.payload
