"""One run of one world, with what its links lost."""

from experiments.run import run, simulate
from experiments.scenario import Scenario
from experiments.twin.verdict import Lost, Observation
from protocols.errors import UsageError
from sim.first_losses import FirstLosses

__all__ = ["WORLDS", "observe"]

WORLDS = ("sim", "emu")


def observe(scenario: Scenario, world: str) -> Observation:
    """Run the scenario in a world. UsageError for an unknown one, UnsupportedError when this machine can't do it."""
    if world not in WORLDS:
        raise UsageError(f"--worlds: value {world!r} is not allowed; each one of {', '.join(WORLDS)}")
    if world == "sim":
        seen = FirstLosses()
        return Observation(simulate(scenario, [seen]), _frozen(seen.lost), _frozen(seen.queued))
    return Observation(run(scenario, "emu"), None, None)


def _frozen(sets: dict[str, set[int]]) -> Lost:
    return {link: frozenset(identities) for link, identities in sets.items()}
