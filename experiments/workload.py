"""What applications send, and when: data of a scenario.

A new kind of workload is one more class here and one more member of `AnyWorkload`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from topologies.units import Duration, Size

__all__ = ["AnyWorkload", "FileWorkload", "Workloads"]


class FileWorkload(BaseModel):
    """`count` files of `size` bytes each, handed to the sender at `at`; their bytes depend on the seed alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["file"] = "file"
    sender: str = Field(default="sender", alias="from", description="host that sends")
    size: Size = Field(description="bytes of each file")
    at: Duration = Field(default=0.0, ge=0.0, description="when the application hands it over")
    count: int = Field(default=1, ge=1, le=32_768, strict=True, description="number of files")
    group: str = Field(default="all", min_length=1, description="multicast group; every other host is a member")


AnyWorkload: TypeAlias = FileWorkload


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


Workloads: TypeAlias = Annotated[
    tuple[AnyWorkload, ...],
    BeforeValidator(_listed, json_schema_input_type=AnyWorkload | tuple[AnyWorkload, ...]),
    Field(min_length=1),
]
"""One workload, or a list of them."""
