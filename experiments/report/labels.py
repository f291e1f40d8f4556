"""Labels of axes and metrics in figures, and the units their values are shown in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.derived import DERIVED
from experiments.analysis.runs import CASE
from experiments.analysis.summary import sort_key
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.sweep_file import Sweep

__all__ = ["HIGHER_IS_BETTER", "DisplayedAxis", "displayed_axes", "help_of", "metric_label"]

FACTORS: Mapping[str, tuple[float, str]] = {
    "%": (100.0, "%"),
    "us": (1e6, "µs"),
    "ms": (1e3, "ms"),
    "s": (1.0, "s"),
    "kbit": (1e-3, "kbit/s"),
    "Mbit": (1e-6, "Mbit/s"),
    "Gbit": (1e-9, "Gbit/s"),
    "B": (1.0, "B"),
    "kB": (1e-3, "kB"),
    "MB": (1e-6, "MB"),
}
"""Units of the sweep file, with the factor from the stored base unit and the label of the unit."""
LOG_RATIO = 50.0
"""Ratio of a numeric axis' ends above which the axis is logarithmic."""

UNITS = {
    "completion_time": "s",
    "median_completed_at": "s",
    "duration": "s",
    "time_to_quiet": "s",
    "goodput_mbit_s": "Mbit/s",
    "content_bytes": "B",
    "bytes_sent": "B",
}
NAMES = {"goodput_mbit_s": "goodput", "packets_per_s": "packets per second", "nacks_sent": "NACKs sent"}
HIGHER_IS_BETTER = frozenset({"goodput_mbit_s", "packets_per_s", "completed", "receivers_complete"})
"""Metrics to maximise; all others are to be minimised."""


def metric_label(name: str) -> str:
    """Return the display name of a metric, with its unit."""
    text = NAMES.get(name) or name.replace("_", " ").replace("nacks", "NACKs")
    return f"{text} [{UNITS[name]}]" if name in UNITS else text


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
        text = value if isinstance(value, str) else f"{value:.6g}"
        return f"{text} {self.unit}".replace(" %", "%").strip()


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
        label = name.rpartition(".")[2].replace("_", " ")
        log = numeric and min(numbers) > 0 and max(numbers) >= LOG_RATIO * min(numbers)
        found[name] = DisplayedAxis(name, f"{label} [{unit}]" if unit else label, known, factor, unit, numeric, log)
    return found


def _unit(sweep: Sweep, name: str) -> tuple[float, str]:
    if name == CASE or name not in sweep.axes:
        return 1.0, ""
    axis = sweep.axes[name]
    written = axis.values if axis.values is not None else (axis.high, axis.low)
    for value in written:
        match = re.fullmatch(r"\s*[0-9.eE+-]+\s*([A-Za-z%]+)\s*", value) if isinstance(value, str) else None
        if match and match[1] in FACTORS:
            return FACTORS[match[1]]
    return 1.0, ""
