"""Runs with planted causes: what was done to an object at a receiver is known, and `explain` has to find it."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from experiments.captures.trace_file import read_trace
from experiments.output.tables import write
from experiments.running.recording import Recording
from experiments.running.simulate import simulate_recorded
from experiments.scenario.scenario import parse

__all__ = ["CAUSES", "Planted", "plant", "recorded_run"]


@dataclass(frozen=True, slots=True)
class Planted:
    """A recorded run, and the object and receiver to which `cause` was done."""

    folder: Path
    cause: str
    object_id: int
    receiver: str


def recorded_run(folder: Path, data: dict[str, Any], **looks: Any) -> Path:
    """Run a scenario in the simulator with a trace, and write what `mcastlab run --out` writes."""
    scenario = parse({"trace": True, **looks, **data}, "planted")
    folder.mkdir(parents=True, exist_ok=True)
    result = simulate_recorded(scenario, Recording.of(scenario, folder))
    write(result, scenario, folder)
    return folder


def _scenario(random: Random, receivers: int, **settings: Any) -> dict[str, Any]:
    delay = random.choice(["1ms", "5ms", "20ms"])
    return {
        "name": "planted",
        "seed": random.randrange(1 << 30),
        "topology": {
            "kind": "star",
            "receivers": receivers,
            "trunk": {"rate": "100Mbit", "delay": delay},
            "link": {"rate": "100Mbit", "delay": "1ms"},
        },
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": random.choice(["50ms", "100ms"]), **settings},
        "workload": {"kind": "file", "size": 300_000, "count": 2},
        "duration": "40s",
    }


def _outage(random: Random) -> dict[str, Any]:
    """Return a fault that loses some packets of object 0 on the sender's link."""
    at = random.uniform(0.03, 0.2)
    return {"at": at, "change": ["sender", "s1"], "loss": 1.0, "for": random.uniform(0.002, 0.01)}


def _drop(folder: Path, random: Random) -> Planted:
    receivers = random.randint(1, 6)
    parity = random.choice([16, 16, 0])
    data = _scenario(random, receivers, parity=parity) | {"faults": [_outage(random)]}
    return Planted(recorded_run(folder, data), "drop", 0, f"r{random.randint(1, receivers)}")


def _suppressed(folder: Path, random: Random) -> Planted:
    """Lose packets for all, and each NACK of the first round behind the switch, where the other receivers have heard it."""
    data = _scenario(random, random.randint(3, 6), probing="none", parity=random.choice([16, 0]))
    outage = _outage(random)
    grtt = float(data["protocol"]["grtt"].removesuffix("ms")) / 1000
    deaf = {"at": outage["at"], "change": ["s1", "sender"], "loss": 1.0, "for": 0.3 + 5 * grtt}
    recorded_run(folder, data | {"faults": [outage, deaf]})
    trace = read_trace(folder)
    found = [
        event.node for event in trace.decisions if event.name == "nack_suppressed" and event.time < deaf["at"] + deaf["for"]
    ]
    return Planted(folder, "suppressed request", 0, random.choice(found))


def _slow(folder: Path, random: Random) -> Planted:
    if random.random() < 0.5:
        data = _scenario(random, 3, rate=f"{random.randint(200, 600)}kbit")
    else:
        data = _scenario(random, 3) | {"faults": [{"at": 0.05, "drift": "sender", "factor": 0.1, "for": "20s"}]}
    return Planted(recorded_run(folder, data), "slow sender", random.randint(0, 1), f"r{random.randint(1, 3)}")


def _purge(folder: Path, random: Random) -> Planted:
    data = _scenario(random, random.randint(1, 4), cache_min=1, cache_max=random.randint(1, 4), flow=0.1, parity=0)
    data["workload"] = {"kind": "file", "size": 20_000, "count": 40}
    outage = {"at": 0.0301, "change": ["sender", "s1"], "loss": 1.0, "for": 0.003}
    recorded_run(folder, data | {"faults": [outage]})
    aborted = [event for event in read_trace(folder).decisions if event.name == "object_aborted"]
    if not aborted:
        # The first NACK came early enough.
        return _purge(folder, random)
    event = random.choice(aborted)
    return Planted(folder, "purge", int(event.data["object_id"]), event.node)


def _partition(folder: Path, random: Random) -> Planted:
    receivers = random.randint(2, 6)
    receiver = f"r{random.randint(1, receivers)}"
    sides: list[Any] = [[receiver], "rest"] if random.random() < 0.5 else [["sender"], [receiver]]
    fault = {"at": random.uniform(0.02, 0.2), "partition": sides, "for": random.uniform(0.1, 2.0)}
    data = _scenario(random, receivers) | {"faults": [fault]}
    return Planted(recorded_run(folder, data), "partition", 0, receiver)


CAUSES = {
    "drop": _drop,
    "suppressed request": _suppressed,
    "slow sender": _slow,
    "purge": _purge,
    "partition": _partition,
}


def plant(folder: Path, cause: str, seed: int) -> Planted:
    """Run a scenario with a planted cause, drawn from a seed."""
    return CAUSES[cause](folder, Random(f"{cause} {seed}"))
