"""Catalogue of the metrics stored per run and per receiver: name, description, and how each is computed from a result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from statistics import fmean, median
from typing import Any

from experiments.running.result import Result, Row, packets_of
from experiments.statistics.intervals import Kind

__all__ = ["METRICS", "RECEIVER_METRICS", "Metric", "metrics_of", "receiver_metrics_of"]


@dataclass(frozen=True, slots=True)
class Metric:
    """Description of a metric, the function that computes it from a result, and its range (`Kind`).

    The value is None where a run has none: it did not end, or its protocol does not count this.
    """

    help: str
    read: Callable[[Result], Any]
    kind: Kind = "positive"
    of: str | None = None
    """The metric that is the largest possible value of this one."""


def _plain(key: str) -> Callable[[Result], Any]:
    return lambda result: result.metrics.get(key)


def _storm(key: str) -> Callable[[Result], Any]:
    return lambda result: result.metrics.get("storm", {}).get(key)


def _total_packets(result: Result) -> int | None:
    total: int | None = result.metrics["packets"]["total"]
    return total


def _links(key: str) -> Callable[[Result], Any]:
    def read(result: Result) -> int | None:
        counts = [row[key] for row in result.metrics.get("impairments") or () if key in row]
        return sum(counts) if counts else None

    return read


def _median_completion(result: Result) -> float | None:
    """Return the median over the receivers that were there for the whole run; one that lacks something is the last."""
    times = sorted(inf if row.completed_at is None else row.completed_at for row in result.receivers if not row.visitor)
    middle = median(times) if times else inf
    return None if middle == inf else middle


def _transmissions(result: Result) -> float | None:
    new, repairs, packets = (result.metrics[key] for key in ("data_sent", "repairs_sent", "source_packets"))
    # A protocol that counts no repairs has none.
    return (new + (repairs or 0)) / packets if packets and new is not None else None


def _processing_throughput(result: Result) -> float | None:
    sent, *handled = (result.metrics[key] for key in ("data_sent", "sender_handled", "receiver_handled"))
    return sent / max(handled) if None not in (sent, *handled) and max(handled) else None


def _cross_goodput(result: Result) -> float | None:
    rows = [row["goodput_mbit_s"] for row in result.metrics.get("cross_traffic") or () if row["goodput_mbit_s"] is not None]
    return sum(rows) / len(rows) if rows else None


def _share(result: Result) -> float | None:
    goodput, cross = result.metrics.get("goodput_mbit_s"), _cross_goodput(result)
    return goodput / cross if goodput is not None and cross else None


def _messages(key: str) -> Callable[[Result], Any]:
    return lambda result: result.metrics.get("messages", {}).get(key)


def _delivered(result: Result) -> float | None:
    messages = result.metrics.get("messages", {})
    return messages["delivered"] / messages["due"] if messages.get("due") else None


def _throughput(result: Result) -> float | None:
    """Return the mean throughput; unlike goodput, it is low where few messages arrive, all of them early."""
    if result.messages is None or not result.messages["subscriptions"]:
        return None
    spans = [(row["published"] - 1) / row["rate"] for row in result.messages["publishers"] if row["rate"]]
    return fmean(_rate(row, max(spans, default=0.0)) for row in result.messages["subscriptions"])


def _rate(row: Mapping[str, Any], published: float) -> float:
    """Return the Mbit/s of a subscription, of messages that took `published` seconds to publish."""
    if not row["goodput_mbit_s"]:
        return 0.0
    content = row["bytes"] * 8e-6
    return float(content / max(content / row["goodput_mbit_s"], published))


def _node_drops(result: Result) -> float | None:
    rows = [row for row in result.metrics.get("nodes") or () if row["offered"]]
    return max((row["dropped"] / row["offered"] for row in rows), default=None)


def _processor(result: Result) -> float | None:
    times = [row["processor"] for row in result.metrics.get("nodes") or () if "processor" in row]
    return sum(times) if times else None


def _cpu_bound(result: Result) -> bool | None:
    return bool(result.metrics.get("cpu_bound")) if result.backend == "emu" else None


METRICS: dict[str, Metric] = {
    "completed": Metric("1 if every receiver received all objects, else 0", lambda result: result.completed, "outcome"),
    "violations": Metric("violated invariants", lambda result: len(result.violations), "count"),
    "receivers": Metric("receivers", _plain("receivers")),
    "receivers_complete": Metric(
        "receivers that received all objects", _plain("receivers_complete"), "outcome", of="receivers"
    ),
    "objects": Metric("objects sent", _plain("objects")),
    "content_bytes": Metric("bytes of content sent", _plain("content_bytes")),
    "completion_time": Metric(
        "seconds from the first submission until the last receiver was complete", _plain("completion_time")
    ),
    "median_completed_at": Metric(
        "median over receivers of the seconds from the start of the run until they were complete", _median_completion
    ),
    "goodput_mbit_s": Metric("content per receiver divided by completion time, Mbit/s", _plain("goodput_mbit_s")),
    "loss": Metric(
        "mean over receivers of the fraction of data packets lost, by the sequence numbers of the protocol",
        _plain("loss"),
        "fraction",
    ),
    "bytes_sent": Metric("bytes of UDP payload sent by all hosts", _plain("bytes_sent")),
    "overhead": Metric("bytes sent by all hosts divided by bytes of content", _plain("overhead")),
    "data_sent": Metric("data packets sent for the first time", _plain("data_sent")),
    "repairs_sent": Metric("repair packets sent by all members", _plain("repairs_sent"), "count"),
    "transmissions": Metric(
        "content packets sent, parity and the repairs of all members included, per source packet", _transmissions
    ),
    "nacks_sent": Metric("NACKs sent by receivers", _plain("nacks_sent"), "count"),
    "nacks_suppressed": Metric(
        "NACKs suppressed because other receivers requested the same repairs", _plain("nacks_suppressed"), "count"
    ),
    "nacks_received": Metric("NACKs received by senders", _plain("nacks_received"), "count"),
    "packets": Metric("packets sent by all hosts", _total_packets),
    "feedback": Metric("NACK and ACK packets sent", lambda result: packets_of(result, "nack", "ack"), "count"),
    "sender_handled": Metric("content packets sent and feedback received by senders", _plain("sender_handled")),
    "receiver_handled": Metric(
        "mean over receivers of content packets received, feedback and repairs sent and requests of others received",
        _plain("receiver_handled"),
    ),
    "processing_throughput": Metric(
        "content packets per packet handled by the busier of sender and mean receiver: processor-limited throughput",
        _processing_throughput,
        "fraction",
    ),
    "losses": Metric("packets lost or dropped by links and faults", _storm("losses"), "count"),
    "requests_per_loss": Metric("repair requests per repaired symbol", _storm("requests_per_loss")),
    "duplicates": Metric("content packets redundant at their receiver", _storm("duplicates"), "count"),
    "repair_multiplicity": Metric("repair packets per repaired symbol", _storm("repair_multiplicity")),
    "repair_wait": Metric("mean seconds from the first transmission of a symbol to its first repair", _storm("repair_wait")),
    "time_to_quiet": Metric("seconds from the first repair request to the last request or repair", _storm("time_to_quiet")),
    "link_offered": Metric("packets offered to impaired links", _links("offered")),
    "link_dropped": Metric("packets dropped by queues", _links("dropped"), "count"),
    "link_lost": Metric("packets lost on links", _links("lost"), "count"),
    "cross_goodput": Metric("mean goodput of the flows of cross traffic, Mbit/s", _cross_goodput),
    "share": Metric("goodput of the slowest receiver divided by the mean goodput of the flows of cross traffic", _share),
    "throughput_mbit_s": Metric(
        "content delivered to a subscription over the time in which messages were published or delivered to it, "
        "mean of the subscriptions, Mbit/s",
        _throughput,
    ),
    "delivered": Metric("messages delivered to subscriptions, over those due to them", _delivered, "fraction"),
    "latency_p50": Metric("median seconds from publishing to delivery, of the slowest subscription", _messages("latency_p50")),
    "node_drops": Metric(
        "packets that a node dropped for lack of room, over those offered to it; the largest of all nodes",
        _node_drops,
        "fraction",
    ),
    "processor_s": Metric("processor seconds that hosts and routers took for packets offered to them", _processor),
    "cpu_bound": Metric("1 if a program in Mininet used up a core of this machine, else 0", _cpu_bound, "outcome"),
    "duration": Metric("simulated or wall-clock seconds until the run ended", _plain("duration")),
    "events": Metric("simulator events", _plain("events")),
}
"""Metrics of a run by name; their columns have the prefix m_."""

RECEIVER_METRICS: dict[str, str] = {
    "objects": "objects received",
    "bytes": "bytes of content received",
    "equal": "1 if all content equals what was sent, else 0",
    "completed_at": "seconds from the start of the run until the receiver was complete",
    "loss": "fraction of data packets lost, by the sequence numbers of the protocol",
    "nacks_sent": "NACKs sent",
    "nacks_suppressed": "NACKs suppressed because other receivers requested the same repairs",
    "aborted": "objects aborted",
    "duplicates": "objects delivered twice; of packets there is a metric of the run alone",
}
"""Metrics of one receiver by name; their columns have the prefix m_."""


def metrics_of(result: Result) -> dict[str, float | None]:
    """Return every metric of a run."""
    return {name: _number(metric.read(result)) for name, metric in METRICS.items()}


def receiver_metrics_of(row: Row) -> dict[str, float | None]:
    """Return every metric of one receiver."""
    values: Mapping[str, Any] = {name: getattr(row, name) for name in RECEIVER_METRICS}
    return {name: _number(value) for name, value in values.items()}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (bool, int, float)) else None
