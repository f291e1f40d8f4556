"""All kinds of workload. A further kind is a module beside this one and a member of `AnyWorkload`."""

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Discriminator, FailFast, Field

from experiments.workload.file import FileWorkload
from experiments.workload.publish import PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload
from protocols.errors import UsageError

__all__ = ["AnyWorkload", "Workloads", "before_end", "check_times"]

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


def before_end(duration: float) -> str:
    """Say when something may begin in a run of `duration` seconds."""
    return f"before the end of the run (duration: {duration!r})"


def check_times(work: AnyWorkload, duration: float) -> None:
    """Raise UsageError for a workload that would begin when a run of `duration` seconds is over, or end before it begins."""
    if work.at >= duration:
        raise UsageError(f"at: value {work.at!r} is not allowed; {before_end(duration)}")
    if not isinstance(work, FileWorkload) and work.until is not None and work.until <= work.at:
        raise UsageError(f"until: value {work.until!r} is not allowed; later than at, {work.at!r}")
