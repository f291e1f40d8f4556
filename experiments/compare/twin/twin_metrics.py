"""Metrics compared between two worlds."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.running.result import Result, packets_of
from experiments.scenario.margins import Margins

__all__ = ["TWIN_METRICS", "TwinMetric", "compared_metrics"]


@dataclass(frozen=True, slots=True)
class TwinMetric:
    """A compared metric: `of` returns a run's values, one or one per receiver, None where there is none.

    `counted` marks counts of packets, whose margin is at least `Margins.packets`.
    """

    label: str
    of: Callable[[Result], list[float | None]]
    counted: bool = False


def _metric(name: str) -> Callable[[Result], list[float | None]]:
    return lambda result: [None if result.metrics[name] is None else float(result.metrics[name])]


def _feedback(result: Result) -> list[float | None]:
    count = packets_of(result, "nack", "ack")
    return [None if count is None else float(count)]


def _completions(result: Result) -> list[float | None]:
    return [row.completed_at for row in result.receivers]


def _losses(result: Result) -> list[float | None]:
    return [row.loss for row in result.receivers]


def _latency(result: Result) -> list[float | None]:
    return [] if result.messages is None else [row["latency_p50"] for row in result.messages["subscriptions"]]


TWIN_METRICS = {
    "completion_time": TwinMetric("completion, mean of receivers [s]", _completions),
    "goodput": TwinMetric("goodput [Mbit/s]", _metric("goodput_mbit_s")),
    "overhead": TwinMetric("bytes sent / content", _metric("overhead")),
    "nacks": TwinMetric("NACKs and ACKs", _feedback, counted=True),
    "repairs": TwinMetric("repairs", _metric("repairs_sent"), counted=True),
    "loss": TwinMetric("loss, mean of receivers", _losses),
    "latency": TwinMetric("latency of messages (p50), mean of subscriptions [s]", _latency),
}
"""Metrics by the key of `Margins` that holds their margin; without a margin one is not compared."""


def compared_metrics(margins: Margins) -> dict[str, float]:
    """Return the keys of the metrics that are compared, with their margins."""
    found = {key: getattr(margins, key) for key in TWIN_METRICS}
    return {key: margin for key, margin in found.items() if margin is not None}
