"""The workload of a scenario: what applications send, and when.

A new kind of workload is one more class here and one more member of `AnyWorkload`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from topologies.units import Duration, Size

__all__ = ["AnyWorkload", "Attendance", "FileWorkload", "Workloads"]


class FileWorkload(BaseModel):
    """`count` files of `size` bytes each, handed to the sender at `at`; their bytes depend on the seed alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["file"] = "file"
    sender: str = Field(default="sender", alias="from", description="host that sends")
    size: Size = Field(description="bytes of each file")
    at: Duration = Field(default=0.0, ge=0.0, description="when the application hands it over")
    count: int = Field(default=1, ge=1, le=32_768, strict=True, description="number of files")
    group: str = Field(default="all", min_length=1, description="multicast group")
    members: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="hosts that receive the group; none: all that send nothing, within scope"
    )
    ttl: int | None = Field(
        default=None,
        ge=1,
        le=255,
        strict=True,
        description="TTL of multicasts, which each router lowers by 1; none: no limit",
    )


class Attendance(BaseModel):
    """Receivers that join late or leave early.

    Required of them are the objects submitted after they joined; none of those that leave.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: tuple[str, ...] = Field(min_length=1, description="names of hosts, or of counted groups")
    join: Duration = Field(default=0.0, description="when they start to receive")
    leave: Duration | None = Field(default=None, description="when they stop; none: never")


AnyWorkload: TypeAlias = FileWorkload


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


Workloads: TypeAlias = Annotated[
    tuple[AnyWorkload, ...],
    BeforeValidator(_listed, json_schema_input_type=AnyWorkload | tuple[AnyWorkload, ...]),
    Field(min_length=1),
]
"""One workload, or a list of them."""
