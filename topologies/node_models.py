"""Processing models of nodes: receive processing of hosts, storm control of switches, store-and-forward routers.

`NodeAttributes` is a node as a user writes it; its `model()` is the part that belongs to the node's kind. Durations are in
seconds, sizes in bytes, rates in bytes per second.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from protocols.errors import ConfigError
from topologies.disk_model import DiskModel
from topologies.units import Duration, Rate, Size

__all__ = ["HostModel", "Kind", "Model", "NodeAttributes", "RouterModel", "SwitchModel"]

HOST_LIMIT = 2_000_000
"""Most hosts of a topology. A host takes about a kilobyte in a run."""

Kind: TypeAlias = Literal["host", "switch", "router"]
Packets: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


_RATE = "Rate of a hub, or of the wire of a router of mac single; its links must then have no rate."
_QUEUE = (
    "Packets that may wait for a router's processor and, per direction, for its single wire, "
    "or in each station for a hub; none: no limit."
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HostModel(_Part):
    """The processor of a host, which needs time for each packet, with a buffer before it for those received.

    All programs of the host share it, and the work that they state with `Ports.work` keeps it busy as well.

    The network card filters up to `filters` groups in hardware. If the host has joined more, every multicast on its link takes
    processor time, and groups that were not joined are filtered in software.
    """

    cpu: Duration = Field(default=0.0, description="Processor time per received packet, in seconds.")
    cpu_byte: Duration = Field(default=0.0, description="Additional processor time per byte of UDP payload, in seconds.")
    cpu_frame: Duration = Field(
        default=0.0, description="Additional processor time per Ethernet frame of a packet received or sent, in seconds."
    )
    quota: Annotated[float, Field(gt=0.0, le=1.0)] | None = Field(
        default=None,
        description="Share of one core that the host may use: costs take so much longer; in Mininet by the kernel, as root.",
    )
    cpu_send: Duration = Field(default=0.0, description="Processor time per packet sent, in seconds.")
    cpu_send_byte: Duration = Field(
        default=0.0, description="Additional processor time per byte of UDP payload sent, in seconds."
    )
    buffer: Size | None = Field(
        default=None, description="Bytes of UDP payload that may wait for the processor; none: no limit."
    )
    filters: Packets | None = Field(
        default=None, description="Number of multicast groups the network card can filter; none: any number."
    )
    fifo: bool = Field(
        default=False,
        description="Whether received packets and the machine's work are served in the order they come; else work goes first.",
    )
    pause: bool = Field(
        default=False,
        description="IEEE 802.3x: whether the host pauses its link while the buffer is full, so that nothing is lost.",
    )


class SwitchModel(_Part):
    """Storm control and flow control of a switch, which otherwise forwards without delay.

    With `hub` it is a shared half-duplex medium of `rate`: every packet occupies it once, one after another, whatever its
    destination, and a multicast reaches all hosts on it. Stations that wait are served round robin, packet by packet, and there
    are no collisions.
    """

    storm: Rate | None = Field(default=None, description="Storm control: rate of multicast admitted per port; none: unlimited.")
    burst: Size = Field(
        default=65_536, gt=0, description="Storm control: bytes admitted in a burst (the depth of the token bucket)."
    )
    pause: bool = Field(
        default=False, description="IEEE 802.3x: whether the switch pauses its inbound links while an outbound queue is full."
    )
    hub: bool = Field(default=False, description="Whether all links share one half-duplex medium.")
    rate: Rate | None = Field(default=None, description=_RATE)
    queue: Packets | None = Field(default=None, description=_QUEUE)


class RouterModel(_Part):
    """A store-and-forward router: a processor with a queue before it, and the queues of its outbound links.

    `mac: dual` has an adapter for each link, and the links have the rates. `mac: single` has one adapter for all networks,
    which 802.1Q tags separate: every packet crosses its wire, of `rate`, once inbound and once for each outbound link. With
    `duplex: half` both directions share the wire; with `full` each has the whole rate.
    """

    mac: Literal["dual", "single"] = Field(
        default="dual", description="dual: one adapter per link; single: one adapter for all links, by VLANs."
    )
    duplex: Literal["full", "half"] = Field(
        default="full", description="mac single: half: both directions share the rate of the wire; full: each has it."
    )
    rate: Rate | None = Field(default=None, description=_RATE)
    cpu: Duration = Field(default=0.0, description="Processor time per forwarded packet, in seconds.")
    cpu_byte: Duration = Field(default=0.0, description="Additional processor time per byte of UDP payload, in seconds.")
    queue: Packets | None = Field(default=None, description=_QUEUE)


Model: TypeAlias = HostModel | SwitchModel | RouterModel
MODELS: dict[str, type[Model]] = {"host": HostModel, "switch": SwitchModel, "router": RouterModel}


LEAST_MEMORY = 16_000_000
"""Least `memory` of a host in bytes: with less a Python process can't even report that it has no more."""
_OF_ANY_MODEL = ("kind", "count", "bystander", "disk", "memory")


class NodeAttributes(HostModel, SwitchModel, RouterModel):
    """A node as a user writes it: its kind, and the attributes of this kind."""

    kind: Kind | None = Field(
        default=None, description="host, switch or router. Default: switch for a node with more than one link, else host."
    )
    count: Annotated[int, Field(strict=True, ge=1, le=HOST_LIMIT)] | None = Field(
        default=None, description="Number of equal hosts this node stands for, each with its own link."
    )
    bystander: bool | None = Field(
        default=None, description="Whether the host takes part in a session only if a workload or receiver entry names it."
    )

    disk: DiskModel | None = Field(default=None, description="Disk of a host, for programs that store; none: it takes no time.")
    memory: Annotated[Size, Field(ge=LEAST_MEMORY)] | None = Field(
        default=None, description="Bytes that the programs of a host may keep, like 256MB; more ends them. none: any number."
    )

    def model(self, name: str, kind: str) -> Model | None:
        """Return the model of this kind, None if no attribute was given. ConfigError for an attribute of another kind."""
        for key in ("disk", "memory"):
            if getattr(self, key) is not None and kind != "host":
                raise ConfigError(f"nodes.{name}.{key}: is not allowed; only for a host, this is a {kind}")
        written = {key: getattr(self, key) for key in self.model_fields_set if key not in _OF_ANY_MODEL}
        for key in sorted(written):
            if key not in MODELS[kind].model_fields:
                owners = " or ".join(other for other, model in MODELS.items() if key in model.model_fields)
                raise ConfigError(f"nodes.{name}.{key}: {written[key]!r} is not allowed; only for a {owners}, this is a {kind}")
        part = MODELS[kind].model_construct(**written) if written or kind == "router" else None
        if isinstance(part, HostModel) and part.fifo and part.pause:
            raise ConfigError(f"nodes.{name}.pause: True is not allowed; False with fifo")
        if isinstance(part, RouterModel):
            _check_router(name, part)
        if isinstance(part, SwitchModel):
            _check_hub(name, part)
        return part

    def dumped(self) -> dict[str, Any]:
        """Return the attributes that were given."""
        return self.model_dump(exclude_unset=True)


def _check_router(name: str, router: RouterModel) -> None:
    if router.mac == "single" and router.rate is None:
        raise ConfigError(f"nodes.{name}.rate: is missing; a router of mac single needs a rate, like 100Mbit")
    for key in ("rate", "duplex"):
        if router.mac == "dual" and key in router.model_fields_set:
            value = getattr(router, key)
            raise ConfigError(f"nodes.{name}.{key}: {value!r} is not allowed; only for mac single, else links have the rates")


def _check_hub(name: str, switch: SwitchModel) -> None:
    if switch.hub and switch.rate is None:
        raise ConfigError(f"nodes.{name}.rate: is missing; a hub needs a rate, like 10Mbit")
    for key in ("storm", "burst", "pause") if switch.hub else ("rate", "queue"):
        if key in switch.model_fields_set:
            only = "not for a hub" if switch.hub else "only for a hub, else links have the rates and queues"
            raise ConfigError(f"nodes.{name}.{key}: {getattr(switch, key)!r} is not allowed; {only}")
