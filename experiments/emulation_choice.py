"""How a scenario wants to be emulated, where there is a choice."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EmulationChoice"]


class EmulationChoice(BaseModel):
    """Choices that only Mininet has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    losses: Literal["any", "keyed"] = Field(
        default="any",
        description="any: by the kernel where it can; keyed: those of the simulator, packet by packet",
    )
