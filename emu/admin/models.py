"""Requests and responses of a registry's HTTP interface, for its OpenAPI document.

The rules are those of `protocols.admin.registration`, which a simulated registry reads by; a test compares the two.
"""

from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from protocols.admin.registration import (
    LARGEST_ID,
    LARGEST_PORT,
    LARGEST_STAMP,
    LONGEST_ADDRESS,
    LONGEST_COUNTER,
    LONGEST_GROUP,
    LONGEST_NAME,
    MOST_COUNTERS,
    Registration,
    Renewal,
)

__all__ = [
    "ListedNode",
    "NodeId",
    "NodeList",
    "PauseBody",
    "Problem",
    "RegisteredBody",
    "RegistrationBody",
    "RenewalBody",
    "RenewedBody",
    "Stamp",
    "problems",
]


def _whole(value: Any) -> Any:
    """Return a whole number that JSON wrote as 7.0 as an integer, and everything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _checked(value: str) -> str:
    """Return an IP address. Raises ValueError for anything else."""
    ip_address(value)
    return value


_WHOLE = BeforeValidator(_whole)
NodeId = Annotated[int, Field(ge=0, le=LARGEST_ID, description="number that the registry gave a tunnel"), _WHOLE]
Stamp = Annotated[
    int, Field(ge=0, le=LARGEST_STAMP, description="time of the last change of the list, in milliseconds"), _WHOLE
]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, description="for people")]
Address = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_ADDRESS,
        description="IP address that takes datagrams",
        json_schema_extra={"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    ),
    AfterValidator(_checked),
]
GroupName = Annotated[str, Field(min_length=1, max_length=LONGEST_GROUP, description="multicast group, such as 239.1.2.3:6003")]
Port = Annotated[int, Field(ge=1, le=LARGEST_PORT, description="UDP port that takes datagrams"), _WHOLE]
Amount = Annotated[float, Field(ge=0, le=1e300, allow_inf_nan=False)]
CounterName = Annotated[str, Field(min_length=1, max_length=LONGEST_COUNTER)]
Lease = Annotated[float, Field(gt=0, description="seconds within which a tunnel renews")]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class RegistrationBody(_Body):
    """Request to register a tunnel."""

    name: Name
    site: Annotated[int, Field(ge=0, le=LARGEST_ID, description="number of its site"), _WHOLE]
    port: Port
    group: GroupName
    address: Address | None = Field(default=None, description="null: the address from which it asks")
    udp: Port | None = Field(default=None, description="UDP port that takes advertisements; null: port")

    def plain(self) -> Registration:
        """Return it as the registry takes it."""
        values = self.model_dump()
        return Registration(**{**values, "address": values["address"] or ""})


class RenewalBody(_Body):
    """A tunnel that stays in the list, and how it fares."""

    counters: dict[CounterName, Amount] = Field(default_factory=dict, max_length=MOST_COUNTERS)
    cpu: Amount = Field(default=0.0, description="processor time in seconds")
    memory: Annotated[int, Field(ge=0, le=LARGEST_STAMP, description="bytes"), _WHOLE] = 0

    def plain(self) -> Renewal:
        """Return it as the registry takes it."""
        return Renewal(**self.model_dump())


class PauseBody(_Body):
    """True: the tunnel is paused, and no packets are carried to it or from it."""

    paused: bool


class ListedNode(_Body):
    """A tunnel of the list."""

    id: NodeId
    name: Name
    site: Annotated[int, Field(ge=0, le=LARGEST_ID), _WHOLE]
    address: Address
    port: Port
    group: GroupName
    paused: bool


class NodeList(_Body):
    """The list."""

    stamp: Stamp
    nodes: list[ListedNode]


class RegisteredBody(NodeList):
    """The answer to a registration."""

    id: NodeId
    lease: Lease
    registry: Annotated[int, Field(ge=0, le=LARGEST_STAMP, description="number of the registry, in its advertisements"), _WHOLE]


class RenewedBody(_Body):
    """The answer to a renewal."""

    stamp: Stamp
    lease: Lease


class Problem(_Body):
    """Why a request was refused."""

    detail: str


def problems(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of responses with a `Problem`, by keys like `s404`."""
    return {int(key[1:]): {"model": Problem, "description": text} for key, text in statuses.items()}
