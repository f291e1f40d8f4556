"""Protocols with one deliberate defect each, by which the rules that every run is checked with are checked themselves."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from protocols.spec import ProtocolSpec

__all__ = ["Mutant"]


class Mutant(NamedTuple):
    """A protocol with a defect. `about` says in one line what it does wrong."""

    spec: "ProtocolSpec"
    about: str
