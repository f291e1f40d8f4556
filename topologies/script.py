"""A list of packets to lose on one link: by identity, by kind of message, by number."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Drop", "Script"]

Number = Annotated[int, Field(strict=True, ge=1)]


class Drop(BaseModel):
    """Packets to lose: those that every key given holds for."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    identity: Annotated[int, Field(strict=True, ge=0, lt=2**64)] | None = Field(default=None, description="of the content")
    occurrence: Number | None = Field(default=None, description="the how manieth of this identity on this link; none: each")
    kind: str | None = Field(default=None, min_length=1, description="kind of message, as in the results: data, nack ...")
    number: Number | tuple[Number, Number] | None = Field(
        default=None, description="the how manieth of this kind (of all without a kind) on this link, or [first, last]"
    )
    receiver: Number | None = Field(default=None, description="only on the link of this member of a counted group, from 1")

    @model_validator(mode="after")
    def _says(self) -> "Drop":
        if self.identity is None and self.kind is None and self.number is None:
            raise ValueError("a drop needs an identity, a kind or a number")
        if self.occurrence is not None and self.identity is None:
            raise ValueError("occurrence needs an identity")
        if isinstance(self.number, tuple) and self.number[0] > self.number[1]:
            raise ValueError(f"number {list(self.number)} is not [first, last]")
        return self

    def holds(self, identity: int | None, occurrence: int, kind: str, of_kind: int, of_all: int) -> bool:
        """Is the packet with these counts meant?"""
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
    """Counts the packets of one link and says which are on the list."""

    __slots__ = ("_all", "_drops", "_kinds", "_wanted")

    def __init__(self, drops: Sequence[Drop], member: int) -> None:
        self._drops = [drop for drop in drops if drop.receiver in (None, member + 1)]
        self._all = 0
        self._kinds: dict[str, int] = {}
        # Only identities on the list are counted.
        self._wanted = {drop.identity: 0 for drop in self._drops if drop.identity is not None}

    def lost(self, identity: int | None, kind: str) -> bool:
        """Is the packet arriving now lost? Counts it."""
        self._all += 1
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        occurrence = 0
        if identity in self._wanted:
            occurrence = self._wanted[identity] = self._wanted[identity] + 1
        return any(drop.holds(identity, occurrence, kind, self._kinds[kind], self._all) for drop in self._drops)
