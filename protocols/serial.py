"""Serial number arithmetic of 16 bits, for object transport ids and message sequence numbers."""

__all__ = ["ahead", "before"]


def ahead(a: int, b: int) -> int:
    """Return the signed distance from `b` to `a` modulo 2**16, in [-32768, 32767]; positive if `a` is after `b`."""
    return ((a - b + 0x8000) & 0xFFFF) - 0x8000


def before(a: int, b: int) -> bool:
    """Return whether `a` is before `b`. At a distance of 2**15 the larger number is first, as in NRL's NORM."""
    delta = (a - b) & 0xFFFF
    return delta > 0x8000 or (delta == 0x8000 and a > b)
