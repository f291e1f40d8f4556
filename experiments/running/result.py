"""The result of a run: metrics, and a row for each receiver."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from experiments.workload.ledger import Ledger, SubscriptionAccount

__all__ = ["Expected", "Result", "Row", "combine", "message_metrics", "packets_of", "row_of", "row_of_messages"]

Expected = Mapping[tuple[int, int], tuple[int, str | None]]
"""The objects sent: (sender, object id) -> (size in bytes, SHA-256 or None for content without bytes)."""

SENDER_HANDLES = ("data_sent", "repairs_sent", "acks_received", "nacks_received")
RECEIVER_HANDLES = ("data_received", "repairs_sent", "acks_sent", "nacks_sent", "nacks_heard")
"""Counters whose sums are the packets that a sender or receiver processes, after Towsley, Kurose and Pingali (1997)."""

PROOFS = {True: "sha256", False: "erasure accounting"}
MESSAGE_PROOFS = {True: "comparison", False: "ledger"}


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome at one receiver. `equal`: whether it received all required content unchanged; `proof`: how that was verified.

    `completed_at` is in seconds from the start of the run (the run's `completion_time` counts from the first submission), None
    if content is missing; `loss` is the fraction of content packets lost; `duplicates` counts objects or messages that were
    delivered twice, while the metric of the run counts packets. `loss`, the numbers of NACKs and `handled` are None where the
    protocol, or a foreign program, does not count them; `loss` also where nothing came.
    """

    name: str
    objects: int
    bytes: int
    equal: bool
    proof: str
    completed_at: float | None
    loss: float | None
    nacks_sent: int | None
    nacks_suppressed: int | None
    aborted: int
    duplicates: int
    fault: str | None = None
    visitor: bool = False
    """Whether it joined late or left early; `equal` then covers the objects submitted while it was a member."""
    handled: int | None = None
    """Packets processed: content received, feedback and repairs sent, and other receivers' NACKs where they are counted."""
    repairs_sent: int | None = None
    """Repairs sent for other members; None where the protocol does not count them."""


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
    messages: dict[str, list[dict[str, Any]]] | None = None
    """Tables of the ledger, by name (`publishers`, `subscriptions`); None in a run without messages."""
    statistics: list[dict[str, Any]] | None = None
    """Rows with the `time` in seconds, the `host` and its `statistics` (`Snapshot.plain`); None if not requested."""

    @property
    def violations(self) -> list[dict[str, Any]]:
        """The first violations of invariants; empty where none were checked (files in Mininet)."""
        found: list[dict[str, Any]] = self.metrics.get("invariants", {}).get("violations", [])
        return found

    @property
    def ok(self) -> bool:
        """Whether every receiver has all required content and no invariant was violated."""
        return self.completed and not self.violations

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON, the receivers as a list of mappings."""
        rows = {"receivers": [asdict(row) for row in self.receivers]}
        told = {} if self.messages is None else {"messages": self.messages}
        kept = {} if self.statistics is None else {"statistics": self.statistics}
        return {**{name: getattr(self, name) for name in _HEAD}, **rows, **told, **kept}


UNREAD = "datagram"
"""Kind of the packets of foreign programs whose messages are not decoded."""


def packets_of(result: Result, *kinds: str) -> int | None:
    """Return the number of packets of these kinds; None if a foreign program sent packets that nobody decoded or counted."""
    packets: dict[str, int] = result.metrics["packets"]
    return None if UNREAD in packets or packets["total"] is None else sum(packets.get(kind, 0) for kind in kinds)


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
    counts: Mapping[str, int] = result.get("counts", {})
    due = expected.keys() if required is None else required
    intact = all(expected.get(key) == came for key, came in received.items()) and not result.get("duplicates", 0)
    has_died = result.get("fault") is not None and "received" not in result
    complete = due <= received.keys() <= expected.keys() and not has_died
    return Row(
        name=name,
        objects=len(received),
        bytes=sum(size for size, _ in received.values()),
        equal=intact and complete,
        proof=PROOFS[bytes_travel],
        completed_at=result.get("last_at") if complete else None,
        loss=_loss(counts),
        nacks_sent=counts.get("nacks_sent"),
        nacks_suppressed=counts.get("nacks_suppressed"),
        aborted=result.get("aborted", 0),
        duplicates=result.get("duplicates", 0),
        fault=result.get("fault"),
        visitor=required is not None,
        handled=_handled(counts, RECEIVER_HANDLES),
        repairs_sent=counts.get("repairs_sent"),
    )


def row_of_messages(
    name: str, result: Mapping[str, Any], accounts: Sequence[SubscriptionAccount], bytes_travel: bool, visitor: bool
) -> Row:
    """Make the row of a subscriber from the result of its program and the accounts of its subscriptions.

    It is `equal` if it got every message it was promised, unchanged; `loss` is the fraction of due messages that were lost.
    `visitor`: whether it unsubscribed during the run.
    """
    counts: Mapping[str, int] = result.get("counts", {})
    due = sum(account.due for account in accounts)
    complete = bool(accounts) and not any(account.missing for account in accounts)
    last = [account.last_at for account in accounts if account.last_at is not None]
    return Row(
        name=name,
        objects=sum(account.delivered for account in accounts),
        bytes=sum(account.bytes for account in accounts),
        equal=complete and not result.get("damaged", 0),
        proof=MESSAGE_PROOFS[bytes_travel],
        completed_at=max(last) if complete and last else None,
        loss=sum(account.lost for account in accounts) / due if due else None,
        nacks_sent=counts.get("nacks_sent"),
        nacks_suppressed=counts.get("nacks_suppressed"),
        aborted=0,
        duplicates=sum(account.repeated for account in accounts),
        fault=result.get("fault"),
        visitor=visitor,
        handled=_handled(counts, RECEIVER_HANDLES),
        repairs_sent=counts.get("repairs_sent"),
    )


def message_metrics(ledger: Ledger) -> dict[str, Any]:
    """Compute the metrics of a run's messages; latencies are the worst of all subscriptions, goodput the mean."""
    accounts, publishers = ledger.subscriptions, ledger.publishers()
    totals = ("due", "promised", "delivered", "repeated", "expired", "lost", "missing", "untold")
    return {
        "published": sum(row.published for row in publishers),
        **{name: sum(getattr(account, name) for account in accounts) for name in totals},
        "blocked": sum(row.blocked for row in publishers),
        "latency_p50": max((row.latency_p50 for row in accounts if row.latency_p50 is not None), default=None),
        "latency_p99": max((row.latency_p99 for row in accounts if row.latency_p99 is not None), default=None),
        "goodput_mbit_s": _mean(account.goodput_mbit_s for account in accounts),
    }


def _loss(counts: Mapping[str, int]) -> float | None:
    """Return the fraction of content packets lost; None if they are not counted, or none was sent as far as is known."""
    if "data_lost" not in counts or "data_received" not in counts:
        return None
    sent = counts["data_lost"] + counts["data_received"]
    return counts["data_lost"] / sent if sent else None


def _handled(counts: Mapping[str, int], keys: Sequence[str]) -> int | None:
    """Return the packets processed; None if content, the first of the keys, is not counted."""
    return sum(counts.get(key, 0) for key in keys) if keys[0] in counts else None


def _total(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


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
    """Compute the metrics of a run; None for what no sender or receiver counts, and for means of nothing.

    `senders` are the results of sender programs; `packets` and `octets` count by kind of message; `segment` is the content in a
    packet, in bytes. Goodput is content per receiver over the time from `began_at` (first submission, in seconds) to the last
    completion. Repairs are those of all members.
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
        "loss": _mean(row.loss for row in rows),
        "nacks_sent": _total(row.nacks_sent for row in rows),
        "nacks_suppressed": _total(row.nacks_suppressed for row in rows),
        **{key: _total(each.get(key) for each in counts) for key in ("nacks_received", "data_sent")},
        "repairs_sent": _total([*(each.get("repairs_sent") for each in counts), *(row.repairs_sent for row in rows)]),
        "sender_handled": _total(_handled(each, SENDER_HANDLES) for each in counts),
        "receiver_handled": _mean(row.handled for row in rows),
        "packets": {"total": sum(packets.values()), **dict(sorted(packets.items()))},
        "bytes_sent": sent,
        "overhead": sent / content if content else None,
    }
