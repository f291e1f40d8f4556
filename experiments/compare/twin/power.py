"""State what a number of paired runs can show, before any of them begins."""

from dataclasses import dataclass
from typing import Any

from experiments.compare.twin.twin_metrics import compared_metrics
from experiments.scenario.margins import Margins
from experiments.statistics.verdicts import POWER, largest_sd, shown_excess

__all__ = ["TwinPower", "power_of"]


@dataclass(frozen=True, slots=True)
class TwinPower:
    """Power of a test with `pairs` of runs: what it shows with a probability of 80 %, for independent normal differences.

    `largest_sd`: largest standard deviation, in margins, at which worlds with equal means are shown to be equivalent;
    `excess`: by how many standard deviations the mean difference has to exceed the margin to be shown. `relative` is
    `largest_sd` as a fraction of the first world's mean, by metric.
    """

    pairs: int
    largest_sd: float
    excess: float
    relative: dict[str, float]

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        head = {"pairs": self.pairs, "power": POWER, "largest_sd_in_margins": self.largest_sd, "excess_in_sd": self.excess}
        return {**head, "largest_sd": self.relative}

    @property
    def words(self) -> str:
        """One sentence for users."""
        each = ", ".join(f"{name} {100 * share:.2g} %" for name, share in self.relative.items())
        return (
            f"in {100 * POWER:.0f} % of cases {self.pairs} pairs show equivalence where the differences of pairs have a "
            f"standard deviation up to {self.largest_sd:.2g} margins ({each}), and a difference that exceeds the margin by "
            f"{self.excess:.2g} standard deviations"
        )


def power_of(margins: Margins, pairs: int) -> TwinPower:
    """Return what a number of pairs (at least 2) can show with these margins."""
    sd = largest_sd(pairs)
    return TwinPower(pairs, sd, shown_excess(pairs), {key: sd * margin for key, margin in compared_metrics(margins).items()})
