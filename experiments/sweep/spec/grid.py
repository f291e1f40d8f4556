"""Expand a sweep into points and runs, and derive the id of each run."""

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any
from unicodedata import normalize

from experiments.running.run_size import size_of
from experiments.scenario.files import put
from experiments.scenario.protocol_modules import find_protocol, resolve, resolve_in, source_of
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, complete, parse, read
from experiments.sweep.spec.code_version import code_version
from experiments.sweep.spec.conditions import Condition
from experiments.sweep.spec.quantities import Value, kind_of, number_of
from experiments.sweep.spec.sampling import unit_points
from experiments.sweep.spec.sweep_file import BACKEND, Axis, Sweep
from protocols.errors import ConfigError, UsageError
from sim.sniffer import check_point

__all__ = ["Point", "SweepPlan", "SweepRun"]


_CASE = "case"
"""Name of the axis of named cases."""
_WHOLE = re.compile(r"whole number|integer")
"""What errors say of a key that takes no fractions."""
_SHOWN = 100
"""Characters of a value in the name of a point."""
_AXIS_NAME = re.compile(r"[^,=`'\"\\\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Point:
    """One parameter point: values of the axes as the file writes them, and a named case."""

    index: int
    case: str | None
    values: dict[str, Value]

    def __str__(self) -> str:
        parameters = ([f"case={self.case}"] if self.case is not None else []) + [
            f"{key}={str(value)[:_SHOWN]}" for key, value in self.values.items()
        ]
        return f"point {self.index} ({', '.join(parameters) or 'the base'})"


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: a point with a seed. `scenario` is JSON; `weight` is a relative estimate of its cost."""

    run_id: str
    point: Point
    seed: int
    scenario: str
    weight: float
    receivers: int
    backend: str = "sim"


@dataclass(slots=True)
class SweepPlan:
    """The points and runs of a sweep file at `path`."""

    sweep: Sweep
    path: Path
    base: dict[str, Any] = field(init=False)
    more: list[tuple[Value, ...]] = field(default_factory=list)
    """Values that refinement added to its axis, by round."""
    _owners: dict[tuple[str, str], str] = field(init=False, default_factory=dict)
    """The first point with a scenario and a backend, by these."""

    def __post_init__(self) -> None:
        self._check_names()
        self._check_keys()
        if isinstance(self.sweep.scenario, str):
            self.base = read(self._base_file(self.sweep.scenario))
        else:
            self.base = {"name": self.sweep.name, **copy.deepcopy(self.sweep.scenario)}
            complete(self.base, self.path)
        for key, value in self.sweep.set.items():
            self._put(self.base, key, value, f"set.{key}")

    def _base_file(self, wanted: str) -> Path:
        """Return the file of the base scenario.

        A copy of the sweep file in a folder of results has the base beside it, where the path to the scenario leads nowhere.
        """
        folder, is_copy = self.path.parent, (self.path.parent / "plan.json").is_file()
        if is_copy and Path(wanted).suffix and not (folder / wanted).is_file():
            return folder / "base.yaml"
        return find_scenario(wanted, folder)

    def _check_names(self) -> None:
        """ConfigError for names of axes that options and SQL can't tell apart, or that are not those of their columns."""
        for key, name in [*(("axes", name) for name in self.sweep.axes), *(("cases", name) for name in self.sweep.cases)]:
            composed = normalize("NFC", name)
            if name != composed:
                wrong = f"its accents are characters of their own, so that another program writes it {composed!a}; this form"
                raise ConfigError(f"{self.path}: {key}: value {name!a} is not allowed; {wrong} (NFC)")
        known: dict[str, str] = {}
        for name in self.sweep.axes:
            column = name.replace(".", "__")
            if name == _CASE:
                wrong = "it is the name of the axis of `cases`"
            elif not all(part.strip() for part in name.split(".")) or not _AXIS_NAME.fullmatch(name):
                wrong = "a name has letters between its dots, and no commas, equals signs, quotes or control characters"
            elif name != name.strip():
                wrong = "a name neither begins nor ends with a space"
            elif column.replace("__", ".") != name:
                wrong = "in columns __ stands for a dot; another name, with the key of the scenario as `key`"
            elif name.lower() in known:
                wrong = f"SQL does not tell it from {known[name.lower()]!r}"
            else:
                known[name.lower()] = name
                continue
            raise ConfigError(f"{self.path}: axes: value {name!r} is not allowed; {wrong}")

    def _check_keys(self) -> None:
        """ConfigError for the seed as a key, and for a key of two axes or of an axis and a case: only the last would count."""
        sweep = self.sweep
        of_cases = [(f"cases.{case}.{key}", key) for case, settings in sweep.cases.items() for key in settings]
        of_axes = [(f"axes.{name}", key) for name in sweep.axes for key in self._keys(name)]
        owners = {key: origin for origin, key in of_cases}
        for origin, key in of_axes:
            if key in owners:
                also = f"{owners[key]} sets it, too, and one of them may"
                raise ConfigError(f"{self.path}: {origin}: key {key!r} is not allowed; {also}")
            owners[key] = origin
        for origin, key in [*((f"set.{key}", key) for key in sweep.set), *of_cases, *of_axes]:
            if key == "seed":
                allowed = "`seed` and `replications` of the sweep file itself say which seeds are run"
                raise ConfigError(f"{self.path}: {origin}: key 'seed' is not allowed; {allowed}")

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
        """Upper bound on the number of runs, computed without expanding them; points removed by `leave_out` count."""
        sweep = self.sweep
        points = sweep.sample.points if sweep.sample else prod(len(level) for level in self._levels())
        if sweep.refine:
            others = points // len(sweep.axes[sweep.refine.axis].grid())
            points += others * sweep.refine.rounds * sweep.refine.points
        return points * max(1, len(sweep.cases)) * (sweep.until.most if sweep.until else sweep.replications)

    @property
    def axis_types(self) -> dict[str, str]:
        """Column type of each axis."""
        return {name: self._kind(axis) for name, axis in self.sweep.axes.items()}

    @staticmethod
    def _kind(axis: Axis) -> str:
        if axis.values is None:
            return "long" if axis.whole else "double"
        return kind_of(axis.values)

    def points(self) -> Iterator[Point]:
        """Yield every point in a deterministic order; points added by refinement come last."""
        conditions = [Condition(text, self.sweep.names) for text in self.sweep.leave_out]
        index = 0
        for case, values in self._combinations():
            numbers = _numbers(case, values)
            if not any(condition.holds(numbers) for condition in conditions):
                yield Point(index, case, values)
                index += 1

    def idle_conditions(self) -> tuple[str, ...]:
        """Return the conditions of `leave_out` that hold at no combination of the axes, as with a unit that was forgotten."""
        idle = [Condition(text, self.sweep.names) for text in self.sweep.leave_out]
        for case, values in self._combinations() if idle else ():
            numbers = _numbers(case, values)
            idle = [condition for condition in idle if not condition.holds(numbers)]
            if not idle:
                break
        return tuple(condition.text for condition in idle)

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
        """Return the values of each axis or group of zipped axes; `refined` replaces the values of the refined axis."""
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
        """Return `count` runs of a point from replication `first` (from 0); ConfigError if the scenario is invalid."""
        data = copy.deepcopy(self.base)
        for key, setting in (self.sweep.cases[point.case] if point.case is not None else {}).items():
            self._put(data, key, setting, f"cases.{point.case}.{key}")
        for name, value in point.values.items():
            for key in self._keys(name):
                self._put(data, key, value, f"axes.{name}")
        resolve_in(data, self.path.parent)
        data["seed"] = self.sweep.seed
        try:
            scenario = parse(data, f"{self.path}: {point}")
        except ConfigError as error:
            raise ConfigError(f"{error}{self._hint(str(error))}") from error
        weight, receivers = self._measured(scenario, point)
        backend = str(point.values.get(BACKEND, self.sweep.backend))
        made = []
        repeats = self._repeats(scenario.digest(), backend, point)
        for seed in range(self.sweep.seed + first, self.sweep.seed + first + count):
            digest = scenario.model_copy(update={"seed": seed}).digest()
            # Keys keep their order: it decides the order of nodes, and which of several weighted sizes a random number selects.
            text = json.dumps(data | {"seed": seed}, separators=(",", ":"))
            made.append(SweepRun(self._run_id(digest, backend, repeats), point, seed, text, weight, receivers, backend))
        return made

    def _hint(self, error: str) -> str:
        """Return a hint to `whole: true` if an error is about a range of fractions; else an empty text."""
        ranges = [name for name, axis in self.sweep.axes.items() if axis.values is None and not axis.whole]
        about = [name for name in ranges if _WHOLE.search(error) and any(f": {key}: " in error for key in self._keys(name))]
        return "".join(f" (axes.{name}: `whole: true` rounds the values of the range)" for name in about)

    def _keys(self, name: str) -> Sequence[str]:
        return () if name == BACKEND else self.sweep.axes[name].keys(name)

    def _put(self, data: dict[str, Any], key: str, value: object, origin: str) -> None:
        try:
            put(data, key.split("."), copy.deepcopy(value), f"{key}={value}")
        except UsageError as error:
            raise ConfigError(f"{self.path}: {origin}: {str(error).removeprefix('--set: ')}") from error

    def _repeats(self, digest: str, backend: str, point: Point) -> str:
        """Return text that tells a point from an earlier one with the same scenario; empty if there is none.

        Two cases may be spelled differently and mean the same. Each has rows of its own, since a row names one point.
        """
        values = {name: number_of(value) for name, value in point.values.items()}
        own = json.dumps([point.case, values], sort_keys=True)
        return "" if self._owners.setdefault((digest, backend), own) == own else own

    def _run_id(self, digest: str, backend: str, repeats: str) -> str:
        """Return the run id: a digest of scenario, backend, what is kept, and code version.

        What is kept is part of the id, so that a run stored without its time series does not stand for one with it.
        `repeats` is not empty for points that repeat the scenario of an earlier one.
        """
        keep = self.sweep.keep
        kept = [keep.receivers, keep.series, *keep.captures]
        named = json.dumps([digest, backend, kept, code_version(), *([repeats] if repeats else [])])
        return sha256(named.encode()).hexdigest()[:32]

    def _measured(self, scenario: Scenario, point: Point) -> tuple[float, int]:
        """Return (relative cost, number of potential receivers); the cost is roughly packets times receivers.

        ConfigError for nodes and links to capture that the network of the point does not have.
        """
        topology = scenario.build_topology()
        for name in self.sweep.keep.captures:
            try:
                check_point(topology, name)
            except UsageError as error:
                raise ConfigError(f"{self.path}: {point}: keep.captures: value {error}") from error
        receivers = max(1, sum(map(topology.size, topology.host_nodes)) - len(scenario.senders))
        packets = size_of(scenario).packets
        return float((packets + 50) * (20 + receivers**0.8)), receivers


def _numbers(case: str | None, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return what conditions compare at a point: its values in base units, and its case."""
    return {name: number_of(value) for name, value in values.items()} | {"case": case or ""}
