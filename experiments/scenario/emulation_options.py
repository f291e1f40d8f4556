"""Options of the emulation."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EmulationChoice"]


class EmulationChoice(BaseModel):
    """Options of runs in Mininet."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    losses: Literal["any", "keyed"] = Field(
        default="any",
        description="any: random losses, by the kernel where possible; keyed: the same packets are lost as in the simulator",
    )
    rates: Literal["any", "exact"] = Field(
        default="any",
        description="any: by the kernel's token bucket where possible, which delays no packet that finds it full; exact: each "
        "packet takes its time on the link, as in the simulator, in user space",
    )
    disk: Path | None = Field(
        default=None,
        description="folder that keeps what hosts store, each in a folder of its own; none: in memory, gone with the run",
    )
    trunk: Literal["any", "vlan", "vxlan", "ifb"] = Field(
        default="any",
        description="how the networks of a router with `mac: single` share its cable. any: 802.1Q VLANs (vlan) where the "
        "kernel has them, else vxlan; ifb: they share its rate only",
    )
