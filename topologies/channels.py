"""What a link does to packets besides carrying them: the one description for simulator and emulator.

A channel is data (a pydantic model named by `model`) that makes samplers. Now: independent loss. A channel with memory, delay
or corruption is one more class and one more line in `CHANNELS`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, WithJsonSchema

from topologies.losses import BundleLoss, LinkLoss, member_keys
from topologies.units import Fraction, format_fraction

__all__ = ["CHANNELS", "Bernoulli", "Channel", "Loss", "Perfect"]


class Perfect(BaseModel):
    """Loses nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: Literal["perfect"] = "perfect"

    def link(self, key: int) -> LinkLoss | None:
        """The sampler of one link; None where nothing is ever lost."""
        del key
        return None

    def bundle(self, key: int, count: int) -> BundleLoss | None:
        """The sampler of `count` sibling links with keys `extend(key, member)`; None where nothing is ever lost."""
        del key, count
        return None

    @property
    def rate(self) -> float:
        """0."""
        return 0.0

    def __str__(self) -> str:
        return "no loss"


class Bernoulli(BaseModel):
    """Loses each packet on its own with probability `p`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: Literal["bernoulli"] = "bernoulli"
    p: Fraction

    def link(self, key: int) -> LinkLoss | None:
        """The sampler of one link; None where nothing is ever lost."""
        return LinkLoss(key, self.p) if self.p else None

    def bundle(self, key: int, count: int) -> BundleLoss | None:
        """The sampler of `count` sibling links with keys `extend(key, member)`; None where nothing is ever lost."""
        return BundleLoss(member_keys(key, count), self.p) if self.p else None

    @property
    def rate(self) -> float:
        """`p`."""
        return self.p

    def __str__(self) -> str:
        return f"{format_fraction(self.p)} loss"


Channel: TypeAlias = Perfect | Bernoulli
CHANNELS: dict[str, type[Channel]] = {"perfect": Perfect, "bernoulli": Bernoulli}
"""Every channel by the name a user writes as `model`."""


def _spell_out(value: Any) -> Any:
    """`1%` is short for `{model: bernoulli, p: 1%}`."""
    return value if isinstance(value, (dict, BaseModel)) else {"model": "bernoulli", "p": value}


Loss: TypeAlias = Annotated[
    Annotated[Channel, Discriminator("model")],
    BeforeValidator(_spell_out),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$"},
                {"type": "number", "minimum": 0, "maximum": 1},
                Perfect.model_json_schema(),
                Bernoulli.model_json_schema(),
            ],
            "description": "loss like 1%, short for {model: bernoulli, p: 1%}",
        }
    ),
]
"""A channel, or its short form: a fraction like 1%."""
