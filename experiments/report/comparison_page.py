"""What the report of two sweeps says about their differences: a summary, a table of all pairs, and one of the points."""

from collections.abc import Mapping
from html import escape
from typing import Any

from experiments.analysis.paired_variants import VariantDifference
from experiments.output.counted import counted
from experiments.report.labels import UNITS, DisplayedAxis, metric_label, rounded
from experiments.report.sweep_pair import SWEEP, PairedSweeps

__all__ = ["difference_section", "differences_table", "summary"]

HEADS = ("metric", "mean of A", "B minus A", "95 % interval", "relative", "verdict")


def summary(pair: PairedSweeps) -> str:
    """Return a sentence that names the sweeps, the pairs of runs and the shared points."""
    sweeps = " and ".join(f"{name} ({side.version})" for name, side in zip(pair.names, pair.sides, strict=True))
    pairs = max((gap.pairs for gap in pair.overall), default=0)
    shared = len({tuple(gap.keys.items()) for gap in pair.by_point})
    alone = "".join(
        f"; {counted(count, 'point', spec=',')} only in {name}" for count, name in zip(pair.alone, "AB", strict=True) if count
    )
    return f"{sweeps}: {counted(pairs, 'pair', spec=',')} of runs at {counted(shared, 'point', more='shared', spec=',')}{alone}"


def difference_section(pair: PairedSweeps) -> str:
    """Return a table with the differences of all pairs of runs, one line per metric."""
    lines = "".join(_line(gap, pair) for gap in pair.overall)
    head = "".join(f"<th>{name}</th>" for name in HEADS)
    first, second = (escape(name.partition(": ")[2]) for name in pair.names)
    about = (
        f"Means over all pairs of runs of equal point and seed; A is {first}, B is {second}. B differs if the interval of "
        "the mean paired difference excludes 0."
    )
    table = f'<table class="verdicts"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'
    return f'<div class="card"><p>{about}</p><div class="scroll">{table}</div></div>'


def _line(gap: VariantDifference, pair: PairedSweeps) -> str:
    base = pair.means[gap.metric]
    interval = "-" if gap.low is None or gap.high is None else f"{gap.low:.4g} to {gap.high:.4g}"
    share = f"{gap.mean / base:+.2%}" if base else "-"
    texts = (metric_label(gap.metric), f"{base:.4g}", f"{gap.mean:+.4g}", interval, share, _verdict(gap))
    cells = "".join(f'<td data-name="{name}">{escape(text)}</td>' for name, text in zip(HEADS, texts, strict=True))
    return f'<tr class="{"clear" if gap.clear else "same"}">{cells}</tr>'


def _verdict(gap: VariantDifference) -> str:
    if gap.low is None:
        return "one pair"
    if gap.low == gap.high == 0:
        return "equal in every pair"
    return "differs" if gap.clear else "no clear difference"


def differences_table(pair: PairedSweeps, axes: Mapping[str, DisplayedAxis]) -> dict[str, Any]:
    """Return the differences of B to A at each point as data of a table."""
    shown = [axis for name, axis in axes.items() if name != SWEEP]
    columns = [*(axis.label for axis in shown), "metric", "unit", "pairs", "B minus A", "low", "high", "clear"]
    rows = [
        [
            *(axis.value(gap.keys[axis.name]) for axis in shown),
            *(gap.metric, UNITS.get(gap.metric, ""), gap.pairs, rounded(gap.mean), rounded(gap.low), rounded(gap.high)),
            "yes" if gap.clear else "no",
        ]
        for gap in pair.by_point
    ]
    return {"name": "pairs", "columns": columns, "rows": rows}
