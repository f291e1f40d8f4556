"""Messages of cross traffic: loads, and receipts that acknowledge them."""

from dataclasses import dataclass
from functools import cache

from protocols.machine import Message
from protocols.rng import key_of

__all__ = ["Load", "Receipt", "is_cross", "load_of", "receipt_of"]

_LOW = (1 << 32) - 1


@dataclass(slots=True)
class Load(Message):
    """Packet `number` of a flow, `size` bytes of UDP payload."""

    flow: int
    number: int
    size: int
    identity: int | None = None

    def __init__(self, flow: int, number: int, size: int, identity: int | None = None) -> None:
        self.flow = flow
        self.number = number
        self.size = size
        self.identity = identity


@dataclass(slots=True)
class Receipt(Message):
    """Acknowledgement of packet `number` of a flow."""

    flow: int
    number: int
    identity: int | None = None

    def __init__(self, flow: int, number: int, identity: int | None = None) -> None:
        self.flow = flow
        self.number = number
        self.identity = identity


Load.kind = "cross"
Receipt.kind = "cross_receipt"


@cache
def _first_identity(kind: str, flow: int) -> int:
    return key_of(0, kind, flow) & ~_LOW


def _identity(kind: str, flow: int, number: int) -> int:
    # Packets with an identity do not change the losses of a session's control packets, which are keyed by their ordinals.
    return _first_identity(kind, flow) | number & _LOW


def load_of(flow: int, number: int, size: int) -> Load:
    """Return a load of `size` bytes of UDP payload, with its identity."""
    return Load(flow, number, size, _identity("cross", flow, number))


def receipt_of(flow: int, number: int) -> Receipt:
    """Return a receipt with its identity."""
    return Receipt(flow, number, _identity("receipt", flow, number))


def is_cross(message: Message) -> bool:
    """Return whether a message belongs to cross traffic."""
    return isinstance(message, (Load, Receipt))
