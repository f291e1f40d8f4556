"""The metrics a sweep keeps of every run and of every receiver: their names, their meaning, and how a result gives them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.running.result import Result, Row

__all__ = ["METRICS", "RECEIVER_METRICS", "Metric", "metrics_of", "receiver_metrics_of"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What a column means, and how it is read from a result; None where a run did not come to a value."""

    help: str
    read: Callable[[Result], Any]


def _plain(key: str) -> Callable[[Result], Any]:
    return lambda result: result.metrics.get(key)


def _storm(key: str) -> Callable[[Result], Any]:
    return lambda result: result.metrics.get("storm", {}).get(key)


def _packets(*kinds: str) -> Callable[[Result], Any]:
    return lambda result: sum(result.metrics["packets"].get(kind, 0) for kind in kinds)


def _links(key: str) -> Callable[[Result], Any]:
    def read(result: Result) -> int | None:
        counts = [row[key] for row in result.metrics.get("impairments") or () if key in row]
        return sum(counts) if counts else None

    return read


def _median_completion(result: Result) -> float | None:
    finished = sorted(row.completed_at for row in result.receivers if row.completed_at is not None)
    return finished[len(finished) // 2] if finished else None


def _transmissions(result: Result) -> float | None:
    sent: float = result.metrics["data_sent"] + result.metrics["repairs_sent"]
    packets = result.metrics["source_packets"]
    return sent / packets if packets else None


def _processing_throughput(result: Result) -> float | None:
    busiest = max(result.metrics["sender_handled"], result.metrics["receiver_handled"])
    return result.metrics["data_sent"] / busiest if busiest else None


METRICS: dict[str, Metric] = {
    "completed": Metric("1 when every receiver got everything, else 0", lambda result: result.completed),
    "violations": Metric("rules of every run that were broken", lambda result: len(result.violations)),
    "receivers": Metric("receivers", _plain("receivers")),
    "receivers_complete": Metric("receivers that got everything", _plain("receivers_complete")),
    "objects": Metric("objects sent", _plain("objects")),
    "content_bytes": Metric("bytes of content sent", _plain("content_bytes")),
    "completion_time": Metric(
        "seconds from the first submission until the last receiver had everything", _plain("completion_time")
    ),
    "median_completed_at": Metric("time at which the median receiver had everything", _median_completion),
    "goodput_mbit_s": Metric("content per receiver over completion time, Mbit/s", _plain("goodput_mbit_s")),
    "loss": Metric("mean over receivers of the fraction of data packets lost", _plain("loss")),
    "bytes_sent": Metric("bytes of UDP payload sent by all", _plain("bytes_sent")),
    "overhead": Metric("bytes sent by all, over content", _plain("overhead")),
    "data_sent": Metric("data packets sent for the first time", _plain("data_sent")),
    "repairs_sent": Metric("repair packets sent by senders", _plain("repairs_sent")),
    "transmissions": Metric("content packets sent by senders, parity included, per packet of content", _transmissions),
    "nacks_sent": Metric("NACKs sent by receivers", _plain("nacks_sent")),
    "nacks_suppressed": Metric("NACKs not sent since another receiver asked", _plain("nacks_suppressed")),
    "nacks_received": Metric("NACKs that reached senders", _plain("nacks_received")),
    "packets": Metric("packets sent by all", _packets("total")),
    "feedback": Metric("NACK and ACK packets sent", _packets("nack", "ack")),
    "sender_handled": Metric("content packets sent and feedback heard by senders", _plain("sender_handled")),
    "receiver_handled": Metric(
        "mean over receivers of content packets heard, feedback sent and requests of others heard", _plain("receiver_handled")
    ),
    "processing_throughput": Metric(
        "content packets per packet handled by the busier of sender and mean receiver: throughput of slow processors",
        _processing_throughput,
    ),
    "losses": Metric("packets lost or dropped by links, and by faults", _storm("losses")),
    "requests_per_loss": Metric("requests for repair, per piece that was repaired", _storm("requests_per_loss")),
    "duplicates": Metric("content packets that brought a receiver nothing", _storm("duplicates")),
    "repair_multiplicity": Metric("repairs per piece that was repaired", _storm("repair_multiplicity")),
    "repair_wait": Metric("mean seconds from the first transmission of a piece to its first repair", _storm("repair_wait")),
    "time_to_quiet": Metric("seconds from the first request to the last request or repair", _storm("time_to_quiet")),
    "link_offered": Metric("packets given to links that do anything", _links("offered")),
    "link_dropped": Metric("packets dropped by queues", _links("dropped")),
    "link_lost": Metric("packets lost on links", _links("lost")),
    "duration": Metric("seconds until the run was over", _plain("duration")),
    "events": Metric("events of the simulator", _plain("events")),
}
"""By the name of the column, which has m_ in front."""

RECEIVER_METRICS: dict[str, str] = {
    "objects": "objects received",
    "bytes": "bytes of content received",
    "equal": "1 when all content equals what was sent, else 0",
    "completed_at": "time at which it had everything",
    "loss": "fraction of data packets it lost",
    "nacks_sent": "NACKs it sent",
    "nacks_suppressed": "NACKs it did not send since another asked",
    "aborted": "objects given up",
    "duplicates": "objects received twice",
}
"""Of one receiver, by the name of the column, which has m_ in front."""


def metrics_of(result: Result) -> dict[str, float | None]:
    """Every metric of a run."""
    return {name: _number(metric.read(result)) for name, metric in METRICS.items()}


def receiver_metrics_of(row: Row) -> dict[str, float | None]:
    """Every metric of one receiver."""
    values: Mapping[str, Any] = {name: getattr(row, name) for name in RECEIVER_METRICS}
    return {name: _number(value) for name, value in values.items()}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (bool, int, float)) else None
