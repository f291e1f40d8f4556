"""The result of a run: metrics, and a row for each receiver."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

__all__ = ["Expected", "Result", "Row", "combine", "row_of"]

Expected = Mapping[tuple[int, int], tuple[int, str | None]]
"""The objects sent: (sender, object id) -> (size in bytes, SHA-256 or None for content without bytes)."""

SENDER_HANDLES = ("data_sent", "repairs_sent", "acks_received", "nacks_received")
RECEIVER_HANDLES = ("data_received", "acks_sent", "nacks_sent", "nacks_heard")
"""Counters whose sums are the packets that a sender or receiver processes, after Towsley, Kurose and Pingali (1997)."""

PROOFS = {True: "sha256", False: "erasure accounting"}


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome at one receiver. `equal`: whether it received all required content unchanged; `proof`: how that was verified.

    `completed_at` is in seconds, None if content is missing; `loss` is the fraction of content packets lost.
    """

    name: str
    objects: int
    bytes: int
    equal: bool
    proof: str
    completed_at: float | None
    loss: float
    nacks_sent: int
    nacks_suppressed: int
    aborted: int
    duplicates: int
    fault: str | None = None
    visitor: bool = False
    """Whether it joined late or left early; `equal` then covers the objects submitted while it was a member."""
    handled: int = 0
    """Packets processed: content received, feedback sent, and other receivers' NACKs where the protocol counts them."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a run. `fingerprint` is equal for equal simulated runs, None in Mininet."""

    scenario: str
    digest: str
    backend: str
    seed: int
    completed: bool
    fingerprint: str | None
    metrics: dict[str, Any]
    receivers: tuple[Row, ...]

    @property
    def violations(self) -> list[dict[str, Any]]:
        """The first violations of invariants; empty where none were checked (Mininet)."""
        found: list[dict[str, Any]] = self.metrics.get("invariants", {}).get("violations", [])
        return found

    @property
    def ok(self) -> bool:
        """Whether every receiver has all required content and no invariant was violated."""
        return self.completed and not self.violations

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON, the receivers as a list of mappings."""
        return {**{name: getattr(self, name) for name in _HEAD}, "receivers": [asdict(row) for row in self.receivers]}


_HEAD = ("scenario", "digest", "backend", "seed", "completed", "fingerprint", "metrics")


def row_of(
    name: str,
    result: Mapping[str, Any],
    expected: Expected,
    bytes_travel: bool,
    required: frozenset[tuple[int, int]] | None = None,
) -> Row:
    """Make the row of a receiver from the result of its program (with `fault` when the node died).

    `expected` are the objects sent to its group; `required` is the part that a receiver which joined late or left early must
    have (None: all). `bytes_travel`: whether content was verified by SHA-256.
    """
    received = {(sender, number): (size, digest) for sender, number, size, digest in result.get("received", ())}
    counts = result.get("counts", {})
    due = expected.keys() if required is None else required
    intact = all(expected.get(key) == came for key, came in received.items()) and not result.get("duplicates", 0)
    complete = due <= received.keys() <= expected.keys()
    lost = counts.get("data_lost", 0)
    heard = lost + counts.get("data_received", 0)
    return Row(
        name=name,
        objects=len(received),
        bytes=sum(size for size, _ in received.values()),
        equal=intact and complete,
        proof=PROOFS[bytes_travel],
        completed_at=result.get("last_at") if complete else None,
        loss=lost / heard if heard else 0.0,
        nacks_sent=counts.get("nacks_sent", 0),
        nacks_suppressed=counts.get("nacks_suppressed", 0),
        aborted=result.get("aborted", 0),
        duplicates=result.get("duplicates", 0),
        fault=result.get("fault"),
        visitor=required is not None,
        handled=sum(counts.get(key, 0) for key in RECEIVER_HANDLES),
    )


def combine(
    *,
    rows: Sequence[Row],
    senders: Iterable[Mapping[str, Any]],
    packets: Mapping[str, int],
    octets: Mapping[str, int],
    expected: Expected,
    began_at: float,
    segment: int,
) -> dict[str, Any]:
    """Compute the metrics of a run.

    `senders` are the results of sender programs; `packets` and `octets` count by kind of message; `segment` is the content in a
    packet, in bytes. Goodput is content per receiver over the time from `began_at` (first submission, in seconds) to the last
    completion.
    """
    content = sum(size for size, _ in expected.values())
    always_there = [row.completed_at for row in rows if not row.visitor]
    finished = [at for at in always_there if at is not None]
    span = max(finished) - began_at if finished and len(finished) == len(always_there) else None
    counts = [sender.get("counts", {}) for sender in senders]
    sent = sum(octets.values())
    return {
        "receivers": len(rows),
        "receivers_complete": sum(row.equal for row in rows),
        "objects": len(expected),
        "content_bytes": content,
        "source_packets": sum(-(-size // segment) for size, _ in expected.values()),
        "completion_time": span,
        "goodput_mbit_s": content * 8e-6 / span if span else None,
        "loss": fsum(row.loss for row in rows) / len(rows),
        "nacks_sent": sum(row.nacks_sent for row in rows),
        "nacks_suppressed": sum(row.nacks_suppressed for row in rows),
        **{key: sum(each.get(key, 0) for each in counts) for key in ("nacks_received", "data_sent", "repairs_sent")},
        "sender_handled": sum(each.get(key, 0) for each in counts for key in SENDER_HANDLES),
        "receiver_handled": fsum(row.handled for row in rows) / len(rows),
        "packets": {"total": sum(packets.values()), **dict(sorted(packets.items()))},
        "bytes_sent": sent,
        "overhead": sent / content if content else None,
    }
