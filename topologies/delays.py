"""Propagation delays that differ from packet to packet: uniform, normal, Pareto, recorded.

A model turns a packet's own uniform number, and its place among its kind, into seconds. With `order: fifo` a packet never
overtakes another on the link; with `order: free` it may.
"""

from abc import abstractmethod
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from protocols.errors import ConfigError
from topologies.choice import PLAIN_OR_MODEL
from topologies.units import Duration, format_duration, parse_duration

__all__ = ["AnyDelay", "DelayModel", "NormalDelay", "ParetoDelay", "TraceDelay", "UniformDelay", "longer"]

_TINY = 2.0**-54


class _Delay(BaseModel):
    """What all models share."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _places: ClassVar[tuple[str, ...]]
    """The fields that move with the length of the line."""
    order: Literal["fifo", "free"] = Field(default="fifo", description="may a packet overtake another (free) or not (fifo)")

    @abstractmethod
    def sample(self, u: float, place: int) -> float:
        """Seconds for a packet with uniform number 0 <= u < 1, which is number `place` (from 0) of its kind."""

    def longer(self, by: float) -> Self:
        """The model of a line that is longer by so many seconds."""
        return self.model_copy(update={name: getattr(self, name) + by for name in self._places})


class UniformDelay(_Delay):
    """Any delay from `least` to `most`."""

    _places = ("least", "most")
    model: Literal["uniform"] = "uniform"
    least: Duration
    most: Duration

    @model_validator(mode="after")
    def _ordered(self) -> "UniformDelay":
        if self.most < self.least:
            raise ValueError(f"most {format_duration(self.most)} is less than least {format_duration(self.least)}")
        return self

    def sample(self, u: float, place: int) -> float:
        """See `_Delay`."""
        del place
        return self.least + (self.most - self.least) * u


class NormalDelay(_Delay):
    """Normally distributed around `mean` with standard deviation `sd`; what falls below `least` becomes `least`."""

    _places = ("mean", "least")
    model: Literal["normal"] = "normal"
    mean: Duration
    sd: Annotated[Duration, Field(gt=0)]
    least: Duration = 0.0

    def sample(self, u: float, place: int) -> float:
        """See `_Delay`."""
        del place
        return max(self.least, NormalDist(self.mean, self.sd).inv_cdf(u or _TINY))


class ParetoDelay(_Delay):
    """At least `least`, and beyond it a Pareto (Lomax) tail: P(delay - least > x) = (1 + x / s) ** -shape.

    s follows from the `mean`; a shape near 1 has the heaviest tail.
    """

    _places = ("least", "mean")
    model: Literal["pareto"] = "pareto"
    least: Duration
    mean: Duration
    shape: float = Field(default=2.5, gt=1, lt=1000)

    @model_validator(mode="after")
    def _ordered(self) -> "ParetoDelay":
        if self.mean <= self.least:
            raise ValueError(f"mean {format_duration(self.mean)} is not more than least {format_duration(self.least)}")
        return self

    def sample(self, u: float, place: int) -> float:
        """See `_Delay`."""
        del place
        scale: float = (self.mean - self.least) * (self.shape - 1)
        return self.least + scale * float((1 - u) ** (-1 / self.shape) - 1)


def _or_file(schema: dict[str, Any]) -> None:
    """The JSON Schema of `TraceDelay`, in which a file stands for samples."""
    schema["properties"]["file"] = {"type": "string", "description": "a file with one delay to a line, instead of samples"}
    schema["required"] = ["model"]


class TraceDelay(_Delay):
    """Recorded delays, over and over: `samples`, or the `file` that has one to a line. A packet meets the one of its place."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_or_file)
    _places = ()
    model: Literal["trace"] = "trace"
    samples: tuple[Duration, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "file" not in data:
            return data
        try:
            lines = Path(str(data["file"])).read_text(encoding="utf-8").split("\n")
            samples = [parse_duration(line) for line in lines if line.strip()]
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            raise ValueError(f"file {data['file']} is no list of delays ({error})") from error
        return {key: value for key, value in data.items() if key != "file"} | {"samples": samples}

    def sample(self, u: float, place: int) -> float:
        """See `_Delay`."""
        del u
        return self.samples[place % len(self.samples)]

    def longer(self, by: float) -> Self:
        """See `_Delay`."""
        return self.model_copy(update={"samples": tuple(sample + by for sample in self.samples)})


DelayModel: TypeAlias = UniformDelay | NormalDelay | ParetoDelay | TraceDelay
AnyDelay: TypeAlias = Annotated[
    Annotated[Duration, Tag("plain")] | Annotated[Annotated[DelayModel, Discriminator("model")], Tag("model")],
    PLAIN_OR_MODEL,
]
"""A constant like 5ms, or a model by its name."""


def longer(delay: float | DelayModel, by: float) -> float | DelayModel:
    """The delay of a line that is longer by so many seconds."""
    return delay + by if isinstance(delay, float) else delay.longer(by)
