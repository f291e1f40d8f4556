"""From a sweep to its points and runs: what is varied, and how each run is named."""

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from experiments.scenario.files import put
from experiments.scenario.protocol_modules import find_protocol, resolve, resolve_in, source_of
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, complete, parse, read
from experiments.sweep.run.version import code_version
from experiments.sweep.spec.conditions import Condition
from experiments.sweep.spec.quantities import Value, kind_of, number_of
from experiments.sweep.spec.sampling import unit_points
from experiments.sweep.spec.sweep_file import BACKEND, Axis, Sweep
from protocols.errors import ConfigError, UsageError

__all__ = ["SweepPlan", "Point", "SweepRun"]


@dataclass(frozen=True, slots=True)
class Point:
    """One set of parameters: values on the axes as the file writes them, and a named case."""

    index: int
    case: str | None
    values: dict[str, Value]

    def __str__(self) -> str:
        told = ([f"case={self.case}"] if self.case is not None else []) + [
            f"{key}={value}" for key, value in self.values.items()
        ]
        return f"point {self.index} ({', '.join(told) or 'the base'})"


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: a point with a seed. `scenario` is JSON; `weight` is a guess of its cost, without unit."""

    run_id: str
    point: Point
    seed: int
    scenario: str
    weight: float
    receivers: int
    backend: str = "sim"


@dataclass(slots=True)
class SweepPlan:
    """The points and runs of a sweep file that lies in `path`."""

    sweep: Sweep
    path: Path
    base: dict[str, Any] = field(init=False)
    more: list[tuple[Value, ...]] = field(default_factory=list)
    """Values that refinement added to its axis, by round."""

    def __post_init__(self) -> None:
        if isinstance(self.sweep.scenario, str):
            self.base = read(find_scenario(self.sweep.scenario, self.path.parent))
        else:
            self.base = {"name": self.sweep.name, **copy.deepcopy(self.sweep.scenario)}
            complete(self.base, self.path)
        for key, value in self.sweep.set.items():
            self._put(self.base, key, value, f"set.{key}")

    @property
    def modules(self) -> dict[str, bytes]:
        """The source of every protocol file that base, cases and axes name, by its absolute path."""
        return {path: source for path in self._module_names() if (source := source_of(path)) is not None}

    @property
    def version(self) -> str:
        """The version of the code that makes the runs, protocols from outside included."""
        names = self._module_names()
        if not names:
            return code_version()
        hashed = sha256("".join(find_protocol("", name).digest for name in names).encode())
        return f"{code_version()}.{hashed.hexdigest()[:12]}"

    def _module_names(self) -> list[str]:
        cases = [case.get("protocol.module", case.get("protocol")) for case in self.sweep.cases.values()]
        axes = [
            value for name, axis in self.sweep.axes.items() if "protocol.module" in self._keys(name) for value in axis.grid()
        ]
        named = (item.get("module") if isinstance(item, dict) else item for item in (self.base.get("protocol"), *cases, *axes))
        return sorted({resolve(name, self.path.parent) for name in named if isinstance(name, str)})

    @property
    def most_runs(self) -> int:
        """How many runs there are at the most, without making them: points left out count."""
        sweep = self.sweep
        points = sweep.sample.points if sweep.sample else prod(len(level) for level in self._levels())
        if sweep.refine:
            others = points // len(sweep.axes[sweep.refine.axis].grid())
            points += others * sweep.refine.rounds * sweep.refine.points
        return points * max(1, len(sweep.cases)) * (sweep.until.most if sweep.until else sweep.replications)

    @property
    def axis_types(self) -> dict[str, str]:
        """The type of each axis' column."""
        return {name: self._kind(axis) for name, axis in self.sweep.axes.items()}

    @staticmethod
    def _kind(axis: Axis) -> str:
        if axis.values is None:
            return "long" if axis.whole else "double"
        return kind_of(axis.values)

    def points(self) -> Iterator[Point]:
        """Every point, the same ones in the same order each time; those that refinement added come last."""
        conditions = [Condition(text, self.sweep.names) for text in self.sweep.leave_out]
        index = 0
        for case, values in self._combinations():
            numbers = {name: number_of(value) for name, value in values.items()} | {"case": case or ""}
            if not any(condition.holds(numbers) for condition in conditions):
                yield Point(index, case, values)
                index += 1

    def _combinations(self) -> Iterator[tuple[str | None, dict[str, Value]]]:
        cases: Sequence[str | None] = list(self.sweep.cases) or [None]
        if self.sweep.sample is not None:
            for fractions in unit_points(self.sweep.sample, len(self.sweep.axes)):
                placed = {name: axis.at(part) for (name, axis), part in zip(self.sweep.axes.items(), fractions, strict=True)}
                yield from ((case, placed) for case in cases)
            return
        for levels in (self._levels(), *(self._levels(values) for values in self.more)):
            for case in cases:
                for chosen in product(*levels):
                    yield case, {name: value for part in chosen for name, value in part.items()}

    def _levels(self, refined: Sequence[Value] | None = None) -> list[list[dict[str, Value]]]:
        """For each axis, or group of zipped ones, what it may be. `refined` replaces the values of the refined axis."""
        sweep, levels = self.sweep, []
        seen: list[str] = []
        for name, axis in sweep.axes.items():
            if name in seen:
                continue
            group = next((group for group in sweep.zip if name in group), (name,))
            seen += group
            if refined is not None and sweep.refine is not None and name == sweep.refine.axis:
                levels.append([{name: value} for value in refined])
                continue
            columns = [sweep.axes[member].grid() for member in group] if len(group) > 1 else [axis.grid()]
            levels.append([dict(zip(group, values, strict=True)) for values in zip(*columns, strict=True)])
        return levels

    def runs(self, point: Point, first: int, count: int) -> list[SweepRun]:
        """`count` runs of a point, from the `first` replication (from 0). ConfigError when the scenario is not allowed."""
        data = copy.deepcopy(self.base)
        for key, setting in (self.sweep.cases[point.case] if point.case is not None else {}).items():
            self._put(data, key, setting, f"cases.{point.case}.{key}")
        for name, value in point.values.items():
            for key in self._keys(name):
                self._put(data, key, value, f"axes.{name}")
        resolve_in(data, self.path.parent)
        data["seed"] = self.sweep.seed
        scenario = parse(data, f"{self.path}: {point}")
        weight, receivers = _weight(scenario)
        backend = str(point.values.get(BACKEND, self.sweep.backend))
        made = []
        for seed in range(self.sweep.seed + first, self.sweep.seed + first + count):
            digest = scenario.model_copy(update={"seed": seed}).digest()
            text = json.dumps(data | {"seed": seed}, sort_keys=True, separators=(",", ":"))
            made.append(SweepRun(self._run_id(digest, backend), point, seed, text, weight, receivers, backend))
        return made

    def _keys(self, name: str) -> Sequence[str]:
        if name == BACKEND:
            return []
        key = self.sweep.axes[name].key
        return [name] if key is None else [key] if isinstance(key, str) else key

    def _put(self, data: dict[str, Any], key: str, value: object, origin: str) -> None:
        try:
            put(data, key.split("."), copy.deepcopy(value), f"{key}={value}")
        except UsageError as error:
            raise ConfigError(f"{self.path}: {origin}: {str(error).removeprefix('--set: ')}") from error

    def _run_id(self, digest: str, backend: str) -> str:
        """Hash scenario, backend, code version and what is kept: a run without its time series is another than one with."""
        keep = self.sweep.keep
        kept = [keep.receivers, keep.series, *keep.captures]
        named = json.dumps([digest, backend, kept, code_version()])
        return sha256(named.encode()).hexdigest()[:32]


def _weight(scenario: Scenario) -> tuple[float, int]:
    """Packets times receivers, roughly: what the cost of a simulation grows with. And the hosts that may receive."""
    topology = scenario.build_topology()
    receivers = sum(map(topology.size, topology.host_nodes)) - len(scenario.senders)
    segment = getattr(scenario.protocol.config, "segment", 1400)
    packets = sum(work.size * work.count / segment for work in scenario.workload)
    return float((packets + 50) * (20 + receivers**0.8)), receivers
