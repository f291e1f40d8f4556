"""The sweep file: a base scenario, what varies around it, how often, and what is kept of the results."""

from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from experiments.scenario.files import read_yaml
from experiments.scenario.validation_errors import validated
from experiments.sweep.spec.conditions import Condition
from experiments.sweep.spec.quantities import Value, number_of
from experiments.sweep.store.catalog import METRICS
from protocols.errors import ConfigError
from topologies.units import Duration, Size

__all__ = ["BACKEND", "Axis", "Keep", "Refine", "Sample", "Sweep", "Until", "load_sweep", "sweep_schema"]

MOST_VALUES = 100_000
BACKENDS = ("sim", "emu")
BACKEND = "backend"
"""An axis of this name says where a run is made, and sets no key of the scenario."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Axis(_Strict):
    """One thing that varies: a list of values, or a range. A plain list in the file is `{values: [...]}`."""

    key: str | tuple[str, ...] | None = Field(default=None, description="keys of the scenario it sets (default: its name)")
    values: tuple[Value, ...] | None = Field(default=None, description="the values, one by one")
    low: Value | None = Field(default=None, alias="from", description="a range begins here")
    high: Value | None = Field(default=None, alias="to", description="and ends here, included")
    steps: int = Field(default=5, ge=2, le=MOST_VALUES, description="number of values of a range")
    scale: Literal["linear", "log"] = Field(default="linear", description="equal steps, or equal ratios")
    whole: bool = Field(default=False, description="round the values of a range to whole numbers")

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, data: Any) -> Any:
        return {"values": data} if isinstance(data, (list, tuple)) else data

    @model_validator(mode="after")
    def _complete(self) -> "Axis":
        if self.values is not None:
            if not self.values:
                raise ValueError("it has no values; at least one")
            if self.low is not None or self.high is not None:
                raise ValueError("it has values and a range; one of both")
            if len(set(map(repr, self.values))) < len(self.values):
                raise ValueError("a value is there twice")
            return self
        if self.low is None or self.high is None:
            raise ValueError("it needs values, or from and to")
        low, high = self.ends
        if not low < high or (self.scale == "log" and low <= 0):
            raise ValueError(
                "from has to be less than to" + (", and more than 0 on a log scale" if self.scale == "log" else "")
            )
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """Of a range, as numbers."""
        ends = [number_of(end) for end in (self.low, self.high) if end is not None]
        if len(ends) != 2 or any(isinstance(end, (str, bool)) for end in ends):
            raise ValueError("from and to have to be numbers or quantities, like 1% or 10ms")
        return float(ends[0]), float(ends[1])

    def at(self, fraction: float) -> Value:
        """The value this far along the axis, 0 to 1: of a list by its place."""
        if self.values is not None:
            return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]
        low, high = self.ends
        value = exp(log(low) + fraction * (log(high) - log(low))) if self.scale == "log" else low + fraction * (high - low)
        return self.rounded(min(max(value, low), high))

    def rounded(self, value: float) -> Value:
        """With the digits worth writing; whole where that is asked for."""
        return round(value) if self.whole else float(f"{value:.9g}")

    def grid(self) -> list[Value]:
        """All values, each once, in order."""
        if self.values is not None:
            return list(self.values)
        return list(dict.fromkeys(self.at(step / (self.steps - 1)) for step in range(self.steps)))


def _metric(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"no such metric; one of {', '.join(METRICS)}")
    return name


class Sample(_Strict):
    """Points spread over the axes instead of all combinations."""

    method: Literal["latin-hypercube", "sobol"] = Field(default="latin-hypercube", description="how they are spread")
    points: int = Field(ge=1, le=1_000_000, description="how many")
    seed: int = Field(default=1, ge=0, description="another seed, other points")


class Until(_Strict):
    """Sequential stopping: replicate a point until a confidence interval is narrow enough."""

    metric: str = Field(description="whose mean is to be known")
    width: float = Field(gt=0, description="half width of the interval, relative to the mean")
    confidence: float = Field(default=0.95, gt=0.5, lt=1.0, description="of the interval (Student t)")
    most: int = Field(default=100, ge=2, le=1_000_000, description="replications of a point at the most")

    _known = field_validator("metric")(_metric)


class Refine(_Strict):
    """Further values on one axis, between those where a metric differs most."""

    axis: str = Field(description="which axis; its values are numbers")
    metric: str = Field(description="whose change decides")
    rounds: int = Field(default=2, ge=1, le=10, description="how often")
    points: int = Field(default=2, ge=1, le=100, description="new values in each round")

    _known = field_validator("metric")(_metric)


class Keep(_Strict):
    """What is kept beside the metrics of a run."""

    receivers: bool = Field(default=True, description="a row per run and receiver")
    series: Duration | None = Field(default=None, gt=0.0, description="time series of this interval; simulator only")
    captures: tuple[str, ...] = Field(default=(), description="pcapng of these nodes and links of each run; simulator only")


class Sweep(_Strict):
    """Everything a sweep file says."""

    name: str = Field(
        min_length=1, pattern=r"^[A-Za-z0-9._-]+$", description="what to call it; the default folder has this name"
    )
    scenario: str | dict[str, Any] = Field(
        description="the base: a scenario file (relative to this), a ready scenario, or a scenario itself"
    )
    set: dict[str, Any] = Field(default={}, description="values replaced in the base, by key.path")
    axes: dict[str, Axis] = Field(default={}, description="what varies: by key.path of the scenario, or a name with a key")
    zip: tuple[tuple[str, ...], ...] = Field(default=(), description="axes that go together, value by value")
    cases: dict[str, dict[str, Any]] = Field(default={}, description="named variants: values by key.path")
    leave_out: tuple[str, ...] = Field(
        default=(), description="conditions over axes and case; points where one holds are left out"
    )
    sample: Sample | None = Field(default=None, description="points spread over the axes instead of all combinations")
    replications: int = Field(default=1, ge=1, le=1_000_000, description="runs of each point, with seeds counting up")
    seed: int = Field(default=1, ge=0, lt=2**62, description="the first seed")
    until: Until | None = Field(default=None, description="go on replicating until an interval is narrow")
    refine: Refine | None = Field(default=None, description="add values to an axis where a metric changes most")
    keep: Keep = Field(default=Keep(), description="what is kept beside the metrics")
    theory: tuple[str, ...] = Field(default=(), description="formulas that its report lays over the results")
    backend: Literal["sim", "emu"] = Field(default="sim", description="where it runs; emulations run one at a time")
    time_limit: Duration = Field(default=600.0, gt=0.0, description="seconds of real time a run may take")
    memory: Size = Field(default=4_000_000_000, gt=0, description="memory a run may take")

    @model_validator(mode="after")
    def _fits(self) -> "Sweep":
        names = self.names
        for n, group in enumerate(self.zip):
            self._check_zip(n, group)
        for n, text in enumerate(self.leave_out):
            try:
                Condition(text, names)
            except ConfigError as error:
                raise ConfigError(f"leave_out.{n}: {error}") from error
        if self.sample is not None and (not self.axes or self.zip):
            raise ConfigError("sample: value is not allowed; it needs axes, and none of them zipped")
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
        """Where runs are made: what the axis of that name says, else `backend`."""
        return self.axes[BACKEND].grid() if BACKEND in self.axes else [self.backend]

    @property
    def names(self) -> list[str]:
        """What conditions may name."""
        return [*self.axes, "case"] if self.cases else list(self.axes)

    def _check_backends(self) -> None:
        if BACKEND in self.axes and self.axes[BACKEND].key is not None:
            raise ConfigError("axes.backend.key: is not allowed; this axis says where a run is made")
        for value in self.backends:
            if value not in BACKENDS:
                raise ConfigError(f"axes.backend: value {value!r} is not allowed; one of {', '.join(BACKENDS)}")

    def _check_zip(self, n: int, group: tuple[str, ...]) -> None:
        for name in group:
            if name not in self.axes:
                raise ConfigError(f"zip.{n}: value {name!r} is not allowed; one of the axes {', '.join(self.axes)}")
            if sum(name in other for other in self.zip) > 1:
                raise ConfigError(f"zip.{n}: value {name!r} is not allowed; it is zipped twice")
        lengths = {name: len(self.axes[name].grid()) for name in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ConfigError(f"zip.{n}: axes that go together have equally many values; {told}")

    def _check_refine(self, refine: Refine) -> None:
        if refine.axis not in self.axes:
            raise ConfigError(f"refine.axis: value {refine.axis!r} is not allowed; one of the axes {', '.join(self.axes)}")
        if self.sample is not None or any(refine.axis in group for group in self.zip):
            raise ConfigError(f"refine.axis: value {refine.axis!r} is not allowed; an axis of its own, without sample")
        numbers = [number_of(value) for value in self.axes[refine.axis].grid()]
        if len(numbers) < 2 or any(isinstance(number, (str, bool)) for number in numbers):
            raise ConfigError(
                f"refine.axis: value {refine.axis!r} is not allowed; it needs two or more values that are numbers"
            )


def load_sweep(path: Path) -> Sweep:
    """The sweep in a YAML file. ConfigError is one line with file, key, value and what is allowed."""
    return validated(Sweep, read_yaml(path), path, sweep_schema)


@cache
def sweep_schema() -> dict[str, Any]:
    """The JSON Schema of a sweep file."""
    return Sweep.model_json_schema(by_alias=True)
