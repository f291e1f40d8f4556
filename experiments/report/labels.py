"""Labels of axes and metrics in figures, and the units their values are shown in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from experiments.analysis.derived import DERIVED
from experiments.analysis.runs import CASE
from experiments.analysis.summary import sort_key
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.quantities import kind_of
from experiments.sweep.spec.sweep_file import Axis, Sweep

__all__ = [
    "HEAD_UNITS",
    "HIGHER_IS_BETTER",
    "UNITS",
    "WORLDS",
    "DisplayedAxis",
    "axis_name",
    "displayed_axes",
    "head_units",
    "help_of",
    "metric_label",
    "metric_name",
    "rounded",
    "series_label",
]

FACTORS: Mapping[str, tuple[float, str]] = {
    "%": (100.0, "%"),
    "ns": (1e9, "ns"),
    "us": (1e6, "µs"),
    "ms": (1e3, "ms"),
    "s": (1.0, "s"),
    "kbit": (1e-3, "kbit/s"),
    "Mbit": (1e-6, "Mbit/s"),
    "Gbit": (1e-9, "Gbit/s"),
    "B": (1.0, "B"),
    "kB": (1e-3, "kB"),
    "MB": (1e-6, "MB"),
    "/s": (1.0, "1/s"),
}
"""Units of the sweep file, with the factor from the stored base unit and the label of the unit."""
WORLDS = {"sim": "simulator", "emu": "Mininet"}
"""Words for the values of the axis `backend`."""
DIGITS = 6
LOG_RATIO = 50.0
"""Ratio of a numeric axis' ends above which the axis is logarithmic."""

UNITS = {
    **dict.fromkeys(("completion_time", "median_completed_at", "duration", "time_to_quiet", "repair_wait"), "s"),
    **dict.fromkeys(("latency_p50", "processor_s"), "s"),
    **dict.fromkeys(("content_bytes", "bytes_sent"), "B"),
    **dict.fromkeys(("completed", "loss", "incomplete", "delivered", "node_drops", "cpu_bound"), "fraction"),
    **dict.fromkeys(("violations", "receivers", "receivers_complete", "objects", "events"), "count"),
    **dict.fromkeys(("nacks_sent", "nacks_suppressed", "nacks_received"), "count"),
    **dict.fromkeys(("data_sent", "repairs_sent", "packets", "feedback", "losses", "duplicates"), "packets"),
    **dict.fromkeys(("sender_handled", "receiver_handled", "link_offered", "link_dropped", "link_lost"), "packets"),
    **dict.fromkeys(("goodput_mbit_s", "cross_goodput", "throughput_mbit_s"), "Mbit/s"),
    "share": "of a flow of cross traffic",
    "packets_per_s": "packets/s",
    "overhead": "B per B of content",
    "transmissions": "per source packet",
    "feedback_per_packet": "packets per data packet",
    "processing_throughput": "packets per packet handled",
    "requests_per_loss": "requests per symbol",
    "repair_multiplicity": "packets per symbol",
}
"""Unit of each metric."""
HEAD_UNITS = {name: unit for name, unit in UNITS.items() if unit in ("s", "B")}
"""Units in the heads of narrow tables: those of metrics that are not counts or ratios and whose name has no unit."""
STORED_UNITS = {
    **dict.fromkeys(("ns", "us", "ms", "s"), "s"),
    **dict.fromkeys(("kbit", "Mbit", "Gbit"), "bit/s"),
    **dict.fromkeys(("B", "kB", "MB"), "B"),
    "/s": "1/s",
}
"""The base unit that values are stored in, by the unit of the sweep file; fractions have none."""
SERIES_UNITS = {
    **dict.fromkeys(("packets_sent", "repairs_sent", "packets_lost", "packets_dropped", "packets_corrupt"), "packets"),
    **dict.fromkeys(("bytes_sent", "queue_bytes"), "B"),
    **dict.fromkeys(("objects_received", "receivers_complete"), "count"),
}
"""Unit of each measure of a time series."""
BASE_UNITS = {"rate": "bit/s", "loss": "fraction", "size": "B", "segment": "B", "delay": "s", "grtt": "s"}
"""Units of axes whose values are written as plain numbers, by the last part of the axis' name."""
NAMES = {
    "goodput_mbit_s": "goodput",
    "cross_goodput": "goodput of cross traffic",
    "packets_per_s": "data packets per time",
    "throughput_mbit_s": "throughput",
    "delivered": "messages delivered",
    "latency_p50": "median latency",
    "node_drops": "packets dropped at a node",
    "processor_s": "processor time",
    "cpu_bound": "limited by a core",
}
HIGHER_IS_BETTER = frozenset(
    {"goodput_mbit_s", "throughput_mbit_s", "packets_per_s", "completed", "receivers_complete", "delivered"}
)
"""Metrics to maximise; all others are to be minimised."""


def head_units(sweep: Sweep | None) -> dict[str, str]:
    """Return the units in the heads of narrow tables: those of metrics, and of the stored values of a sweep's axes."""
    found = dict(HEAD_UNITS)
    for name, axis in sweep.axes.items() if sweep is not None else ():
        if axis.values is not None and kind_of(axis.values) == "string":
            continue
        unit = _written_unit(axis)
        stored = STORED_UNITS.get(unit, "") if unit else BASE_UNITS.get(name.rpartition(".")[2], "")
        if stored and stored != "fraction":
            found |= {name: stored, name.replace(".", "__"): stored}
    return found


def metric_label(name: str) -> str:
    """Return the display name of a metric, with its unit."""
    return _with_unit(metric_name(name), UNITS.get(name, ""))


def metric_name(name: str) -> str:
    """Return the display name of a metric without its unit."""
    return NAMES.get(name) or name.replace("_", " ").replace("nacks", "NACKs")


def series_label(name: str) -> str:
    """Return the label of a measure of a time series, such as `packets_sent data`, with its unit."""
    return _with_unit(name.replace("_", " "), SERIES_UNITS.get(name.partition(" ")[0], ""))


def axis_name(name: str) -> str:
    """Return the display name of an axis of a sweep: the last part of its key."""
    return name.rpartition(".")[2].replace("_", " ")


def rounded(value: float | None) -> float | None:
    """Round to DIGITS significant digits; None for values that are not finite."""
    return None if value is None or not isfinite(value) else float(f"{value:.{DIGITS}g}")


def _with_unit(text: str, unit: str) -> str:
    return f"{text} [{unit}]" if unit else text


def help_of(name: str) -> str:
    """Return the description of a metric."""
    known = METRICS.get(name) or DERIVED.get(name)
    return known.help if known else ""


@dataclass(frozen=True, slots=True)
class DisplayedAxis:
    """An axis as figures show it: its sorted values, and the unit used in the sweep file."""

    name: str
    label: str
    values: tuple[Any, ...]
    factor: float
    unit: str
    numeric: bool
    log: bool

    def value(self, stored: Any) -> Any:
        """Convert a stored value to the displayed unit; strings and booleans become text."""
        if stored is None or isinstance(stored, (str, bool)):
            return "-" if stored is None else str(stored)
        scaled = float(f"{stored * self.factor:.12g}")
        return int(scaled) if scaled.is_integer() and abs(scaled) < 1e15 else scaled

    def text(self, stored: Any) -> str:
        """Format a stored value with its unit."""
        value = self.value(stored)
        text = WORLDS.get(value, value) if isinstance(value, str) else f"{value:.6g}"
        # A fraction needs no unit behind the number.
        unit = "" if self.unit == "fraction" else self.unit
        return f"{text} {unit}".replace(" %", "%").strip()

    def named(self, stored: Any) -> str:
        """Format a stored value with its unit, a number also with the name of the axis."""
        text = self.text(stored)
        return f"{axis_name(self.name)} {text}" if self.numeric else text

    def plain(self, stored: Any) -> str:
        """Format a stored value without its unit, which the label of the axis has."""
        value = self.value(stored)
        return WORLDS.get(value, value) if isinstance(value, str) else f"{value:.6g}"


def displayed_axes(sweep: Sweep, names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> dict[str, DisplayedAxis]:
    """Return the axes with at least two values."""
    found = {}
    for name in names:
        known = tuple(sorted(values[name], key=sort_key))
        if len(known) < 2:
            continue
        numbers = [value for value in known if isinstance(value, (int, float)) and not isinstance(value, bool)]
        numeric = len(numbers) == len(known)
        factor, unit = _unit(sweep, name) if numeric else (1.0, "")
        log = numeric and min(numbers) > 0 and max(numbers) >= LOG_RATIO * min(numbers)
        found[name] = DisplayedAxis(name, _with_unit(axis_name(name), unit), known, factor, unit, numeric, log)
    return found


def _unit(sweep: Sweep, name: str) -> tuple[float, str]:
    """Return the factor from the stored unit to the one the sweep file uses first, and that unit."""
    base = 1.0, BASE_UNITS.get(name.rpartition(".")[2], "")
    if name == CASE or name not in sweep.axes:
        return base
    unit = _written_unit(sweep.axes[name])
    return FACTORS[unit] if unit else base


def _written_unit(axis: Axis) -> str:
    """Return the unit that the values of an axis are written in first; empty for plain numbers and for text."""
    for value in axis.values if axis.values is not None else (axis.high, axis.low):
        match = re.fullmatch(r"\s*[0-9.eE+-]+\s*([A-Za-z%/]+)\s*", value) if isinstance(value, str) else None
        if match and match[1] in FACTORS:
            return match[1]
    return ""
