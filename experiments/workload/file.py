"""The workload `file`: files that applications send, and when; and receivers that are there for a part of the run."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from topologies.units import Duration, Size

__all__ = ["Attendance", "FileWorkload"]


class FileWorkload(BaseModel):
    """`count` files of `size` pseudo-random bytes each, which follow from the seed, submitted to the sender at `at`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["file"] = "file"
    sender: str = Field(default="sender", alias="from", description="host that sends")
    size: Size = Field(description="bytes of each file")
    at: Duration = Field(default=0.0, ge=0.0, description="time at which the files are submitted to the sender")
    count: int = Field(default=1, ge=1, le=32_768, strict=True, description="number of files")
    group: str = Field(default="all", min_length=1, description="multicast group")
    members: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="hosts that receive the group; none: all hosts in scope that do not send"
    )
    ttl: int | None = Field(
        default=None,
        ge=1,
        le=255,
        strict=True,
        description="TTL of multicast packets, which each router decrements; none: no limit",
    )


class Attendance(BaseModel):
    """Receivers that join late or leave early.

    A receiver that joins late must get the objects submitted from then on; one that leaves need not get any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: tuple[str, ...] = Field(min_length=1, description="names of hosts or of counted groups of hosts")
    join: Duration = Field(default=0.0, description="time at which they join the group")
    leave: Duration | None = Field(default=None, description="time at which they leave it; none: never")
