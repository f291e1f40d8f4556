"""Values of a message that are drawn anew for each: one value, one of several with weights, or a range."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from protocols.messaging import LEAST_PRIORITY, MOST_PRIORITY, Value
from topologies.units import Size

__all__ = ["Priorities", "PropertyChoice", "Range", "SizeRange", "Sizes", "draw_number", "draw_property"]

LARGEST = 1 << 40
"""Bytes of the largest message; protocols that carry less say so themselves."""
T = TypeVar("T", int, float)


class Range(BaseModel, Generic[T]):
    """Numbers from one to another, all as probable, both included."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    low: T = Field(alias="from", description="smallest number")
    high: T = Field(alias="to", description="largest number")

    @model_validator(mode="after")
    def _rises(self) -> "Range[T]":
        if self.high < self.low:
            raise ValueError(f"'to' is at least 'from', {self.low!r}")
        return self


def _form(value: Any) -> str:
    """Return the form in which a size is written; only this form is validated, and an error names its keys."""
    is_range = isinstance(value, Range) or (isinstance(value, Mapping) and not _ENDS.isdisjoint(value))
    return _RANGE if is_range else _form_of_priority(value)


def _form_of_priority(value: Any) -> str:
    return _WEIGHTS if isinstance(value, Mapping) else _ONE


def _ascending(weights: dict[int, float]) -> dict[int, float]:
    """Return weights in the order of their values: what is drawn does not depend on the order in which they are written."""
    return dict(sorted(weights.items()))


def _form_of_property(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return _LIST
    return _RANGE if isinstance(value, (Range, Mapping)) else _ONE


_ENDS: Final = frozenset({"from", "to"})
_ONE, _LIST, _RANGE, _WEIGHTS = "<one>", "<list>", "<range>", "<weights>"
_NO_RANGE: Final = {"propertyNames": {"not": {"enum": sorted(_ENDS)}}}
Weight: TypeAlias = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
MessageSize: TypeAlias = Annotated[Size, Field(le=LARGEST)]


class SizeRange(Range[MessageSize]):
    """Sizes from one to another, all as probable, both included."""


Sizes: TypeAlias = Annotated[
    Annotated[MessageSize, Tag(_ONE)]
    | Annotated[SizeRange, Tag(_RANGE)]
    | Annotated[
        dict[MessageSize, Weight],
        Field(min_length=1, json_schema_extra=_NO_RANGE),
        AfterValidator(_ascending),
        Tag(_WEIGHTS),
    ],
    Discriminator(_form),
]
"""Bytes: a size, a range, or sizes with their weights."""
Priority: TypeAlias = Annotated[int, Field(ge=LEAST_PRIORITY, le=MOST_PRIORITY)]
Priorities: TypeAlias = Annotated[
    Annotated[Priority, Tag(_ONE)]
    | Annotated[dict[Priority, Weight], Field(min_length=1), AfterValidator(_ascending), Tag(_WEIGHTS)],
    Discriminator(_form_of_priority),
]
"""A priority, or priorities with their weights."""
Plain: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
PropertyChoice: TypeAlias = Annotated[
    Annotated[Plain, Tag(_ONE)]
    | Annotated[tuple[Plain, ...], Field(min_length=1), Tag(_LIST)]
    | Annotated[Range[int] | Range[float], Tag(_RANGE)],
    Discriminator(_form_of_property),
]
"""Values of a property: one value, a list, or a range."""


def draw_number(choice: "Range[int] | Mapping[int, float]", uniform: float) -> int:
    """Return a size or a priority; `uniform` is a random number from 0 to 1, 1 excluded."""
    if isinstance(choice, Range):
        return choice.low + int(uniform * (choice.high - choice.low + 1))
    sums = list(accumulate(choice.values()))
    return next((value for value, total in zip(choice, sums, strict=True) if uniform * sums[-1] < total), list(choice)[-1])


def draw_property(choice: "Value | tuple[Value, ...] | Range[int] | Range[float]", uniform: float) -> Value:
    """Return the value of a property; `uniform` is a random number from 0 to 1, 1 excluded."""
    if isinstance(choice, tuple):
        return choice[int(uniform * len(choice))]
    if isinstance(choice, Range):
        if isinstance(choice.low, int) and isinstance(choice.high, int):
            return choice.low + int(uniform * (choice.high - choice.low + 1))
        return choice.low + uniform * (choice.high - choice.low)
    return choice
