"""How far apart two worlds may be and still be called equivalent: part of a scenario, because the user decides it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from topologies.units import Fraction

__all__ = ["Margins"]


class Margins(BaseModel):
    """Margins of the equivalence tests. Fractions are of the first world's mean; counts may also differ by `packets`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: int = Field(default=8, ge=2, le=1000, strict=True, description="how often both worlds run, with seeds counting up")
    completion_time: Fraction = Field(default=0.1, gt=0.0, description="of the time to the last completion")
    goodput: Fraction = Field(default=0.1, gt=0.0, description="of the content each receiver got per second")
    overhead: Fraction = Field(default=0.1, gt=0.0, description="of bytes sent by all over bytes of content")
    nacks: Fraction = Field(default=0.2, gt=0.0, description="of the NACKs (and ACKs) sent")
    repairs: Fraction = Field(default=0.2, gt=0.0, description="of the repairs the senders sent")
    loss: Fraction = Field(default=0.2, gt=0.0, description="of the loss each receiver saw")
    packets: float = Field(default=2.0, ge=0.0, description="counts that differ by no more than this are equivalent as well")
    dropped: Literal["equal", "told"] = Field(
        default="equal",
        description="equal: the same first transmissions are lost in both worlds; told: what differs is only told",
    )
    note: str = Field(default="", description="what a reader of the verdict should know")
