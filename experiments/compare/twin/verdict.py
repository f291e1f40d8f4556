"""Compare paired runs of two worlds metric by metric, and by the sets of lost packets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from experiments.compare.twin.equivalence import EquivalenceTest, equivalence_test
from experiments.compare.twin.margins import Margins
from experiments.compare.twin.twin_metrics import TWIN_METRICS
from experiments.running.result import Result

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
    dropped: LossDifference | None
    queued: LossDifference | None
    must_equal: bool
    note: str
    warnings: tuple[str, ...]

    @property
    def differing(self) -> list[str]:
        """Keys of the metrics and other properties that differ; empty if the worlds are equivalent."""
        found = [name for name, found in self.metrics.items() if found is None or not found.equivalent]
        if self.completed[0] != self.completed[1]:
            found.append("completed")
        if self.must_equal and (self.dropped is None or self.dropped.differ):
            found.append("dropped")
        return found

    @property
    def equivalent(self) -> bool:
        """Whether the worlds are equivalent in everything."""
        return not self.differing

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite end of an interval is None."""
        return {
            "name": self.scenario,
            "equivalent": self.equivalent,
            "differing": self.differing,
            "worlds": list(self.worlds),
            "seeds": list(self.seeds),
            "completed": list(self.completed),
            "metrics": {name: None if found is None else _plain(found) for name, found in self.metrics.items()},
            "dropped": _counts(self.dropped),
            "queued": _counts(self.queued),
            "note": self.note,
            "warnings": list(self.warnings),
        }


def _plain(found: EquivalenceTest) -> dict[str, Any]:
    ends = [end if isfinite(end) else None for end in (found.gap.low, found.gap.high)]
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.gap.mean,
        "interval": ends,
        "margin": found.margin,
        "equivalent": found.equivalent,
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
        dropped=_dropped([(first.lost, second.lost) for first, second in pairs]),
        queued=_dropped([(first.queued, second.queued) for first, second in pairs]),
        must_equal=margins.dropped == "equal",
        note=margins.note,
        warnings=tuple(dict.fromkeys(seen.warning for pair in pairs for seen in pair if seen.warning)),
    )


def _metrics(pairs: Sequence[tuple[Observation, Observation]], margins: Margins) -> dict[str, EquivalenceTest | None]:
    """Test every metric that has values."""
    values = {key: _values(measure.of, pairs) for key, measure in TWIN_METRICS.items()}
    return {key: _compared(key, found, margins) for key, found in values.items() if found != []}


def _values(
    of: Callable[[Result], list[float | None]], pairs: Sequence[tuple[Observation, Observation]]
) -> list[tuple[float, float]] | None:
    """Return pairs of values, without those missing in both worlds; None if one is missing in a single world."""
    found = []
    for first, second in pairs:
        for a, b in zip(of(first.result), of(second.result), strict=True):
            if a is not None and b is not None:
                found.append((a, b))
            elif a is not b:
                return None
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
