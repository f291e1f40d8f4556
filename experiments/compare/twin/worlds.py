"""Run a scenario in one world, and record what its links lost."""

from collections.abc import Iterable, Mapping

from experiments.compare.twin.verdict import LossSets, Observation
from experiments.running.run import run
from experiments.running.simulate import simulate
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError
from sim.first_losses import FirstLosses

__all__ = ["WORLDS", "observe"]

WORLDS = ("sim", "emu")


def observe(scenario: Scenario, world: str) -> Observation:
    """Run the scenario in a world; UsageError for an unknown world, UnsupportedError if this machine lacks it.

    Both worlds lose the same packets, but for protocols that use TCP, whose segments no two worlds have in common.
    """
    if world not in WORLDS:
        raise UsageError(f"--worlds: value {world!r} is not allowed; each one of {', '.join(WORLDS)}")
    if world == "sim":
        seen = FirstLosses()
        return Observation(simulate(scenario, [seen]), _frozen(seen.lost), _frozen(seen.queued))
    if scenario.protocol.spec.connected:
        result = run(scenario, "emu")
        return Observation(result, None, None, "; ".join(result.metrics["health"]["reasons"]))
    keyed = scenario.emu.model_copy(update={"losses": "keyed"})
    result = run(scenario.model_copy(update={"emu": keyed}), "emu")
    lost, queued = (_frozen(result.metrics[key]) for key in ("dropped_first", "queued_first"))
    return Observation(result, lost, queued, "; ".join(result.metrics["health"]["reasons"]))


def _frozen(sets: Mapping[str, Iterable[int]]) -> LossSets:
    return {link: frozenset(identities) for link, identities in sets.items()}
