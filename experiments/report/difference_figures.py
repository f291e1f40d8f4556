"""Figures of paired differences: between the values of an axis, and between two sweeps."""

from collections.abc import Mapping, Sequence

from experiments.analysis.paired_variants import VariantDifference
from experiments.report.figures import Figure, FigureAxis, IntervalMark, Panel
from experiments.report.labels import DisplayedAxis, metric_label, metric_name
from experiments.report.sweep_pair import PairedSweeps

__all__ = ["differences", "sweep_differences"]

MOST_ROWS = 40
"""Largest number of differences between two sweeps in one figure."""


def differences(metric: str, gaps: Sequence[VariantDifference], axes: Mapping[str, DisplayedAxis], command: str) -> Figure:
    """Plot paired differences to the base of an axis with their confidence intervals."""
    rows = []
    for gap in gaps:
        variant = axes[gap.axis].text(gap.variant)
        rows.append(_row(", ".join(filter(None, (variant, _place(gap, axes)))), gap))
    base = axes[gaps[0].axis].text(gaps[0].base)
    caption = "Mean paired differences on equal seeds, with 95 % confidence intervals; filled if the interval excludes 0."
    x = FigureAxis(f"difference to {base}: {metric_label(metric)}")
    title = f"{metric_name(metric)}: differences to {base}"
    return Figure(f"pairs-{metric}", "rows", title, caption, command, x, FigureAxis(""), [Panel("", rows)])


def sweep_differences(metric: str, pair: PairedSweeps, axes: Mapping[str, DisplayedAxis]) -> Figure | None:
    """Plot the differences of sweep B to sweep A at each point, the clearest if there are many; None without pairs."""
    gaps = [gap for gap in pair.by_point if gap.metric == metric]
    if not gaps:
        return None
    kept = sorted(sorted(range(len(gaps)), key=lambda place: _clearness(gaps[place]), reverse=True)[:MOST_ROWS])
    rows = [_row(_place(gaps[place], axes) or "all runs", gaps[place]) for place in kept]
    clear = sum(gap.clear for gap in gaps)
    first, second = (name.partition(": ")[2] for name in pair.names)
    caption = (
        f"B ({second}) minus A ({first}): mean paired differences on equal seeds, with 95 % confidence intervals; "
        f"filled if the interval excludes 0, as {clear} of {len(gaps)} do (by chance alone one in twenty would)."
    )
    if len(gaps) > MOST_ROWS:
        caption += f" Of all points, the {MOST_ROWS} with the largest differences in proportion to their intervals."
    x, title = FigureAxis(f"B minus A: {metric_label(metric)}"), f"{metric_name(metric)}: B minus A"
    return Figure(f"sweeps-{metric}", "rows", title, caption, "", x, FigureAxis(""), [Panel("", rows)])


def _row(label: str, gap: VariantDifference) -> IntervalMark:
    return IntervalMark(label, gap.mean, gap.low, gap.high, gap.clear)


def _place(gap: VariantDifference, axes: Mapping[str, DisplayedAxis]) -> str:
    """Return the point of a difference in words."""
    return ", ".join(axes[name].named(value) for name, value in gap.keys.items() if name in axes)


def _clearness(gap: VariantDifference) -> tuple[bool, float]:
    """Return a key that sorts differences by their ratio to half the width of the interval; certain ones are largest."""
    if gap.low is None or gap.high is None:
        return False, 0.0
    wide = (gap.high - gap.low) / 2
    return (True, abs(gap.mean)) if wide == 0 and gap.mean else (False, abs(gap.mean) / wide if wide else 0.0)
