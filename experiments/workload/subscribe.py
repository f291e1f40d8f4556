"""The workload `subscribe`: what applications want to receive, and when."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from topologies.units import Duration

__all__ = ["SubscribeWorkload"]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Destinations: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...]),
    Field(min_length=1),
]


class SubscribeWorkload(BaseModel):
    """Subscriptions of each client on each of `hosts`, one for each destination of `to`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["subscribe"]
    hosts: tuple[str, ...] = Field(min_length=1, description="hosts or counted groups of hosts that subscribe")
    to: Destinations = Field(description="destination such as topic:prices, or a list of them")
    selector: str = Field(default="", description="condition on the properties of messages; only of some protocols")
    at: Duration = Field(default=0.0, description="time at which they subscribe")
    until: Duration | None = Field(default=None, description="time at which they unsubscribe; none: never")
    slow: Duration | None = Field(
        default=None, gt=0.0, description="time the application takes for each packet or message that arrives"
    )
    room: int = Field(
        default=64, ge=1, strict=True, description="slow: packets in the receive buffer at most; further ones are dropped"
    )
    clients: int = Field(default=1, ge=1, le=10_000, strict=True, description="subscribers on each host")
    group: str = Field(default="all", min_length=1, description="multicast group")
