"""Options of the emulation."""

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
    trunk: Literal["any", "vlan", "vxlan", "ifb"] = Field(
        default="any",
        description="how networks of a router of mac single share its cable: any: 802.1Q (vlan) where the kernel has it, else "
        "vxlan; ifb: they share its rate only",
    )
