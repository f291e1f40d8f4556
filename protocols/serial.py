"""Circular sequence numbers of 16 bits (object transport ids, message sequence numbers)."""

__all__ = ["ahead", "before"]


def ahead(a: int, b: int) -> int:
    """Signed distance from `b` to `a` on the 16-bit circle, in [-32768, 32767]; > 0: `a` comes after `b`."""
    return ((a - b + 0x8000) & 0xFFFF) - 0x8000


def before(a: int, b: int) -> bool:
    """Does `a` come before `b`? At the exact half circle the larger number comes first, as in NRL NORM."""
    delta = (a - b) & 0xFFFF
    return delta > 0x8000 or (delta == 0x8000 and a > b)
