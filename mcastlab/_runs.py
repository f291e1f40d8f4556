"""Run scenarios: once, under several protocols, or in two worlds."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike

from experiments.compare import comparison
from experiments.compare.comparison import Comparison
from experiments.compare.twin import paired_runs
from experiments.compare.twin.verdict import TwinVerdict
from experiments.compare.twin.worlds import WORLDS
from experiments.output import tables
from experiments.output.run_folder import claim_run
from experiments.running import run as running
from experiments.running.recording import Recording
from experiments.scenario import scenario as model
from experiments.scenario.plain_values import mapping_of
from experiments.scenario.scenario import SEEDS
from experiments.statistics.verdicts import MOST_RUNS
from mcastlab._arguments import a_choice, a_path, a_whole, names, names_arguments
from mcastlab._result import Result
from mcastlab._scenarios import ScenarioSource, load
from protocols.errors import UsageError, shown

__all__ = ["compare", "run", "twin"]


@names_arguments
def run(
    scenario: ScenarioSource, on: str | None = None, *, seed: int | None = None, out: PathLike[str] | str | None = None
) -> Result:
    """Run a scenario in the simulator (`on="sim"`) or in Mininet (`on="emu"`), for its `duration` at most.

    By default it runs in the simulator, or in Mininet if `nodes` names foreign programs. `out` is a folder
    for result.json, receivers.csv and the recordings the scenario requests (captures, trace, series). Cases listed under
    `compare` are not run: see `cases`.

    `seed` replaces the scenario's. UsageError for an argument that is not allowed, UnsupportedError for a scenario that this
    machine can't run. What an external protocol raises in the simulator is raised here, as it is.
    """
    wanted = _loaded(scenario)
    if seed is not None:
        wanted = wanted.model_copy(update={"seed": a_whole("seed", seed, 0, SEEDS - 1)})
    place = running.default_backend([wanted]) if on is None else a_choice("on", on, list(running.BACKENDS))
    folder = None if out is None else a_path("out", out)
    recording = Recording.of(wanted, folder)
    with nullcontext() if folder is None else claim_run(folder):
        result = running.run(wanted, place, recording)
        if folder is not None:
            tables.write(result, wanted, folder)
    return Result.of(result)


@names_arguments
def compare(
    scenario: ScenarioSource,
    protocols: Iterable[str] | None = None,
    runs: int = 5,
    on: str = "sim",
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> Comparison:
    """Run a scenario under several protocols with the same seeds and losses; return paired differences to the first one.

    `protocols` are names or files of external protocols; by default the scenario's own, if it is another one, norm, a, n1, n2
    and srm. `settings` are parameters by the name of the protocol. `runs` is the number of runs of each, with consecutive seeds
    from the scenario's (0 follows 2**64 - 1). Cases listed under `compare` are not run: see `cases`.

    UsageError for an argument that is not allowed. What an external protocol raises in the simulator is raised here, as it is.
    """
    wanted = _loaded(scenario)
    count, place = a_whole("runs", runs, 1), a_choice("on", on, list(running.BACKENDS))
    named = comparison.usual_protocols(wanted) if protocols is None else names("protocols", protocols)
    special = {} if settings is None else mapping_of(settings, "settings")
    chosen = comparison.variants(wanted, named, {key: mapping_of(values, f"settings.{key}") for key, values in special.items()})
    return comparison.collate(wanted.name, comparison.compare(chosen, count, place))


@names_arguments
def twin(
    scenario: ScenarioSource,
    runs: int | None = None,
    worlds: Sequence[str] = WORLDS,
    second: Mapping[str, object] | None = None,
) -> TwinVerdict:
    """Test whether two worlds agree on a scenario: paired runs with the same seeds and losses, and an equivalence test.

    The `verdict` of the result is equivalent, different, or not shown by so few runs; `runs_needed` then says how many
    would do.

    `runs` replaces the scenario's number of pairs, whose seeds are consecutive (0 follows 2**64 - 1); `second` replaces values,
    by their path, in the second world only. UsageError for an argument that is not allowed.
    """
    wanted = _loaded(scenario)
    count = None if runs is None else a_whole("runs", runs, 2, MOST_RUNS)
    pair = names("worlds", worlds)
    if len(pair) != 2 or not set(pair) <= set(WORLDS):
        raise UsageError(f"worlds: value {shown(worlds)} is not allowed; two of {', '.join(WORLDS)}, like ('sim', 'emu')")
    return paired_runs.twin((wanted, load(wanted, second) if second is not None else wanted), (pair[0], pair[1]), count)


def _loaded(scenario: ScenarioSource) -> model.Scenario:
    return scenario if isinstance(scenario, model.Scenario) else load(scenario)
