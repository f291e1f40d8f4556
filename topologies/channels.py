"""Loss channels of links, common to the simulator and Mininet.

A channel is a pydantic model, chosen by its key `model`, that makes samplers; a sampler decides for each packet whether it is
lost. Delay, queues, duplication, corruption and fragments are in `topologies.delays`, `topologies.queues`, `topologies.line`.
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
from topologies.losses import GroupLoss, GroupSampler, LinkLoss
from topologies.member_losses import MemberLosses
from topologies.memory import GilbertElliottLoss, SequenceLoss, SingleLink
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
    """The loss sampler of one link."""

    def lost(self, identity: int | None) -> bool:
        """Return whether the packet arriving now is lost. Counts its occurrence."""


class _Channel(BaseModel):
    """Base of all channels."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    plain: ClassVar[bool] = True
    """Whether losses depend on packet identities only; a scripted list depends on message kinds, too."""
    loses_control: ClassVar[bool] = True
    """Whether the model can lose control packets, which have no identity."""
    is_independent: ClassVar[bool] = False
    """Whether it loses nothing, or each packet (or each with an identity) independently with probability `rate`."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """Long-run fraction of packets lost."""

    def link(self, key: int) -> LinkSampler | None:
        """Return the sampler of one link with this loss key; None if no packet can be lost."""
        group = self._group(np.array([key], np.uint64))
        return None if group is None else SingleLink(group)

    def group(self, key: int, count: int) -> GroupSampler | None:
        """Return the sampler of `count` links of a group with keys `extend(key, member)`; None if no packet can be lost."""
        return self._group(member_keys(key, count))

    def members(self, key: int, count: int) -> MemberLosses | None:
        """Return the losses of links that carry other packets each, of an independent channel; None if nothing can be lost.

        The keys are those of `group`.
        """
        return MemberLosses(key, count, self.rate, loses_control=self.loses_control) if self.rate else None

    def _group(self, keys: Any) -> GroupSampler | None:
        """Return the sampler of the links with these keys."""
        del keys
        return None


class Perfect(_Channel):
    """Loses nothing."""

    is_independent: ClassVar[bool] = True
    model: Literal["perfect"] = "perfect"

    @property
    def rate(self) -> float:
        """0."""
        return 0.0

    def link(self, key: int) -> LinkLoss | None:
        """Return None without building a sampler: every sending member of a group calls this."""
        del key
        return None

    def __str__(self) -> str:
        return "no loss"


class Bernoulli(_Channel):
    """Loses each packet independently with probability `p`."""

    is_independent: ClassVar[bool] = True
    model: Literal["bernoulli"] = "bernoulli"
    p: Fraction = Field(description="Loss probability, like 1%.")

    @property
    def rate(self) -> float:
        """`p`."""
        return self.p

    def link(self, key: int) -> LinkSampler | None:
        """Return the sampler of one link with this loss key; None if no packet can be lost."""
        return LinkLoss(key, self.p) if self.p else None

    def _group(self, keys: Any) -> GroupSampler | None:
        return GroupLoss(keys, self.p) if self.p else None

    def __str__(self) -> str:
        return f"{format_fraction(self.p)} loss"


class ContentLoss(_Channel):
    """Loses each content packet independently with probability `p`; NACKs and other control packets are not lost."""

    loses_control: ClassVar[bool] = False
    is_independent: ClassVar[bool] = True
    model: Literal["content"] = "content"
    p: Fraction = Field(description="Loss probability, like 1%.")

    @property
    def rate(self) -> float:
        """`p`."""
        return self.p

    def link(self, key: int) -> LinkLoss | None:
        """Return the sampler of one link with this loss key; None if no packet can be lost."""
        return ContentLinkLoss(key, self.p) if self.p else None

    def _group(self, keys: Any) -> GroupSampler | None:
        return ContentGroupLoss(keys, self.p) if self.p else None

    def __str__(self) -> str:
        return f"{format_fraction(self.p)} loss of content"


class GilbertElliott(_Channel):
    """Bursty loss: a Markov chain of two states, good and bad, that makes one transition per packet.

    In the good state a packet is lost with probability `loss_good`, in the bad one with `loss_bad`. It can also be given by
    `burst` and `gap`, the mean numbers of consecutive packets lost and not lost: r = 1 / burst, p = 1 / gap, loss_bad 1,
    loss_good 0.
    """

    model: Literal["gilbert-elliott"] = "gilbert-elliott"
    p: Fraction = Field(description="Probability per packet of the transition from good to bad.")
    r: Annotated[Fraction, Field(gt=0)] = Field(description="Probability per packet of the transition from bad to good.")
    loss_bad: Fraction = Field(default=1.0, description="Loss probability in the bad state.")
    loss_good: Fraction = Field(default=0.0, description="Loss probability in the good state.")

    @model_validator(mode="before")
    @classmethod
    def _runs(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.keys() & {"burst", "gap"}:
            return data
        others = sorted(data.keys() - {"model", "burst", "gap"})
        if others or not data.keys() >= {"burst", "gap"}:
            wrong = f"{', '.join(others)} not allowed" if others else "one is missing"
            raise ValueError(f"burst and gap must be given together and without other keys; {wrong}")
        for name in ("burst", "gap"):
            if not isinstance(data[name], (int, float)) or isinstance(data[name], bool) or not 1 <= data[name] < 1e12:
                raise ValueError(f"{name} {data[name]!r} is not a mean number of packets of at least 1")
        return {"model": cls.model_fields["model"].default, "p": 1 / data["gap"], "r": 1 / data["burst"]}

    @property
    def bad(self) -> float:
        """Stationary probability of the bad state."""
        return self.p / (self.p + self.r)

    @property
    def rate(self) -> float:
        """Long-run fraction of packets lost."""
        return self.bad * self.loss_bad + (1 - self.bad) * self.loss_good

    def autocorrelation(self, lag: int) -> float:
        """Return the correlation of the losses of two packets that are `lag` packets apart; 0 if none or all are lost."""
        rate, bad = self.rate, self.bad
        spread = bad * (1 - bad) * (self.loss_bad - self.loss_good) ** 2
        return float(spread * (1 - self.p - self.r) ** lag / (rate * (1 - rate))) if 0 < rate < 1 else 0.0

    @property
    def mean_runs(self) -> tuple[float, float]:
        """Mean numbers of consecutive packets (lost, not lost). The loss rate must be between 0 and 1, exclusively."""
        rate = self.rate
        ends = (rate - rate**2) * (1 - self.autocorrelation(1))
        return rate / ends, (1 - rate) / ends

    def _group(self, keys: Any) -> GroupSampler | None:
        return GilbertElliottLoss(keys, self.p, self.r, self.loss_bad, self.loss_good) if self.rate else None

    def __str__(self) -> str:
        if not 0 < self.rate < 1:
            return f"{format_fraction(self.rate)} loss"
        return f"{format_fraction(round(self.rate, 6))} loss in bursts of {self.mean_runs[0]:.4g}"


class _Sequence(_Channel):
    """Base of periodic and recorded losses: a sequence of losses that is repeated."""

    shift: bool = Field(
        default=False,
        strict=True,
        description="Whether each link, object and kind starts at a random position of the sequence.",
    )

    @property
    @abstractmethod
    def pattern(self) -> list[bool]:
        """One period of the sequence, true where a packet is lost."""

    @property
    def rate(self) -> float:
        """Long-run fraction of packets lost."""
        return sum(self.pattern) / len(self.pattern)

    def _group(self, keys: Any) -> GroupSampler | None:
        pattern = np.array(self.pattern, np.bool_)
        return SequenceLoss(keys, pattern, self.shift) if pattern.any() else None


class Periodic(_Sequence):
    """Loses one packet of every `every`, namely the `first`-th of them (default: the last)."""

    model: Literal["periodic"] = "periodic"
    every: int = Field(ge=1, le=1_000_000, strict=True, description="Period in packets, of which one is lost.")
    first: int | None = Field(
        default=None, ge=1, strict=True, description="Which packet of each period is lost (1 = first); none: the last."
    )

    @model_validator(mode="after")
    def _within(self) -> "Periodic":
        if self.first is not None and self.first > self.every:
            raise ValueError(f"first {self.first} is not one of {self.every} packets")
        return self

    @property
    def pattern(self) -> list[bool]:
        """One period of the sequence, true where a packet is lost."""
        lost = (self.every if self.first is None else self.first) - 1
        return [place == lost for place in range(self.every)]

    def __str__(self) -> str:
        return f"one of {self.every} lost"


class Recorded(_Sequence):
    """Replays a recorded loss sequence periodically; `runs` are run lengths of packets not lost, lost, not lost, and so on."""

    model: Literal["recorded"] = "recorded"
    runs: tuple[Annotated[int, Field(ge=0, strict=True)], ...] = Field(
        min_length=1, description="Alternating run lengths in packets: not lost, lost, not lost, ..."
    )

    @model_validator(mode="after")
    def _lasts(self) -> "Recorded":
        if not 0 < sum(self.runs) <= 100_000_000:
            raise ValueError("runs must sum up to 1 to 100,000,000 packets")
        return self

    @cached_property
    def pattern(self) -> list[bool]:
        """One period of the sequence, true where a packet is lost."""
        return [bool(number & 1) for number, length in enumerate(self.runs) for _ in range(length)]

    @property
    def rate(self) -> float:
        """Long-run fraction of packets lost."""
        return sum(self.runs[1::2]) / sum(self.runs)

    @classmethod
    def of(cls, pattern: Sequence[bool], *, shift: bool = False) -> "Recorded":
        """Return the channel that replays a sequence, true where a packet is lost."""
        runs, last = [0], False
        for lost in pattern:
            if lost != last:
                runs.append(0)
                last = lost
            runs[-1] += 1
        return cls(runs=tuple(runs), shift=shift)

    def __str__(self) -> str:
        return f"{format_fraction(round(self.rate, 6))} loss as recorded over {sum(self.runs)} packets"


class Scripted(_Channel):
    """Loses exactly the packets that match one of the `drops`."""

    plain: ClassVar[bool] = False
    model: Literal["scripted"] = "scripted"
    drops: tuple[Drop, ...] = Field(description="Packets to lose.")

    @property
    def rate(self) -> float:
        """0, since the list is finite."""
        return 0.0

    def script(self, member: int) -> Script:
        """Return the sampler of one link; `member` is its index in a counted group."""
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
"""Channels by their `model` key."""


def _spell_out(value: Any) -> Any:
    """Expand `1%` to `{model: bernoulli, p: 1%}` and `{file: F}` to the contents of the channel file."""
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
                    "description": "Loses exactly the packets that match one of the `drops`.",
                    "properties": {
                        "model": {"const": "scripted"},
                        "drops": {"type": "array", "items": Drop.model_json_schema(), "description": "Packets to lose."},
                    },
                    "required": ["model", "drops"],
                },
                {
                    "type": "object",
                    "description": "Loses packets in bursts, given by their mean length and distance.",
                    "properties": {
                        "model": {"const": "gilbert-elliott"},
                        "burst": {"type": "number", "minimum": 1, "description": "Mean number of consecutive packets lost."},
                        "gap": {"type": "number", "minimum": 1, "description": "Mean number of consecutive packets not lost."},
                    },
                    "required": ["model", "burst", "gap"],
                },
                {
                    "type": "object",
                    "description": "A channel in a file.",
                    "properties": {
                        "file": {"type": "string", "description": "Channel file, as `mcastlab channel fit` writes it."},
                    },
                    "required": ["file"],
                },
            ],
            "description": "A loss probability like 1%, short for {model: bernoulli, p: 1%}; a channel; or {file: CHANNEL}.",
        }
    ),
]
"""A channel, or a short form of it: a fraction like 1%, or a channel file."""
