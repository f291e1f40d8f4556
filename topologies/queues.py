"""Queue disciplines as data: drop-tail, token bucket, RED, CoDel, strict priority. `topologies.ports` runs them."""

from abc import abstractmethod
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from topologies.choice import MODEL, PLAIN, PLAIN_OR_MODEL
from topologies.ports import CodelPort, DropTailPort, Port, PriorityPort, RedPort, TokenPort
from topologies.units import Duration, Fraction, Size

__all__ = ["AnyQueue", "Codel", "Discipline", "DropTail", "Priority", "Red", "TokenBucket"]

Packets = Annotated[int, Field(strict=True, ge=0)]


class _Discipline(BaseModel):
    """Base of all disciplines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def port(self, rate: float, key: int) -> Port:
        """Return a port of `rate` bytes per second; `key` is the key of its random stream."""


class DropTail(_Discipline):
    """Drop-tail: a packet is dropped if more than `packets` or `bytes` would wait behind the one in transmission."""

    model: Literal["droptail"] = "droptail"
    packets: Packets | None = Field(default=None, description="Packets that may wait; none: no limit.")
    bytes: Size | None = Field(default=None, description="Bytes on the line that may wait; none: no limit.")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return DropTailPort(rate, self.packets, self.bytes)


class TokenBucket(_Discipline):
    """Token bucket of depth `burst` filled at the link's rate, like the kernel's tbf, with a drop-tail queue before it."""

    model: Literal["token-bucket"] = "token-bucket"
    burst: Annotated[Size, Field(gt=0)] = Field(description="Depth of the bucket in bytes; larger packets are dropped.")
    packets: Packets | None = Field(default=None, description="Packets that may wait; none: no limit.")
    bytes: Size | None = Field(default=None, description="Bytes on the line that may wait; none: no limit.")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return TokenPort(rate, self.burst, self.packets, self.bytes)


class Red(_Discipline):
    """Random early detection (Floyd, Jacobson 1993), gentle variant: drops (`ecn`: marks) packets before the queue is full.

    The drop probability grows from 0 at an average queue of `least` packets to `p` at `most`, and on to 1 at twice `most`; the
    average is an exponentially weighted one with `weight`.
    """

    model: Literal["red"] = "red"
    least: Packets = Field(default=5, description="Average queue in packets below which nothing is dropped early.")
    most: Packets = Field(default=15, description="Average queue in packets at which the drop probability is p.")
    packets: Packets = Field(default=60, description="Packets that may wait; more are dropped.")
    p: Annotated[Fraction, Field(gt=0)] = Field(default=0.1, description="Drop probability at an average queue of most.")
    weight: Annotated[Fraction, Field(gt=0)] = Field(default=0.002, description="Weight of a new sample in the average queue.")
    ecn: bool = Field(default=False, strict=True, description="Whether packets are marked (ECN) instead of dropped early.")

    @model_validator(mode="after")
    def _ordered(self) -> "Red":
        if not self.least < self.most <= self.packets:
            raise ValueError(f"red needs least < most <= packets, not {self.least}, {self.most}, {self.packets}")
        return self

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        return RedPort(rate, self.packets, key, thresholds=(self.least, self.most), p=self.p, weight=self.weight, ecn=self.ecn)


class Codel(_Discipline):
    """Controlled delay (RFC 8289): drops (`ecn`: marks) at the head once the delay exceeded `target` for an `interval`."""

    model: Literal["codel"] = "codel"
    target: Annotated[Duration, Field(gt=0)] = Field(default=0.005, description="Acceptable queueing delay, in seconds.")
    interval: Annotated[Duration, Field(gt=0)] = Field(
        default=0.1, description="Seconds for which the delay must exceed target before packets are dropped."
    )
    packets: Packets = Field(default=1000, description="Packets that may wait; more are dropped.")
    ecn: bool = Field(default=False, strict=True, description="Whether packets are marked (ECN) instead of dropped.")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return CodelPort(rate, self.packets, target=self.target, interval=self.interval, ecn=self.ecn)


class Priority(_Discipline):
    """Strict priority by DSCP: the next packet sent is the first of the highest class of which packets wait.

    Classes rank as `topologies.service_classes.rank_of` says; protocols mark packets where a setting asks for it (FJM2: `tos`).
    """

    model: Literal["priority"] = "priority"
    packets: Packets | None = Field(default=None, description="Packets of each class that may wait; none: no limit.")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return PriorityPort(rate, self.packets)


Discipline: TypeAlias = DropTail | TokenBucket | Red | Codel | Priority
AnyQueue: TypeAlias = Annotated[
    Annotated[Packets | None, Tag(PLAIN)] | Annotated[Annotated[Discipline, Discriminator("model")], Tag(MODEL)],
    PLAIN_OR_MODEL,
]
"""Number of packets that may wait (none: no limit), or a discipline by its name."""
