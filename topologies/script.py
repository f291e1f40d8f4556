"""Scripted losses: a list of the packets a link loses, by identity, by message kind and by number."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Drop", "Script"]

Number = Annotated[int, Field(strict=True, ge=1)]


class Drop(BaseModel):
    """A packet to lose: one that matches every key given."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    identity: Annotated[int, Field(strict=True, ge=0, lt=2**64)] | None = Field(
        default=None, description="64-bit identity of the content."
    )
    occurrence: Number | None = Field(
        default=None, description="Occurrence number of this packet identity on the link (1 = first); none: every occurrence."
    )
    kind: str | None = Field(default=None, min_length=1, description="Message kind as in results: data, nack, ...")
    number: Number | tuple[Number, Number] | None = Field(
        default=None,
        description="Number of the packet among those of this kind (or of all) on the link (1 = first), or [first, last].",
    )
    receiver: Number | None = Field(default=None, description="Only on the link of this member of a counted group (1 = first).")

    @model_validator(mode="after")
    def _says(self) -> "Drop":
        if self.identity is None and self.kind is None and self.number is None:
            raise ValueError("a drop needs an identity, a kind or a number")
        if self.occurrence is not None and self.identity is None:
            raise ValueError("occurrence needs an identity")
        if isinstance(self.number, tuple) and self.number[0] > self.number[1]:
            raise ValueError(f"number {list(self.number)} is not [first, last]")
        return self

    def matches(self, identity: int | None, occurrence: int, kind: str, of_kind: int, of_all: int) -> bool:
        """Return whether a packet matches; `of_kind` and `of_all` are its numbers among its kind and among all packets."""
        if self.identity is not None and self.identity != identity:
            return False
        if self.occurrence is not None and self.occurrence != occurrence:
            return False
        if self.kind is None:
            return self._counts(of_all)
        return self.kind == kind and self._counts(of_kind)

    def _counts(self, number: int) -> bool:
        if isinstance(self.number, tuple):
            return self.number[0] <= number <= self.number[1]
        return self.number is None or self.number == number


class Script:
    """Loss sampler of one link: counts its packets and loses those that match a drop; `member` is its index in a group."""

    __slots__ = ("_all", "_drops", "_kinds", "_wanted")

    def __init__(self, drops: Sequence[Drop], member: int) -> None:
        self._drops = [drop for drop in drops if drop.receiver in (None, member + 1)]
        self._all = 0
        self._kinds: dict[str, int] = {}
        # Only identities on the list are counted.
        self._wanted = {drop.identity: 0 for drop in self._drops if drop.identity is not None}

    def lost(self, identity: int | None, kind: str) -> bool:
        """Return whether the packet arriving now is lost. Counts it."""
        self._all += 1
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        occurrence = 0
        if identity in self._wanted:
            occurrence = self._wanted[identity] = self._wanted[identity] + 1
        return any(drop.matches(identity, occurrence, kind, self._kinds[kind], self._all) for drop in self._drops)
