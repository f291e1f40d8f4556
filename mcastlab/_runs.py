"""Run scenarios: once, under several protocols, or in two worlds."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from experiments.compare import comparison
from experiments.compare.comparison import Comparison
from experiments.compare.twin import paired_runs
from experiments.compare.twin.verdict import TwinVerdict
from experiments.output import tables
from experiments.output.run_folder import claim_run
from experiments.running import run as running
from experiments.running.recording import Recording
from experiments.scenario.scenario import SEEDS, Scenario
from mcastlab._result import Result
from mcastlab._scenarios import ScenarioSource, load
from protocols.errors import UsageError

__all__ = ["compare", "run", "twin"]


def run(scenario: ScenarioSource, on: str | None = None, *, seed: int | None = None, out: Path | str | None = None) -> Result:
    """Run a scenario in the simulator (`on="sim"`) or in Mininet (`on="emu"`), for its `duration` at most.

    By default it runs in the simulator, or in Mininet if `nodes` names foreign programs. `out` is a folder
    for result.json, receivers.csv and the recordings the scenario requests (captures, trace, series). Cases listed under
    `compare` are not run: see `cases`.

    `seed` replaces the scenario's. UsageError for a seed or a value of `on` that is not allowed, UnsupportedError for a
    scenario that this machine can't run.
    """
    wanted = _loaded(scenario)
    if seed is not None:
        _check_whole("seed", seed, 0, SEEDS - 1)
        wanted = wanted.model_copy(update={"seed": seed})
    folder = None if out is None else Path(out)
    recording = Recording.of(wanted, folder)
    with nullcontext() if folder is None else claim_run(folder):
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
    _check_whole("runs", runs, 1)
    named = comparison.usual_protocols(wanted) if protocols is None else protocols
    chosen = comparison.variants(wanted, named, settings or {})
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
    if runs is not None:
        _check_whole("runs", runs, 2)
    return paired_runs.twin((wanted, load(wanted, second) if second else wanted), worlds, runs)


def _check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise UsageError for an argument that is not a whole number from `least` to `most`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        span = f"from {least} on" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name}: value {value!r} is not allowed; a whole number {span}")


def _loaded(scenario: ScenarioSource) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(scenario)
