"""The sweep file: a base scenario, axes, replications, and what is kept of the results."""

from collections.abc import Sequence
from functools import cache
from math import exp, isfinite, log
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from experiments.analysis.formulas import parse_formula
from experiments.scenario.files import read_yaml
from experiments.scenario.suggestion import one_of
from experiments.scenario.validation_errors import validated
from experiments.sweep.spec.conditions import Condition
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.quantities import Value, dimension_of, number_of
from protocols.errors import ConfigError, UsageError, shown
from topologies.units import Duration, Fraction, Size

__all__ = ["BACKEND", "Axis", "Keep", "Refine", "Sample", "Sweep", "Until", "load_sweep", "sweep_schema"]

MOST_VALUES = 100_000
BACKENDS = ("sim", "emu")
BACKEND = "backend"
"""Name of the axis that selects the backend of a run instead of a scenario key."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Axis(_Strict):
    """One varied parameter: a list of values, or a range. A plain list in the file is `{values: [...]}`."""

    key: str | tuple[str, ...] | None = Field(default=None, description="scenario keys the axis sets (default: its name)")
    values: tuple[Value, ...] | None = Field(default=None, description="the values, one by one")
    low: Value | None = Field(default=None, alias="from", description="start of a range")
    high: Value | None = Field(default=None, alias="to", description="end of a range, inclusive")
    steps: int = Field(default=5, ge=2, le=MOST_VALUES, description="number of values of a range")
    scale: Literal["linear", "log"] = Field(default="linear", description="spacing of a range: equal steps or equal ratios")
    whole: bool = Field(default=False, description="round the values of a range to whole numbers")

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, data: Any) -> Any:
        found = {"values": data} if isinstance(data, (list, tuple)) else data
        values = found.get("values") if isinstance(found, dict) else None
        for value in values if isinstance(values, (list, tuple)) else ():
            if not isinstance(value, (bool, int, float, str)):
                raise ValueError(f"{shown(value)} is no number, text, true or false; keys that change together are `cases`")
        return found

    @model_validator(mode="after")
    def _complete(self) -> "Axis":
        if self.values is not None:
            if not self.values:
                raise ValueError("values is empty; at least one value")
            if self.low is not None or self.high is not None:
                raise ValueError("values and a range are both set; exactly one of them")
            self._check_distinct(self.values)
            return self
        if self.low is None or self.high is None:
            raise ValueError("values, or from and to, are required")
        low, high = self.ends
        if not low < high or (self.scale == "log" and low <= 0):
            raise ValueError(
                "from must be less than to" + (", and greater than 0 on a log scale" if self.scale == "log" else "")
            )
        return self

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of the scenario that the axis of this name sets."""
        return (name,) if self.key is None else (self.key,) if isinstance(self.key, str) else self.key

    @staticmethod
    def _check_distinct(values: Sequence[Value]) -> None:
        """ValueError for a value that occurs twice, spelled differently perhaps: results could not tell their runs apart."""
        known: dict[Value, Value] = {}
        for value in values:
            number = number_of(value)
            # A column that has texts beside them stores true and false as texts.
            key = str(number) if isinstance(number, bool) else number
            if key in known:
                raise ValueError(f"{known[key]!r} and {value!r} are equal; each value once")
            known[key] = value

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of a range as numbers; ValueError if they are none."""
        ends = [number_of(end) for end in (self.low, self.high) if end is not None]
        if len(ends) != 2 or any(isinstance(end, (str, bool)) for end in ends):
            raise ValueError("from and to must be numbers or quantities, like 1% or 10ms")
        low, high = float(ends[0]), float(ends[1])
        if not isfinite(high - low):
            raise ValueError("from and to must be finite, and so must their difference")
        return low, high

    def at(self, fraction: float) -> Value:
        """Return the value at `fraction` (0 to 1) of the axis; of a list, the element at that position."""
        if self.values is not None:
            return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]
        low, high = self.ends
        value = exp(log(low) + fraction * (log(high) - log(low))) if self.scale == "log" else low + fraction * (high - low)
        return self.rounded(min(max(value, low), high))

    def rounded(self, value: float) -> Value:
        """Round to nine significant digits, or to an integer if `whole`."""
        return round(value) if self.whole else float(f"{value:.9g}")

    def grid(self) -> list[Value]:
        """Return all values in order, without duplicates."""
        if self.values is not None:
            return list(self.values)
        return list(dict.fromkeys(self.at(step / (self.steps - 1)) for step in range(self.steps)))


def _or_lists(schema: dict[str, Any]) -> None:
    """Allow a list of values instead of an axis in the JSON Schema of axes."""
    values = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}
    schema["additionalProperties"] = {"anyOf": [values, schema["additionalProperties"]]}


def _metric(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"no such metric; {one_of(name, METRICS)}")
    return name


class Sample(_Strict):
    """Points spread over the axes instead of all combinations."""

    method: Literal["latin-hypercube", "sobol"] = Field(default="latin-hypercube", description="sampling method")
    points: int = Field(ge=1, le=1_000_000, description="number of points")
    seed: int = Field(default=1, ge=0, description="seed of the sampling")


class Until(_Strict):
    """Sequential stopping: replicate a point until a confidence interval is narrow enough."""

    metric: str = Field(description="metric whose mean is estimated", json_schema_extra={"enum": [*METRICS]})
    width: Fraction = Field(gt=0, description="largest half width of the interval, as a fraction of the mean")
    confidence: Fraction = Field(default=0.95, gt=0.5, lt=1.0, description="confidence level of the interval")
    most: int = Field(default=100, ge=2, le=1_000_000, description="maximum replications of a point")

    _known = field_validator("metric")(_metric)


class Refine(_Strict):
    """Adaptive refinement: add values on one axis where a metric changes most."""

    axis: str = Field(description="axis to refine; its values are numbers")
    metric: str = Field(description="metric whose change selects the new values", json_schema_extra={"enum": [*METRICS]})
    rounds: int = Field(default=2, ge=1, le=10, description="number of refinement rounds")
    points: int = Field(default=2, ge=1, le=100, description="new values per round")

    _known = field_validator("metric")(_metric)


class Keep(_Strict):
    """Data stored beside the metrics of a run."""

    receivers: bool = Field(default=True, description="one row per run and receiver")
    series: Duration | None = Field(default=None, gt=0.0, description="interval of the time series; simulator only")
    captures: tuple[str, ...] = Field(
        default=(), description="nodes and links of which each run writes a pcapng file; simulator only"
    )


class Sweep(_Strict):
    """Contents of a sweep file."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$", description="name of the sweep, and of its default folder")
    scenario: str | dict[str, Any] = Field(description="base scenario: a file (relative to this), a ready one, or its contents")
    set: dict[str, Any] = Field(default={}, description="values replaced in the base scenario, by key.path")
    axes: dict[str, Axis] = Field(
        default={},
        description="varied parameters: by key.path of the scenario, or by a name with a key",
        json_schema_extra=_or_lists,
    )
    zip: tuple[tuple[str, ...], ...] = Field(default=(), description="axes varied together, value by value")
    cases: dict[str, dict[str, Any]] = Field(default={}, description="named variants: values by key.path")
    leave_out: tuple[str, ...] = Field(
        default=(), description="conditions over axes and case; points where one holds are excluded"
    )
    sample: Sample | None = Field(default=None, description="sample the axes instead of running all combinations")
    replications: int = Field(default=1, ge=1, le=1_000_000, description="runs of each point, with consecutive seeds")
    seed: int = Field(default=1, ge=0, lt=2**62, description="the first seed")
    until: Until | None = Field(default=None, description="replicate each point until a confidence interval is narrow enough")
    refine: Refine | None = Field(default=None, description="add values to an axis where a metric changes most")
    keep: Keep = Field(default=Keep(), description="what is stored beside the metrics")
    metrics: tuple[str, ...] = Field(
        default=(), description="metrics that the report and the analysis show (default: the main ones)"
    )
    theory: tuple[str, ...] = Field(default=(), description="formulas that the report compares with the results")
    backend: Literal["sim", "emu"] = Field(default="sim", description="where runs execute; emulations run one at a time")
    time_limit: Duration = Field(default=600.0, gt=0.0, description="wall-clock limit of a run in seconds")
    memory: Size = Field(default=4_000_000_000, gt=0, description="memory limit of a run in bytes")

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_metric, names))

    @model_validator(mode="after")
    def _fits(self) -> "Sweep":
        names = self.names
        for n, group in enumerate(self.zip):
            self._check_zip(n, group)
        dimensions = {name: dimension_of(axis.values or (axis.low, axis.high)) for name, axis in self.axes.items()}
        for n, text in enumerate(self.leave_out):
            try:
                Condition(text, names, dimensions)
            except ConfigError as error:
                raise ConfigError(f"leave_out.{n}: {error}") from error
        self._check_theory()
        if self.sample is not None and (not self.axes or self.zip):
            raise ConfigError("sample: value is not allowed; it requires axes, none of them zipped")
        if self.refine is not None:
            self._check_refine(self.refine)
        if self.until is not None and self.until.most < max(2, self.replications):
            raise ConfigError(f"until.most: value {self.until.most} is not allowed; at least replications, {self.replications}")
        self._check_backends()
        if "emu" in self.backends and (self.keep.series or self.keep.captures):
            raise ConfigError("keep: series and captures are not allowed with backend emu; only the simulator writes them")
        return self

    @property
    def backends(self) -> list[Value]:
        """Backends of the runs: values of the axis `backend`, else the key `backend`."""
        return self.axes[BACKEND].grid() if BACKEND in self.axes else [self.backend]

    @property
    def names(self) -> list[str]:
        """Names that conditions may use."""
        return [*self.axes, "case"] if self.cases else list(self.axes)

    def _check_backends(self) -> None:
        if BACKEND in self.axes and self.axes[BACKEND].key is not None:
            raise ConfigError("axes.backend.key: is not allowed; this axis selects the backend of a run")
        for value in self.backends:
            if value not in BACKENDS:
                raise ConfigError(f"axes.backend: value {value!r} is not allowed; one of {', '.join(BACKENDS)}")

    def _check_theory(self) -> None:
        for n, text in enumerate(self.theory):
            try:
                parse_formula(text)
            except UsageError as error:
                raise ConfigError(f"theory.{n}: {str(error).removeprefix('--theory: ')}") from error

    def _check_zip(self, n: int, group: tuple[str, ...]) -> None:
        for name in group:
            if name not in self.axes:
                raise ConfigError(f"zip.{n}: value {name!r} is not allowed; one of the axes {', '.join(self.axes)}")
            if sum(name in other for other in self.zip) > 1:
                raise ConfigError(f"zip.{n}: value {name!r} is not allowed; it is zipped twice")
        lengths = {name: len(self.axes[name].grid()) for name in group}
        if len(set(lengths.values())) > 1:
            lengths_text = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ConfigError(f"zip.{n}: zipped axes must have equally many values; {lengths_text}")

    def _check_refine(self, refine: Refine) -> None:
        if refine.axis not in self.axes:
            raise ConfigError(f"refine.axis: value {refine.axis!r} is not allowed; one of the axes {', '.join(self.axes)}")
        if self.sample is not None or any(refine.axis in group for group in self.zip):
            raise ConfigError(
                f"refine.axis: value {refine.axis!r} is not allowed; an axis that is not zipped, in a sweep without sample"
            )
        numbers = [number_of(value) for value in self.axes[refine.axis].grid()]
        if len(numbers) < 2 or any(isinstance(number, (str, bool)) for number in numbers):
            raise ConfigError(f"refine.axis: value {refine.axis!r} is not allowed; it must have two or more numeric values")


def load_sweep(path: Path) -> Sweep:
    """Read a sweep from a YAML file; ConfigError is one line with file, key, value and what is allowed."""
    data = read_yaml(path)
    if "topology" in data and "scenario" not in data:
        raise ConfigError(f"{path}: is a scenario and no sweep; run it with: mcastlab run {quote(str(path))}")
    return validated(Sweep, data, path, sweep_schema)


@cache
def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema of a sweep file."""
    return Sweep.model_json_schema(by_alias=True)
