"""Random propagation delays: uniform, normal, Pareto, recorded.

A model maps a uniform random number of the packet, and the packet's index in its sequence, to seconds. With `order: fifo`
packets are not reordered on the link; with `order: free` they may be.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from protocols.errors import ConfigError
from topologies.choice import MODEL, PLAIN, PLAIN_OR_MODEL
from topologies.input_file import read_text
from topologies.units import Duration, format_duration, parse_duration

__all__ = ["AnyDelay", "DelayModel", "NormalDelay", "ParetoDelay", "TraceDelay", "UniformDelay", "longer"]

_TINY = 2.0**-54


@lru_cache(maxsize=64)
def _quantiles(mean: float, sd: float) -> Callable[[float], float]:
    """Return the quantile function of a normal distribution."""
    return NormalDist(mean, sd).inv_cdf


class _Delay(BaseModel):
    """Base of all delay models."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _places: ClassVar[tuple[str, ...]]
    """Names of the fields to which a longer line adds."""
    order: Literal["fifo", "free"] = Field(
        default="fifo", description="fifo: packets stay in order; free: packets may be reordered."
    )

    @abstractmethod
    def sample(self, u: float, place: int) -> float:
        """Return the delay in seconds of a packet with uniform random number 0 <= u < 1 and index `place` (from 0)."""

    def sample_all(self, uniforms: Sequence[float], places: Sequence[int]) -> list[float]:
        """Return `sample` of several packets."""
        return [self.sample(u, place) for u, place in zip(uniforms, places, strict=True)]

    def longer(self, by: float) -> Self:
        """Return the model with `by` seconds added to every delay."""
        return self.model_copy(update={name: getattr(self, name) + by for name in self._places})


class UniformDelay(_Delay):
    """Uniformly distributed from `least` to `most`."""

    _places = ("least", "most")
    model: Literal["uniform"] = "uniform"
    least: Duration = Field(description="Lower bound.")
    most: Duration = Field(description="Upper bound.")

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
    """Normally distributed with `mean` and standard deviation `sd`; values below `least` become `least`."""

    _places = ("mean", "least")
    model: Literal["normal"] = "normal"
    mean: Duration = Field(description="Mean of the normal distribution.")
    sd: Annotated[Duration, Field(gt=0)] = Field(description="Standard deviation.")
    least: Duration = Field(default=0.0, description="Lower bound, to which smaller values are raised.")

    def sample(self, u: float, place: int) -> float:
        """See `_Delay`."""
        del place
        return max(self.least, _quantiles(self.mean, self.sd)(u or _TINY))

    def sample_all(self, uniforms: Sequence[float], places: Sequence[int]) -> list[float]:
        """See `_Delay`."""
        del places
        least, quantile = self.least, _quantiles(self.mean, self.sd)
        return [found if (found := quantile(u or _TINY)) > least else least for u in uniforms]


class ParetoDelay(_Delay):
    """`least` plus a Pareto (Lomax) distributed part: P(delay - least > x) = (1 + x / s) ** -shape.

    The scale s follows from the `mean`; the closer `shape` is to 1, the heavier is the tail.
    """

    _places = ("least", "mean")
    model: Literal["pareto"] = "pareto"
    least: Duration = Field(description="Lower bound.")
    mean: Duration = Field(description="Mean delay.")
    shape: float = Field(default=2.5, gt=1, lt=1000, description="Shape of the tail; the closer to 1, the heavier.")

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
    """Allow a `file` instead of `samples` in the JSON Schema of `TraceDelay`."""
    schema["properties"]["file"] = {"type": "string", "description": "File with one delay per line, instead of samples."}
    schema["required"] = ["model"]


class TraceDelay(_Delay):
    """Recorded delays, repeated periodically: `samples`, or a `file` with one per line. A packet takes the one of its index."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_or_file)
    _places = ()
    model: Literal["trace"] = "trace"
    samples: tuple[Duration, ...] = Field(min_length=1, description="Delays of consecutive packets.")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "file" not in data:
            return data
        try:
            lines = read_text(Path(str(data["file"]))).split("\n")
            samples = [parse_duration(line) for line in lines if line.strip()]
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            raise ValueError(f"file {data['file']} is not a list of delays ({error})") from error
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
    Annotated[Duration, Tag(PLAIN)] | Annotated[Annotated[DelayModel, Discriminator("model")], Tag(MODEL)],
    PLAIN_OR_MODEL,
]
"""A constant delay like 5ms, or a delay model."""


def longer(delay: float | DelayModel, by: float) -> float | DelayModel:
    """Return a constant delay or a delay model with `by` seconds added."""
    return delay + by if isinstance(delay, float) else delay.longer(by)
