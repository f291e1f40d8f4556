"""Answer one analysis request about sweep results as flat rows: the back end of `mcastlab analyse`."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.analysis.paired_variants import changing_with, compare_all_variants
from experiments.analysis.quantile_bands import quantile_bands
from experiments.analysis.runs import Runs, open_runs, pick
from experiments.analysis.summary import EXACT_UP_TO, PERCENTILES, RESAMPLES, summarise_all
from experiments.output.safe_text import csv_row
from experiments.sweep.spec.sweep_file import load_sweep
from experiments.sweep.store.damage import naming_damage
from protocols.errors import UsageError

__all__ = ["HEADLINES", "AnalysisRequest", "AnalysisResult", "analyse", "write_csv"]

HEADLINES = ("completion_time", "goodput_mbit_s", "overhead", "transmissions", "requests_per_loss", "feedback", "loss")
"""Default metrics, as far as the results have them."""


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What to compute: group summaries by default, or one of `compare` (AXIS or AXIS=BASE), `effects`, `theory`, `series`.

    An empty `by` means all axes for group summaries, and no grouping for the others. `exact` None selects exact percentiles up
    to EXACT_UP_TO runs. Theory holds within `margin`, a fraction of the prediction. Raises UsageError if more than one
    analysis is requested, or for a margin that is not positive.
    """

    by: Sequence[str] = ()
    metrics: Sequence[str] = ()
    compare: str | None = None
    effects: bool = False
    theory: Sequence[str] = ()
    series: Sequence[str] = ()
    exact: bool | None = None
    confidence: float = 0.95
    version: str | None = None
    margin: float = 0.02

    def __post_init__(self) -> None:
        if not self.margin > 0:
            raise UsageError(f"--margin: value {self.margin} is not allowed; a fraction above 0, like 2%")
        asked = {"--compare": self.compare, "--effects": self.effects, "--theory": self.theory, "--series": self.series}
        given = [name for name, value in asked.items() if value]
        if len(given) > 1:
            raise UsageError(f"{given[1]}: is not allowed beside {given[0]}; one question at a time")


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """Flat rows with equal keys, and a description of what they are."""

    about: str
    runs: int
    failed: int
    incomplete: int
    version: str
    rows: list[dict[str, Any]]

    def plain(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        return {name: getattr(self, name) for name in ("about", "runs", "failed", "incomplete", "version", "rows")}


def analyse(session: Any, folder: Path, request: AnalysisRequest) -> AnalysisResult:
    """Compute the request from the results in a folder.

    UsageError names the option whose value matches nothing there, or a file of the folder that is damaged.
    """
    with naming_damage(folder):
        return _analyse(session, folder, request)


def _analyse(session: Any, folder: Path, request: AnalysisRequest) -> AnalysisResult:
    runs = open_runs(session, folder, request.version)
    runs.check_ok(folder)
    if request.series:
        about, rows = _series(session, folder, runs, request)
    else:
        kinds: dict[str, Callable[..., tuple[str, list[dict[str, Any]]]]] = {"compare": _compare, "theory": _theory}
        chosen = next((kinds[name] for name in kinds if getattr(request, name)), _effects if request.effects else _groups)
        about, rows = chosen(runs, request, folder)
    if any(row.get("left_out") for row in rows):
        about += "; left_out: without a value, as incomplete runs without a completion time"
    return AnalysisResult(about, runs.count, runs.failed, runs.incomplete, runs.version, rows)


def _default_metrics(runs: Runs, folder: Path) -> tuple[str, ...]:
    """Return the metrics that the sweep file names, else the main ones, as far as the runs have them."""
    path = folder / "sweep.yaml"
    named = load_sweep(path).metrics if path.exists() else ()
    return tuple(name for name in named or HEADLINES if name in runs.metrics)


def _metrics(runs: Runs, request: AnalysisRequest, folder: Path) -> tuple[str, ...]:
    if request.metrics:
        return runs.chosen_metrics(request.metrics)
    return _default_metrics(runs, folder) or runs.metrics


def _groups(runs: Runs, request: AnalysisRequest, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    by = runs.chosen_axes(request.by) or runs.axes
    exact = runs.count <= EXACT_UP_TO if request.exact is None else request.exact
    found = summarise_all(runs, by, _metrics(runs, request, folder), PERCENTILES, exact, request.confidence, RESAMPLES)
    level = f"{100 * request.confidence:g} % confidence intervals of the mean"
    about = f"{level}: low, high score intervals (Student's t); boot_low, boot_high percentile bootstrap"
    if set(by) != set(runs.axes):
        about += "; a group of several points takes its runs as independent, those of one seed included"
    return f"{about}; {'exact' if exact else 'approximate'} percentiles", [each.plain() for each in found]


def _compare(runs: Runs, request: AnalysisRequest, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    axis_name, _, base = str(request.compare).partition("=")
    axis = pick("--compare", axis_name, runs.axes, "axis")
    by = runs.chosen_axes(request.by)
    found = compare_all_variants(runs, axis, _metrics(runs, request, folder), by, base or None, request.confidence)
    if not found:
        raise UsageError(f"--compare: value {axis!r} is not allowed; no two runs of one seed differ in it alone")
    about = f"paired differences to {axis} = {found[0].base} on equal seeds; lower, higher: fractions of pairs"
    about += "; clear: the interval excludes 0"
    others = changing_with(runs, axis)
    about += f"; {', '.join(others)}: always changed together with {axis}" if others else ""
    return about, [gap.plain() for gap in found]


def _effects(runs: Runs, request: AnalysisRequest, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    # It imports NumPy, which the other questions do without.
    from experiments.analysis.effects import effects

    found = effects(runs, _metrics(runs, request, folder), runs.chosen_axes(request.by) or None)
    if not found:
        return "no axis has several values, or no metric varies", []
    return "variance decomposition, and Spearman rank correlation", [row for each in found for row in each.rows()]


def _theory(runs: Runs, request: AnalysisRequest, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    # Formulas need the model of the network, which takes longer to import than most questions to answer.
    from experiments.analysis.formulas import parse_formula
    from experiments.analysis.overlay import overlay
    from experiments.analysis.point_scenarios import PointScenarios

    points = PointScenarios(folder)
    found = [
        row.plain() for text in request.theory for row in overlay(runs, parse_formula(text), points, margin=request.margin)
    ]
    yes, no = (sum(row["holds"] == answer for row in found) for answer in ("yes", "no"))
    about = (
        f"theory holds at {yes} of {len(found)} points, does not hold at {no}, not shown at {len(found) - yes - no}: the 90 % "
        f"interval of the mean (low, high) is within {100 * request.margin:g} % of theory, beyond, or neither; "
        "residual in standard errors"
    )
    return about, found


def _series(session: Any, folder: Path, runs: Runs, request: AnalysisRequest) -> tuple[str, list[dict[str, Any]]]:
    names = [] if list(request.series) == ["all"] else list(request.series)
    found = quantile_bands(session, folder, runs, runs.chosen_axes(request.by), names)
    return "quantiles over runs at each time", [row for band in found for row in band.rows()]


def write_csv(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows to one CSV file; UsageError if it cannot be written."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(csv_row(rows[0])) if rows else [])
            writer.writeheader()
            writer.writerows(map(csv_row, rows))
    except OSError as error:
        raise UsageError(f"--csv: value {str(path)!r} is not allowed; a file that can be written ({error.strerror})") from error
