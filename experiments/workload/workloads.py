"""All kinds of workload. A further kind is a module beside this one and a member of `AnyWorkload`."""

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Discriminator, FailFast, Field

from experiments.workload.file import FileWorkload
from experiments.workload.publish import PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload

__all__ = ["AnyWorkload", "Workloads"]

AnyWorkload: TypeAlias = Annotated[FileWorkload | PublishWorkload | SubscribeWorkload, Discriminator("kind")]


def _listed(value: Any) -> Any:
    """Return a list, in which a workload without a kind is of kind `file`."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [{"kind": "file", **item} if isinstance(item, dict) else item for item in listed]


Workloads: TypeAlias = Annotated[
    tuple[AnyWorkload, ...],
    FailFast(),
    BeforeValidator(_listed, json_schema_input_type=AnyWorkload | tuple[AnyWorkload, ...]),
    Field(min_length=1),
]
"""One workload, or a list of them."""
