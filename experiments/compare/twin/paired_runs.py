"""Paired runs of one scenario in two worlds."""

from collections.abc import Callable

from experiments.compare.twin.verdict import Observation, TwinVerdict, compare_worlds
from experiments.compare.twin.worlds import observe
from experiments.scenario.margins import Margins
from experiments.scenario.scenario import SEEDS, Scenario

__all__ = ["pairs_of", "twin"]


def pairs_of(scenario: Scenario, runs: int | None) -> tuple[Margins, int]:
    """Return the margins of a scenario, and the number of pairs: `runs`, or that of the scenario."""
    margins = scenario.twin or Margins()
    return margins, runs or margins.runs


def twin(
    scenarios: tuple[Scenario, Scenario],
    worlds: tuple[str, str] = ("sim", "emu"),
    runs: int | None = None,
    on_run: Callable[[str, int], None] = lambda world, seed: None,
) -> TwinVerdict:
    """Run both worlds with consecutive seeds from the first scenario's, and test their equivalence.

    `scenarios` are equal except for deliberate differences. `runs` overrides the scenario's number of runs; `on_run` is called
    with (world, seed) as each run begins.
    """
    first = scenarios[0]
    margins, wanted = pairs_of(first, runs)
    pairs: list[tuple[Observation, Observation]] = []
    for number in range(wanted):
        seed, seen = (first.seed + number) % SEEDS, []
        for scenario, world in zip(scenarios, worlds, strict=True):
            on_run(world, seed)
            seen.append(observe(scenario.model_copy(update={"seed": seed}), world))
        pairs.append((seen[0], seen[1]))
    return compare_worlds(first.name, worlds, pairs, margins)
