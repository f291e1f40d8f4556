"""Options of the TCP connections of a run: a section of the scenario file."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protocols.errors import ConfigError
from protocols.tcp.options import TcpOptions
from topologies.units import Size

__all__ = ["Connections"]


class Connections(BaseModel):
    """TCP of all hosts, for protocols that use connections."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    control: Literal["cubic", "cubic-linux", "reno", "reno-linux"] = Field(
        default="cubic",
        description="congestion control: CUBIC or Reno, in the simulator by RFC or as Linux computes it, else the kernel's",
    )
    mss: Annotated[Size, Field(ge=88, le=65_483)] = Field(
        default=TcpOptions.mss, description="bytes of data in a full segment; its frame has 66 more"
    )
    buffer: Annotated[Size, Field(ge=2_000, le=1 << 30)] = Field(
        default=TcpOptions.buffer, description="bytes that either end of a connection keeps for each direction, like 256kB"
    )
    nagle: bool = Field(
        default=True, description="whether a small segment waits while another one is not acknowledged (Nagle's algorithm)"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Connections":
        if self.buffer < 2 * self.mss:
            raise ConfigError(
                f"connections.buffer: value {self.buffer!r} is not allowed; at least two segments, {2 * self.mss} bytes"
            )
        return self

    def options(self) -> TcpOptions:
        """Return the options as hosts take them."""
        return TcpOptions(self.control, self.mss, self.buffer, self.nagle)
