"""Metrics computed from stored metrics, so that every quantity predicted by theory has a column; the range of every metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.statistics.intervals import Kind
from experiments.sweep.spec.metrics import METRICS

__all__ = ["DERIVED", "Derived", "kind_of", "with_derived"]


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived metric: its description, the stored metrics it needs, its SQL expression over their m_ columns, its range."""

    help: str
    needs: tuple[str, ...]
    sql: str
    kind: Kind = "positive"


DERIVED: Mapping[str, Derived] = {
    "feedback_per_packet": Derived(
        "NACK and ACK packets, over data packets", ("feedback", "data_sent"), "m_feedback / nullif(m_data_sent, 0)"
    ),
    "incomplete": Derived(
        "share of receivers that did not get everything",
        ("receivers", "receivers_complete"),
        "1 - m_receivers_complete / nullif(m_receivers, 0)",
        "outcome",
    ),
    "packets_per_s": Derived(
        "data packets over completion time", ("data_sent", "completion_time"), "m_data_sent / nullif(m_completion_time, 0)"
    ),
}
"""Derived metrics by name, without the prefix m_."""


def kind_of(metric: str) -> Kind:
    """Return the range of a metric; a metric that is not in the catalogue may have any value."""
    known = METRICS.get(metric) or DERIVED.get(metric)
    return "real" if known is None else known.kind


def with_derived(frame: Any, metrics: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Add a column for each derived metric computable from `metrics`; return the frame and the names of all metrics."""
    from pyspark.sql import functions as f

    found = {name: made for name, made in DERIVED.items() if name not in metrics and set(made.needs) <= set(metrics)}
    frame = frame.withColumns({f"m_{name}": f.expr(made.sql) for name, made in found.items()})
    return frame, (*metrics, *found)
