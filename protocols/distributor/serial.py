"""Sequence numbers of 32 bits, signed on the wire, as numbers that do not wrap."""

__all__ = ["on_wire", "unwrap"]

_HALF = 1 << 31
_MASK = (1 << 32) - 1


def on_wire(number: int) -> int:
    """Return the low 32 bits of a number as a signed one."""
    return ((number + _HALF) & _MASK) - _HALF


def unwrap(seqno: int, near: int) -> int:
    """Return the number with these low 32 bits that is closest to `near`."""
    return near + on_wire(seqno - near)
