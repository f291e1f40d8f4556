"""Run a scenario in the simulator or in Mininet."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from experiments.running.recording import Recording
from experiments.running.result import Result
from experiments.running.run_progress import RunProgress
from experiments.running.simulate import check_simulated, simulate_recorded
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError

if TYPE_CHECKING:
    from emu.attachment import Attendant
    from emu.hold import Hold
    from emu.node_processes import ProgressCallback

__all__ = ["BACKENDS", "check_runnable", "default_backend", "run"]


def _emulate(
    scenario: Scenario,
    recording: Recording | None = None,
    watch: "ProgressCallback | None" = None,
    hold: "Hold | None" = None,
    attendants: Sequence["Attendant"] = (),
) -> Result:
    # Simulations need no emulator, which takes long to import.
    from experiments.running.emulate import emulate_scenario

    return emulate_scenario(scenario, recording, watch, hold, attendants)


BACKENDS: dict[str, Callable[[Scenario, Recording | None], Result]] = {"sim": simulate_recorded, "emu": _emulate}


def default_backend(scenarios: Iterable[Scenario]) -> str:
    """Return the default backend: "sim", or "emu" if a scenario has foreign programs."""
    return "emu" if any(scenario.foreign for scenario in scenarios) else "sim"


def check_runnable(scenario: Scenario, backend: str) -> None:
    """Raise UnsupportedError for a scenario that a backend of `BACKENDS` can't run, as far as is known without running it."""
    if backend == "sim":
        check_simulated(scenario)
        return
    # As in `_emulate`.
    from experiments.running.emulate import check_emulated

    check_emulated(scenario)


def run(
    scenario: Scenario,
    backend: str = "sim",
    recording: Recording | None = None,
    watch: "ProgressCallback | None" = None,
    hold: "Hold | None" = None,
    progress: RunProgress | None = None,
    attendants: Sequence["Attendant"] = (),
) -> Result:
    """Run a scenario until every sender is finished, at most for its `duration`; returns its result.

    `recording` names the files to write; `watch` is called every second of an emulation with the counters of its hosts;
    `hold` holds the network of an emulation before and after its session (NotStartedError if it ends before); `progress`
    follows a simulation; `attendants` answer queries from outside while an emulation runs.
    UsageError for an unknown backend, UnsupportedError for a scenario that the backend or this machine can't run.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend: {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    if watch is None and hold is None and not attendants:
        if progress is not None and backend == "sim":
            return simulate_recorded(scenario, recording, progress)
        return BACKENDS[backend](scenario, recording)
    if backend != "emu":
        raise UsageError(f"live, hold: {backend!r} is not allowed; only Mininet runs in real time (--on emu)")
    return _emulate(scenario, recording, watch, hold, attendants)
