"""What a node does to packets besides carrying them: limits of a host, of a switch, the model of a router.

`NodeAttributes` is a node as a user writes it; `model()` makes of it the part that belongs to its kind. Durations in seconds,
sizes in bytes, rates in bytes per second.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from protocols.errors import ConfigError
from topologies.units import Duration, Rate, Size

__all__ = ["HostModel", "Kind", "Model", "NodeAttributes", "RouterModel", "SwitchModel"]

Kind: TypeAlias = Literal["host", "switch", "router"]
Packets: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HostModel(_Part):
    """How a host takes packets in: a processor that needs time for each, and a buffer before it.

    The network card tells `filters` groups apart; a host that listens to more hears every multicast that comes by, and the
    processor throws away what nobody joined.
    """

    cpu: Duration = Field(default=0.0, description="processor time to take in a packet")
    cpu_byte: Duration = Field(default=0.0, description="processor time to take in a byte of payload, besides")
    buffer: Size | None = Field(default=None, description="bytes of payload that may wait for the processor; none: no limit")
    filters: Packets | None = Field(default=None, description="groups the network card tells apart; none: any number")
    pause: bool = Field(default=False, description="802.3x: stops its link while the buffer is full, and loses nothing")


class SwitchModel(_Part):
    """What a switch does besides forwarding at once."""

    storm: Rate | None = Field(default=None, description="storm control: multicast let in per port and second; none: all")
    burst: Size = Field(default=65_536, gt=0, description="storm control: bytes let in at once after a silence")
    pause: bool = Field(default=False, description="802.3x: stops the links into it while a queue out of it is full")


class RouterModel(_Part):
    """A router that stores and forwards: a queue before its processor, and the queues of the links out of it.

    `mac: dual` has an adapter for each link, and the links have the rates. `mac: single` has one adapter for all networks, told
    apart by 802.1Q tags: every packet passes its wire, of `rate`, once on the way in and once for each link out. With
    `duplex: half` in and out share the wire and take turns; with `full` each has the whole rate.
    """

    mac: Literal["dual", "single"] = Field(default="dual", description="an adapter per link, or one for all by VLANs")
    duplex: Literal["full", "half"] = Field(default="full", description="mac single: in and out share the wire when half")
    rate: Rate | None = Field(default=None, description="mac single: of its wire, which its links then don't have")
    cpu: Duration = Field(default=0.0, description="processor time to forward a packet")
    cpu_byte: Duration = Field(default=0.0, description="processor time to forward a byte of payload, besides")
    queue: Packets | None = Field(
        default=None, description="packets that may wait for the processor, and for the single wire each way; none: no limit"
    )


Model: TypeAlias = HostModel | SwitchModel | RouterModel
MODELS: dict[str, type[Model]] = {"host": HostModel, "switch": SwitchModel, "router": RouterModel}


class NodeAttributes(HostModel, SwitchModel, RouterModel):
    """A node as a user writes it: its kind, and what this kind has."""

    kind: Kind | None = Field(
        default=None, description="host, switch or router; without it a node with several links is a switch, others are hosts"
    )
    count: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None, description="that many equal hosts, each with a link of its own like this one"
    )
    bystander: bool | None = Field(default=None, description="a host that takes no part in a session unless it is named")

    def model(self, name: str, kind: str) -> Model | None:
        """What was written for this kind, None when nothing was; ConfigError for what another kind has."""
        written = {key: getattr(self, key) for key in self.model_fields_set if key not in ("kind", "count", "bystander")}
        for key in sorted(written):
            if key not in MODELS[kind].model_fields:
                owners = " or ".join(other for other, model in MODELS.items() if key in model.model_fields)
                raise ConfigError(f"nodes.{name}.{key}: {written[key]!r} is not allowed; only for a {owners}, this is a {kind}")
        part = MODELS[kind].model_construct(**written) if written or kind == "router" else None
        if isinstance(part, RouterModel):
            _check_router(name, part)
        return part

    def dumped(self) -> dict[str, Any]:
        """What was written."""
        return self.model_dump(exclude_unset=True)


def _check_router(name: str, router: RouterModel) -> None:
    if router.mac == "single" and router.rate is None:
        raise ConfigError(f"nodes.{name}.rate: is missing; a router of mac single has a rate, like 100Mbit")
    for key in ("rate", "duplex"):
        if router.mac == "dual" and key in router.model_fields_set:
            value = getattr(router, key)
            raise ConfigError(f"nodes.{name}.{key}: {value!r} is not allowed; only for mac single, else links have the rates")
