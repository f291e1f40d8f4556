"""What a link loses: the one description for simulator and emulator.

A channel is data (a pydantic model named by `model`) that makes samplers; a sampler is asked packet by packet. What a link does
besides (delay, queue, duplication, corruption, fragments) is in `topologies.delays`, `topologies.queues` and `topologies.line`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, WithJsonSchema, model_validator

from protocols.errors import ConfigError
from topologies.channel_file import read_channel
from topologies.content_loss import ContentGroupLoss, ContentLinkLoss
from topologies.draws import member_keys
from topologies.losses import GroupLoss, LinkLoss, Siblings
from topologies.memory import BurstLoss, OneLink, SequenceLoss
from topologies.script import Drop, Script
from topologies.units import Fraction, format_fraction

__all__ = [
    "CHANNELS",
    "Bernoulli",
    "Channel",
    "ContentLoss",
    "GilbertElliott",
    "LinkSampler",
    "Loss",
    "Perfect",
    "Periodic",
    "Recorded",
    "Scripted",
]


class LinkSampler(Protocol):
    """The losses of one link."""

    def lost(self, identity: int | None) -> bool:
        """Is the packet arriving now lost? Counts its occurrence."""


class _Channel(BaseModel):
    """What all channels share."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    plain: ClassVar[bool] = True
    """Does the identity of a packet say enough to decide? A scripted list asks for the kind of the message too."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The share of packets lost in the long run."""

    def link(self, key: int) -> LinkSampler | None:
        """The sampler of one link; None where nothing is ever lost."""
        siblings = self._siblings(np.array([key], np.uint64))
        return None if siblings is None else OneLink(siblings)

    def bundle(self, key: int, count: int) -> Siblings | None:
        """The sampler of `count` sibling links with keys `extend(key, member)`; None where nothing is ever lost."""
        return self._siblings(member_keys(key, count))

    def _siblings(self, keys: Any) -> Siblings | None:
        """Samplers of links with these keys."""
        del keys
        return None


class Perfect(_Channel):
    """Loses nothing."""

    model: Literal["perfect"] = "perfect"

    @property
    def rate(self) -> float:
        """0."""
        return 0.0

    def link(self, key: int) -> LinkLoss | None:
        """No sampler; each member of a group that speaks asks for one."""
        del key
        return None

    def __str__(self) -> str:
        return "no loss"


class Bernoulli(_Channel):
    """Loses each packet on its own with probability `p`."""

    model: Literal["bernoulli"] = "bernoulli"
    p: Fraction

    @property
    def rate(self) -> float:
        """`p`."""
        return self.p

    def link(self, key: int) -> LinkSampler | None:
        """The sampler of one link; None where nothing is ever lost."""
        return LinkLoss(key, self.p) if self.p else None

    def _siblings(self, keys: Any) -> Siblings | None:
        return GroupLoss(keys, self.p) if self.p else None

    def __str__(self) -> str:
        return f"{format_fraction(self.p)} loss"


class ContentLoss(_Channel):
    """Loses each content packet on its own with probability `p`; NACKs and all other control packets pass."""

    model: Literal["content"] = "content"
    p: Fraction

    @property
    def rate(self) -> float:
        """`p`."""
        return self.p

    def link(self, key: int) -> LinkLoss | None:
        """The sampler of one link; None where nothing is ever lost."""
        return ContentLinkLoss(key, self.p) if self.p else None

    def _siblings(self, keys: Any) -> Siblings | None:
        return ContentGroupLoss(keys, self.p) if self.p else None

    def __str__(self) -> str:
        return f"{format_fraction(self.p)} loss of content"


class GilbertElliott(_Channel):
    """Loses in bursts: a chain of two states goes good to bad with `p` and back with `r` at each packet.

    A packet is lost with `loss_good` or `loss_bad`. `burst` and `gap` (mean lengths of runs of lost and of passed packets) are
    another way to write it: r = 1 / burst, p = 1 / gap, all lost in bad, none in good.
    """

    model: Literal["gilbert-elliott"] = "gilbert-elliott"
    p: Fraction = Field(description="probability of good to bad, per packet")
    r: Annotated[Fraction, Field(gt=0)] = Field(description="probability of bad to good, per packet")
    loss_bad: Fraction = Field(default=1.0, description="probability of loss in the bad state")
    loss_good: Fraction = Field(default=0.0, description="probability of loss in the good state")

    @model_validator(mode="before")
    @classmethod
    def _runs(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.keys() & {"burst", "gap"}:
            return data
        others = sorted(data.keys() - {"model", "burst", "gap"})
        if others or not data.keys() >= {"burst", "gap"}:
            raise ValueError(f"burst and gap stand together and alone, without {', '.join(others) or 'the other missing'}")
        for name in ("burst", "gap"):
            if not isinstance(data[name], (int, float)) or isinstance(data[name], bool) or not 1 <= data[name] < 1e12:
                raise ValueError(f"{name} {data[name]!r} is not a mean number of packets of at least 1")
        return {"model": cls.model_fields["model"].default, "p": 1 / data["gap"], "r": 1 / data["burst"]}

    @property
    def bad(self) -> float:
        """The share of packets that find the bad state."""
        return self.p / (self.p + self.r)

    @property
    def rate(self) -> float:
        """The share of packets lost."""
        return self.bad * self.loss_bad + (1 - self.bad) * self.loss_good

    def autocorrelation(self, lag: int) -> float:
        """Correlation of the fates of two packets `lag` apart; 0 for a constant rate."""
        rate, bad = self.rate, self.bad
        spread = bad * (1 - bad) * (self.loss_bad - self.loss_good) ** 2
        return float(spread * (1 - self.p - self.r) ** lag / (rate * (1 - rate))) if 0 < rate < 1 else 0.0

    @property
    def mean_runs(self) -> tuple[float, float]:
        """Mean length of runs of lost packets and of passed packets; needs a rate between 0 and 1."""
        rate = self.rate
        ends = (rate - rate**2) * (1 - self.autocorrelation(1))
        return rate / ends, (1 - rate) / ends

    def _siblings(self, keys: Any) -> Siblings | None:
        return BurstLoss(keys, self.p, self.r, self.loss_bad, self.loss_good) if self.rate else None

    def __str__(self) -> str:
        if not 0 < self.rate < 1:
            return f"{format_fraction(self.rate)} loss"
        return f"{format_fraction(round(self.rate, 6))} loss in bursts of {self.mean_runs[0]:.4g}"


class _Sequence(_Channel):
    """What periodic and recorded losses share."""

    shift: bool = Field(default=False, strict=True, description="begin at a place of its own on each link, object and kind")

    @property
    @abstractmethod
    def fates(self) -> list[bool]:
        """One round of the sequence, true where a packet is lost."""

    @property
    def rate(self) -> float:
        """The share of packets lost."""
        return sum(self.fates) / len(self.fates)

    def _siblings(self, keys: Any) -> Siblings | None:
        fates = np.array(self.fates, np.bool_)
        return SequenceLoss(keys, fates, self.shift) if fates.any() else None


class Periodic(_Sequence):
    """Loses every `every`-th packet, beginning with the `first`-th (else the `every`-th)."""

    model: Literal["periodic"] = "periodic"
    every: int = Field(ge=1, le=1_000_000, strict=True, description="one packet in so many is lost")
    first: int | None = Field(default=None, ge=1, strict=True, description="which one of these; none: the last")

    @model_validator(mode="after")
    def _within(self) -> "Periodic":
        if self.first is not None and self.first > self.every:
            raise ValueError(f"first {self.first} is not one of {self.every} packets")
        return self

    @property
    def fates(self) -> list[bool]:
        """One round of the sequence, true where a packet is lost."""
        lost = (self.every if self.first is None else self.first) - 1
        return [place == lost for place in range(self.every)]

    def __str__(self) -> str:
        return f"one of {self.every} lost"


class Recorded(_Sequence):
    """Replays a recording, over and over: `runs` are lengths of runs of packets that passed, were lost, passed, and so on."""

    model: Literal["recorded"] = "recorded"
    runs: tuple[Annotated[int, Field(ge=0, strict=True)], ...] = Field(
        min_length=1, description="packets passed, lost, passed, lost ..."
    )

    @model_validator(mode="after")
    def _lasts(self) -> "Recorded":
        if not 0 < sum(self.runs) <= 100_000_000:
            raise ValueError("runs: 1 to 100,000,000 packets together")
        return self

    @cached_property
    def fates(self) -> list[bool]:
        """One round of the sequence, true where a packet is lost."""
        return [bool(number & 1) for number, length in enumerate(self.runs) for _ in range(length)]

    @property
    def rate(self) -> float:
        """The share of packets lost."""
        return sum(self.runs[1::2]) / sum(self.runs)

    @classmethod
    def of(cls, fates: Sequence[bool], *, shift: bool = False) -> "Recorded":
        """The channel that replays these fates, true where a packet is lost."""
        runs, last = [0], False
        for lost in fates:
            if lost != last:
                runs.append(0)
                last = lost
            runs[-1] += 1
        return cls(runs=tuple(runs), shift=shift)

    def __str__(self) -> str:
        return f"{format_fraction(round(self.rate, 6))} loss as recorded over {sum(self.runs)} packets"


class Scripted(_Channel):
    """Loses exactly the packets listed."""

    plain: ClassVar[bool] = False
    model: Literal["scripted"] = "scripted"
    drops: tuple[Drop, ...] = Field(description="which packets are lost")

    @property
    def rate(self) -> float:
        """0 in the long run: the list ends."""
        return 0.0

    def script(self, member: int) -> Script:
        """The sampler of one link; `member` is the place in a counted group."""
        return Script(self.drops, member)

    def __str__(self) -> str:
        return f"{len(self.drops)} scripted drops"


Channel: TypeAlias = Perfect | Bernoulli | ContentLoss | GilbertElliott | Periodic | Recorded | Scripted
CHANNELS: dict[str, type[Channel]] = {
    "perfect": Perfect,
    "bernoulli": Bernoulli,
    "content": ContentLoss,
    "gilbert-elliott": GilbertElliott,
    "periodic": Periodic,
    "recorded": Recorded,
    "scripted": Scripted,
}
"""Every channel by the name a user writes as `model`."""


def _spell_out(value: Any) -> Any:
    """`1%` is short for `{model: bernoulli, p: 1%}`, and `{file: F}` for what stands in the file."""
    if isinstance(value, dict) and "file" in value:
        try:
            return read_channel(value["file"]) | {key: item for key, item in value.items() if key != "file"}
        except ConfigError as error:
            raise ValueError(str(error)) from error
    return value if isinstance(value, (dict, BaseModel)) else {"model": "bernoulli", "p": value}


Loss: TypeAlias = Annotated[
    Annotated[Channel, Discriminator("model")],
    BeforeValidator(_spell_out),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$"},
                {"type": "number", "minimum": 0, "maximum": 1},
                *(kind.model_json_schema() for kind in CHANNELS.values() if kind is not Scripted),
                {
                    "type": "object",
                    "properties": {"model": {"const": "scripted"}, "drops": {"type": "array", "items": {"type": "object"}}},
                    "required": ["model", "drops"],
                },
                {
                    "type": "object",
                    "properties": {
                        "model": {"const": "gilbert-elliott"},
                        "burst": {"type": "number", "minimum": 1},
                        "gap": {"type": "number", "minimum": 1},
                    },
                    "required": ["model", "burst", "gap"],
                },
                {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]},
            ],
            "description": "loss like 1%, short for {model: bernoulli, p: 1%}; or any channel; or {file: a channel's file}",
        }
    ),
]
"""A channel, or its short form: a fraction like 1%, or the file of a channel."""
