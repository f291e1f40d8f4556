"""The workload `publish`: messages that applications publish, and when."""

import re
from collections.abc import Iterator, Mapping
from math import inf, log
from sys import float_info
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from experiments.workload.choices import Priorities, PropertyChoice, Sizes, draw_number, draw_property
from protocols.messaging import USUAL_PRIORITY, Publication, Value
from protocols.rng import Rng, key_of
from topologies.units import Duration

__all__ = ["LIFE_SHIFT", "MessagePlan", "PublishWorkload"]

LIFE_SHIFT = 40
"""Bit position, in the number of a message, of the number of crashes of its publisher's host before it."""
SATURATED = "saturated"
_RATE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,2})?)\s*(?:/\s*s)?\s*")


def _per_second(value: Any) -> Any:
    if value == SATURATED:
        return inf
    if isinstance(value, str) and (match := _RATE.fullmatch(value)):
        value = float(match[1])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (0 < value <= float_info.max or value == inf):
        return float(value)
    raise PydanticCustomError("quantity", "it should be messages per second, like 500/s, or 'saturated'")


MessageRate: TypeAlias = Annotated[
    float,
    BeforeValidator(_per_second),
    PlainSerializer(lambda rate: SATURATED if rate == inf else rate),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "pattern": rf"^(saturated|{_RATE.pattern})$"}, {"type": "number"}],
            "description": "Messages per second like 500/s, or saturated.",
        }
    ),
]


class PublishWorkload(BaseModel):
    """Messages that each client on each of `hosts` publishes to one destination.

    With a `rate` they come at that rate as long as the publisher is not blocked, and what is late is published as soon as it
    is unblocked; `saturated` is as fast as the publisher takes them. With `think` a client waits so long after a message was
    taken and the publisher is not blocked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["publish"]
    hosts: tuple[str, ...] = Field(min_length=1, description="hosts or counted groups of hosts that publish")
    to: str = Field(min_length=1, description="destination, such as topic:prices")
    size: Sizes = Field(description="bytes of a message's body: one size, a range {from, to}, or sizes with weights")
    count: int | None = Field(
        default=None, ge=1, le=1 << 32, strict=True, description="messages of each client; none: until the end"
    )
    at: Duration = Field(default=0.0, description="time of the first message")
    until: Duration | None = Field(default=None, description="time after which nothing is published; none: the end of the run")
    rate: MessageRate | None = Field(default=None, description="messages of each client per second, or saturated")
    arrivals: Literal["constant", "poisson"] = Field(default="constant", description="times between messages at a rate")
    think: Duration | None = Field(
        default=None, description="time a client waits after each message was taken, in place of a rate"
    )
    priority: Priorities = Field(default=USUAL_PRIORITY, description="priority from 0 to 9, or priorities with weights")
    properties: dict[str, PropertyChoice] = Field(
        default_factory=dict, description="properties: a value, a list, or a range {from, to} from which one is drawn"
    )
    expires: Duration | None = Field(default=None, gt=0.0, description="time after which a message expires; none: never")
    clients: int = Field(default=1, ge=1, le=10_000, strict=True, description="publishers on each host")
    linger: Duration = Field(default=1.0, description="time the run goes on after the last message")
    group: str = Field(default="all", min_length=1, description="multicast group")
    ttl: int | None = Field(
        default=None,
        ge=1,
        le=255,
        strict=True,
        description="TTL of multicast packets, which each router decrements; none: no limit",
    )

    @model_validator(mode="after")
    def _fits(self) -> "PublishWorkload":
        if (self.rate is None) == (self.think is None):
            raise ValueError("it should have either 'rate' or 'think'")
        return self

    @property
    def mean_size(self) -> float:
        """Mean bytes of a body."""
        if isinstance(self.size, int):
            return self.size
        if isinstance(self.size, Mapping):
            return sum(size * weight for size, weight in self.size.items()) / sum(self.size.values())
        return (self.size.low + self.size.high) / 2

    @property
    def largest(self) -> Publication:
        """A message with the largest body, and the first choice of each property."""
        size = self.size if isinstance(self.size, int) else max(self.size) if isinstance(self.size, Mapping) else self.size.high
        properties = {name: draw_property(choice, 0.0) for name, choice in self.properties.items()}
        return Publication(0, 0, self.to, int(size), None, properties)

    def expected_messages(self, duration: float, rate: float) -> float:
        """Estimate how many messages a client publishes in a run of `duration` seconds, at most `rate` of them per second."""
        span = max(0.0, min(duration, inf if self.until is None else self.until) - self.at)
        each = min(rate, self.rate or inf, 1 / self.think if self.think else inf)
        return min(span * each, inf if self.count is None else self.count)


class MessagePlan:
    """The messages of one client, which follow from the seed; their times do not, where a publisher blocks."""

    def __init__(self, work: PublishWorkload, seed: int, client: int) -> None:
        self.work = work
        self.client = client
        self._seed = seed

    def gaps(self) -> Iterator[float]:
        """Yield the times between messages at the workload's rate, in seconds."""
        rng = Rng(key_of(self._seed, "arrivals", self.client))
        gap = 1 / self.work.rate if self.work.rate else 0.0
        while True:
            yield gap if self.work.arrivals == "constant" else -gap * log(1 - rng.uniform())

    def size(self, number: int) -> int:
        """Return the bytes of the body of a message."""
        size = self.work.size
        return size if isinstance(size, int) else draw_number(size, self._draw(number, "size"))

    def properties(self, number: int) -> dict[str, Value]:
        """Return the properties of a message."""
        return {name: draw_property(choice, self._draw(number, name)) for name, choice in self.work.properties.items()}

    def fields(self, number: int) -> dict[str, Value]:
        """Return the properties of a message and the header fields that are planned, as selectors see them."""
        return {**self.properties(number), "JMSPriority": self.priority(number), "JMSDeliveryMode": "NON_PERSISTENT"}

    def priority(self, number: int) -> int:
        """Return the priority of a message."""
        priority = self.work.priority
        return priority if isinstance(priority, int) else draw_number(priority, self._draw(number, "priority"))

    def _draw(self, number: int, what: str) -> float:
        return Rng(key_of(self._seed, "message", self.client, what, number)).uniform()

    def message(self, number: int, sent_at: float, body: bytes | None) -> Publication:
        """Return a message; `sent_at` is in seconds since 1970, `body` None for one that has a size only."""
        work = self.work
        return Publication(
            self.client,
            number,
            work.to,
            self.size(number),
            body,
            self.properties(number),
            self.priority(number),
            sent_at,
            inf if work.expires is None else sent_at + work.expires,
        )
