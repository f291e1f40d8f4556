"""Run scenarios: once, under several protocols, or in two worlds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.compare import comparison
from experiments.compare.comparison import Comparison
from experiments.compare.twin import paired_runs
from experiments.compare.twin.verdict import TwinVerdict
from experiments.output import tables
from experiments.running import run as running
from experiments.running.recording import Recording
from experiments.scenario.scenario import Scenario
from mcastlab._result import Result
from mcastlab._scenarios import ScenarioSource, load

__all__ = ["compare", "run", "twin"]


def run(scenario: ScenarioSource, on: str | None = None, *, seed: int | None = None, out: Path | str | None = None) -> Result:
    """Run a scenario in the simulator (`on="sim"`) or in Mininet (`on="emu"`), for its `duration` at most.

    By default it runs in the simulator, or in Mininet if `nodes` names foreign programs. `out` is a folder
    for result.json, receivers.csv and the recordings the scenario requests (captures, trace, series). Cases listed under
    `compare` are not run: see `cases`.

    UsageError for an unknown value of `on`, UnsupportedError for a scenario that this machine can't run.
    """
    wanted = _loaded(scenario)
    if seed is not None:
        wanted = wanted.model_copy(update={"seed": seed})
    folder = None if out is None else Path(out)
    recording = Recording.of(wanted, folder)
    if folder is not None:
        tables.prepare(folder)
    result = running.run(wanted, on or running.home_of([wanted]), recording)
    if folder is not None:
        tables.write(result, wanted, folder)
    return Result.of(result)


def compare(
    scenario: ScenarioSource,
    protocols: Sequence[str] | None = None,
    runs: int = 5,
    on: str = "sim",
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> Comparison:
    """Run a scenario under several protocols with the same seeds and losses; return paired differences to the first one.

    `protocols` are names or files of external protocols; by default the scenario's own, if it is another one, norm, a, n1, n2
    and srm. `settings` are parameters by the name of the protocol. `runs` is the number of runs of each, with consecutive seeds
    from the scenario's. Cases listed under `compare` are not run: see `cases`.
    """
    wanted = _loaded(scenario)
    chosen = comparison.variants(wanted, protocols or comparison.usual_protocols(wanted), settings or {})
    return comparison.collate(wanted.name, comparison.compare(chosen, runs, on))


def twin(
    scenario: ScenarioSource,
    runs: int | None = None,
    worlds: tuple[str, str] = ("sim", "emu"),
    second: Mapping[str, object] | None = None,
) -> TwinVerdict:
    """Test whether two worlds agree on a scenario: paired runs with the same seeds and losses, and an equivalence test.

    The `verdict` of the result is equivalent, different, or not shown by so few runs; `runs_needed` then says how many
    would do.

    `runs` replaces the scenario's number of pairs; `second` replaces values, by their path, in the second world only.
    """
    wanted = _loaded(scenario)
    return paired_runs.twin((wanted, load(wanted, second) if second else wanted), worlds, runs)


def _loaded(scenario: ScenarioSource) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(scenario)
