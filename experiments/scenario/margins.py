"""Equivalence margins of a twin comparison: a section of the scenario file, because the user decides them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from topologies.units import Fraction

__all__ = ["Margins"]


class Margins(BaseModel):
    """Margins of the equivalence tests. Fractions are of the first world's mean; counts may also differ by `packets`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: int = Field(default=8, ge=2, le=1000, strict=True, description="runs in each world, with consecutive seeds")
    completion_time: Fraction = Field(default=0.1, gt=0.0, description="margin of completion times")
    goodput: Fraction = Field(default=0.1, gt=0.0, description="margin of goodput")
    overhead: Fraction = Field(default=0.1, gt=0.0, description="margin of bytes sent by all hosts divided by bytes of content")
    nacks: Fraction = Field(default=0.2, gt=0.0, description="margin of NACKs and ACKs sent")
    repairs: Fraction = Field(default=0.2, gt=0.0, description="margin of repairs sent")
    loss: Fraction = Field(default=0.2, gt=0.0, description="margin of the loss of each receiver")
    latency: Fraction | None = Field(
        default=None, gt=0.0, description="margin of the latency of messages (p50); not compared without one"
    )
    packets: float = Field(default=2.0, ge=0.0, description="smallest margin of counts, in packets")
    dropped: Literal["equal", "told"] = Field(
        default="equal",
        description="equal: both worlds must lose the same first transmissions; told: differences are only reported",
    )
    note: str = Field(default="", description="remark shown with the verdict")
