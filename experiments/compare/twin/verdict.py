"""Compare paired runs of two worlds metric by metric, and by the sets of lost packets, and conclude in three ways."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any

from experiments.compare.twin.equivalence import EquivalenceTest, equivalence_test
from experiments.compare.twin.power import TwinPower, power_of
from experiments.compare.twin.twin_metrics import TWIN_METRICS, compared_metrics
from experiments.output.budget import number
from experiments.output.counted import counted
from experiments.output.html_table import html_table
from experiments.running.result import Result
from experiments.scenario.margins import Margins
from experiments.statistics.verdicts import MOST_RUNS, Verdict

__all__ = ["LossDifference", "LossSets", "Observation", "TwinVerdict", "compare_worlds"]

LossSets = Mapping[str, frozenset[int]]
"""Identities of lost first transmissions, by link `near-far`."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One run of one world: first transmissions `lost` by channels and `queued` dropped by queues; None where unknown."""

    result: Result
    lost: LossSets | None
    queued: LossSets | None
    warning: str = ""
    """Reason to distrust the run, empty if there is none."""


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Number of lost first transmissions in each world, and number lost in one world only."""

    first: int
    second: int
    differ: int


@dataclass(frozen=True, slots=True)
class TwinVerdict:
    """Result of paired runs of two worlds; `dropped` is None if a world does not record what it lost."""

    scenario: str
    worlds: tuple[str, str]
    seeds: tuple[int, ...]
    completed: tuple[int, int]
    metrics: dict[str, EquivalenceTest | None]
    """None for a metric that has values in one world only."""
    nothing_completed: bool
    """Whether no receiver completed in any run of either world; False for a scenario without receivers."""
    dropped: LossDifference | None
    queued: LossDifference | None
    must_equal: bool
    note: str
    warnings: tuple[str, ...]
    power: TwinPower | None
    """Power of the test with this number of pairs; None for a single pair, which shows nothing."""

    @property
    def differing(self) -> list[str]:
        """Keys of the metrics and other properties that were shown to differ."""
        found = [name for name, test in self.metrics.items() if test is None or test.verdict is Verdict.DIFFERENT]
        if self.completed[0] != self.completed[1]:
            found.append("completed")
        if self.must_equal and self.dropped is not None and self.dropped.differ:
            found.append("dropped")
        return found

    @property
    def not_shown(self) -> list[str]:
        """Keys of the metrics and other properties that were shown neither to agree nor to differ."""
        found = ["completion_time"] if self.nothing_completed else []
        found += [name for name, test in self.metrics.items() if test is not None and test.verdict is Verdict.NOT_SHOWN]
        return [*found, "dropped"] if self.must_equal and self.dropped is None else found

    @property
    def verdict(self) -> Verdict:
        """Different if anything was shown to differ, equivalent if everything was shown to agree.

        A difference of runs with warnings is not shown: it may be the machine's, which was too busy.
        """
        if self.differing:
            return Verdict.NOT_SHOWN if self.warnings else Verdict.DIFFERENT
        return Verdict.NOT_SHOWN if self.not_shown else Verdict.EQUIVALENT

    @property
    def equivalent(self) -> bool:
        """Whether the worlds were shown to be equivalent in everything."""
        return self.verdict is Verdict.EQUIVALENT

    @property
    def runs_needed(self) -> int | None:
        """Number of pairs that decides every metric that is not shown; None if all are decided, or no such number is known."""
        needed = [None if (test := self.metrics.get(name)) is None else test.runs_needed for name in self.not_shown]
        known = [number for number in needed if number is not None]
        return max(known) if known and len(known) == len(needed) else None

    @property
    def outcome(self) -> str:
        """The verdict in words, with what differs, or what is not shown and how many runs would do."""
        if self.verdict is Verdict.DIFFERENT:
            return "different: " + ", ".join(self.differing)
        if self.verdict is Verdict.EQUIVALENT:
            return "equivalent"
        if self.differing:
            return f"not shown on a machine that was too busy: {', '.join(self.differing)} (repeat on an idle one)"
        return f"not shown with {counted(len(self.seeds), 'run')}: {', '.join(self.not_shown)} ({self._enough()})"

    def _enough(self) -> str:
        if self.nothing_completed:
            return "no receiver was complete in either world, so there are no times to compare; a longer duration may help"
        if self.runs_needed is not None:
            return f"{counted(self.runs_needed, 'run')} would do"
        if "dropped" in self.not_shown:
            return "a world does not record what it lost"
        return "at least 2 runs" if self.power is None else f"it would take more than {MOST_RUNS} runs, or wider margins"

    def __repr__(self) -> str:
        """Return one line; `metrics` has the numbers."""
        return f"<TwinVerdict of {self.scenario} ({', '.join(self.worlds)}): {self.outcome}>"

    def _repr_html_(self) -> str:
        rows = [(TWIN_METRICS[name].label, *_cells(found)) for name, found in self.metrics.items()]
        head = ("", *self.worlds, "difference", "90 % interval", "margin", "verdict")
        return html_table(rows, caption=f"{self.scenario}: {self.outcome}", head=head, note="; ".join(self.warnings))

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite end of an interval is None."""
        return {
            "name": self.scenario,
            "verdict": self.verdict.value,
            "equivalent": self.equivalent,
            "differing": self.differing,
            "not_shown": self.not_shown,
            "runs_needed": self.runs_needed,
            "power": None if self.power is None else self.power.plain(),
            "worlds": list(self.worlds),
            "seeds": list(self.seeds),
            "completed": list(self.completed),
            "metrics": {name: None if found is None else _plain(found) for name, found in self.metrics.items()},
            "dropped": _counts(self.dropped),
            "queued": _counts(self.queued),
            "note": self.note,
            "warnings": list(self.warnings),
        }


def _cells(found: EquivalenceTest | None) -> tuple[str | None, ...]:
    """Return the cells of a metric in a table: both worlds, their difference with its interval, the margin and the verdict."""
    if found is None:
        return (*([None] * 5), "a value in one world only")
    gap = found.gap
    interval = f"{gap.low:+.3g} to {gap.high:+.3g}"
    return (number(found.first), number(found.second), f"{gap.mean:+.4g}", interval, f"{found.margin:.3g}", found.verdict.value)


def _plain(found: EquivalenceTest) -> dict[str, Any]:
    ends = [end if isfinite(end) else None for end in (found.gap.low, found.gap.high)]
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.gap.mean,
        "sd": found.gap.sd,
        "interval": ends,
        "margin": found.margin,
        "verdict": found.verdict.value,
        "runs_needed": found.runs_needed,
    }


def _counts(dropped: LossDifference | None) -> dict[str, int] | None:
    return None if dropped is None else {"first": dropped.first, "second": dropped.second, "differ": dropped.differ}


def compare_worlds(
    name: str, worlds: tuple[str, str], pairs: Sequence[tuple[Observation, Observation]], margins: Margins
) -> TwinVerdict:
    """Compare paired observations of two worlds."""
    return TwinVerdict(
        scenario=name,
        worlds=worlds,
        seeds=tuple(first.result.seed for first, _ in pairs),
        completed=(sum(first.result.completed for first, _ in pairs), sum(second.result.completed for _, second in pairs)),
        metrics=_metrics(pairs, margins),
        nothing_completed=_nothing_completed([seen.result for pair in pairs for seen in pair]),
        dropped=_dropped([(first.lost, second.lost) for first, second in pairs]),
        queued=_dropped([(first.queued, second.queued) for first, second in pairs]),
        must_equal=margins.dropped == "equal",
        note=margins.note,
        warnings=tuple(dict.fromkeys(seen.warning for pair in pairs for seen in pair if seen.warning)),
        power=power_of(margins, len(pairs)) if len(pairs) > 1 else None,
    )


def _nothing_completed(results: Sequence[Result]) -> bool:
    times = [row.completed_at for result in results for row in result.receivers]
    return bool(times) and all(time is None for time in times)


def _metrics(pairs: Sequence[tuple[Observation, Observation]], margins: Margins) -> dict[str, EquivalenceTest | None]:
    """Test every metric that has values."""
    values = {key: _values(measure.of, pairs) for key, measure in TWIN_METRICS.items() if key in compared_metrics(margins)}
    return {key: _compared(key, found, margins) for key, found in values.items() if found != []}


def _values(
    of: Callable[[Result], list[float | None]], pairs: Sequence[tuple[Observation, Observation]]
) -> list[tuple[float, float]] | None:
    """Return one pair of values per pair of runs: means over the receivers, which are not independent of each other.

    Values missing in both worlds are left out; None if one is missing in a single world.
    """
    found = []
    for first, second in pairs:
        known = []
        for a, b in zip(of(first.result), of(second.result), strict=True):
            if a is not None and b is not None:
                known.append((a, b))
            elif a is not b:
                return None
        if known:
            found.append((fsum(a for a, _ in known) / len(known), fsum(b for _, b in known) / len(known)))
    return found


def _compared(key: str, pairs: Sequence[tuple[float, float]] | None, margins: Margins) -> EquivalenceTest | None:
    if pairs is None:
        return None
    absolute = margins.packets if TWIN_METRICS[key].counted else 0.0
    return equivalence_test([a for a, _ in pairs], [b for _, b in pairs], getattr(margins, key), absolute)


def _dropped(pairs: Sequence[tuple[LossSets | None, LossSets | None]]) -> LossDifference | None:
    counts = [0, 0, 0]
    for first, second in pairs:
        if first is None or second is None:
            return None
        for link in first.keys() | second.keys():
            a, b = first.get(link, frozenset()), second.get(link, frozenset())
            for place, some in enumerate((a, b, a ^ b)):
                counts[place] += len(some)
    return LossDifference(*counts)
