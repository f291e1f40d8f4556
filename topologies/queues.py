"""Queues at the near end of a link, as data: drop-tail by packets or bytes, RED, CoDel. What runs is in `topologies.ports`."""

from abc import abstractmethod
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from topologies.choice import PLAIN_OR_MODEL
from topologies.ports import CodelPort, DropTailPort, Port, RedPort, TokenPort
from topologies.units import Duration, Fraction, Size

__all__ = ["AnyQueue", "Codel", "Discipline", "DropTail", "Red", "TokenBucket"]

Packets = Annotated[int, Field(strict=True, ge=0)]


class _Discipline(BaseModel):
    """What all disciplines share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def port(self, rate: float, key: int) -> Port:
        """A running port of `rate` bytes per second; its dice are keyed by `key`."""


class DropTail(_Discipline):
    """Drops what comes while `packets` or `bytes` wait already; the one being sent does not wait."""

    model: Literal["droptail"] = "droptail"
    packets: Packets | None = Field(default=None, description="packets that may wait; none: no limit")
    bytes: Size | None = Field(default=None, description="bytes on the line that may wait; none: no limit")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return DropTailPort(rate, self.packets, self.bytes)


class TokenBucket(_Discipline):
    """Lets `burst` bytes pass at once and then the link's rate, as the kernel's tbf; what waits is limited as in drop-tail."""

    model: Literal["token-bucket"] = "token-bucket"
    burst: Annotated[Size, Field(gt=0)] = Field(description="bytes saved up while nothing is sent; no packet may be larger")
    packets: Packets | None = Field(default=None, description="packets that may wait; none: no limit")
    bytes: Size | None = Field(default=None, description="bytes on the line that may wait; none: no limit")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return TokenPort(rate, self.burst, self.packets, self.bytes)


class Red(_Discipline):
    """Random early detection (Floyd, Jacobson 1993), gentle: drops, or with `ecn` marks, more and more as the queue grows.

    Below `least` waiting packets on average nothing is dropped, at `most` a share of `p`, at twice `most` everything; the
    average moves by `weight` with each packet.
    """

    model: Literal["red"] = "red"
    least: Packets = 5
    most: Packets = 15
    packets: Packets = Field(default=60, description="packets that may wait at all")
    p: Annotated[Fraction, Field(gt=0)] = 0.1
    weight: Annotated[Fraction, Field(gt=0)] = 0.002
    ecn: bool = Field(default=False, strict=True, description="mark where it would drop early")

    @model_validator(mode="after")
    def _ordered(self) -> "Red":
        if not self.least < self.most <= self.packets:
            raise ValueError(f"red needs least < most <= packets, not {self.least}, {self.most}, {self.packets}")
        return self

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        return RedPort(rate, self.packets, key, thresholds=(self.least, self.most), p=self.p, weight=self.weight, ecn=self.ecn)


class Codel(_Discipline):
    """Controlled delay (RFC 8289): once packets waited over `target` for an `interval`, drops (`ecn`: marks) at the head."""

    model: Literal["codel"] = "codel"
    target: Annotated[Duration, Field(gt=0)] = 0.005
    interval: Annotated[Duration, Field(gt=0)] = 0.1
    packets: Packets = Field(default=1000, description="packets that may wait at all")
    ecn: bool = Field(default=False, strict=True, description="mark where it would drop")

    def port(self, rate: float, key: int) -> Port:
        """See `_Discipline`."""
        del key
        return CodelPort(rate, self.packets, target=self.target, interval=self.interval, ecn=self.ecn)


Discipline: TypeAlias = DropTail | TokenBucket | Red | Codel
AnyQueue: TypeAlias = Annotated[
    Annotated[Packets | None, Tag("plain")] | Annotated[Annotated[Discipline, Discriminator("model")], Tag("model")],
    PLAIN_OR_MODEL,
]
"""How many packets may wait (none: no limit), or a discipline by its name."""
