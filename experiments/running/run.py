"""Runs a scenario in a world: the simulator or Mininet."""

from collections.abc import Callable, Iterable

from emu.node_processes import ProgressCallback
from experiments.running.emulate import emulate_scenario
from experiments.running.recording import Recording
from experiments.running.result import Result
from experiments.running.simulate import watched
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError

__all__ = ["BACKENDS", "home_of", "run"]

BACKENDS: dict[str, Callable[[Scenario, Recording | None], Result]] = {"sim": watched, "emu": emulate_scenario}


def home_of(scenarios: Iterable[Scenario]) -> str:
    """Where scenarios run when nobody says so: in the simulator, unless one has programs that are not ours."""
    return "emu" if any(scenario.foreign for scenario in scenarios) else "sim"


def run(
    scenario: Scenario, backend: str = "sim", seeing: Recording | None = None, watch: ProgressCallback | None = None
) -> Result:
    """Run the scenario and say what came out. It is over when every sender is finished, or at its `duration`.

    `seeing` says what is written down meanwhile; `watch` is told every second of an emulation what its hosts counted.
    UsageError for an unknown backend, UnsupportedError when the world or this machine can't do what the scenario asks.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend: {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    if watch is None:
        return BACKENDS[backend](scenario, seeing)
    if backend != "emu":
        raise UsageError(f"live: {backend!r} is not allowed; only Mininet runs in real time (--on emu)")
    return emulate_scenario(scenario, seeing, watch)
