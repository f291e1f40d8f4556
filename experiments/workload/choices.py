"""Values of a message that are drawn anew for each: one value, one of several with weights, or a range."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from protocols.errors import ConfigError
from protocols.messaging import LEAST_PRIORITY, MOST_PRIORITY, Value
from topologies.units import Size, parse_size

__all__ = ["Priorities", "PropertyChoice", "Range", "Sizes", "draw_number", "draw_property"]

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


def _sizes(value: Any) -> Any:
    """Read the sizes that are the keys of weights."""
    if isinstance(value, Mapping) and "from" not in value:
        try:
            return {parse_size(size): weight for size, weight in value.items()}
        except ConfigError as error:
            raise PydanticCustomError("quantity", "{text}", {"text": str(error)}) from None
    return value


Weight: TypeAlias = Annotated[float, Field(gt=0.0)]
MessageSize: TypeAlias = Annotated[Size, Field(le=LARGEST)]
Sizes: TypeAlias = Annotated[
    MessageSize | Range[MessageSize] | Annotated[dict[MessageSize, Weight], Field(min_length=1)],
    BeforeValidator(_sizes, json_schema_input_type=Size | Range[Size] | dict[str, Weight]),
]
"""Bytes: a size, a range, or sizes with their weights."""
Priority: TypeAlias = Annotated[int, Field(ge=LEAST_PRIORITY, le=MOST_PRIORITY)]
Priorities: TypeAlias = Priority | Annotated[dict[Priority, Weight], Field(min_length=1)]
"""A priority, or priorities with their weights."""
Plain: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
PropertyChoice: TypeAlias = Plain | Annotated[tuple[Plain, ...], Field(min_length=1)] | Range[int] | Range[float]
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
