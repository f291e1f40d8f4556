"""Batches that a capture shows whole: with segmentation offload the kernel cuts a batch only after the capture saw it.

All messages of a batch but the last are of equal size and nothing says of what size, so the second one is looked for: it has
the sequence number that follows and repeats who sends it.
"""

__all__ = ["messages_in"]

_VERSION = 1
_CONTENT, _FEEDBACK = (1, 2, 3), (4, 5)
_SHORTEST = 16


def messages_in(payload: bytes) -> list[bytes]:
    """The messages of a datagram, which is usually one; parts that do not go on as a batch does are left in one piece."""
    if len(payload) < 2 * _SHORTEST:
        return [payload]
    kind = payload[0] & 15
    if kind in _CONTENT:
        unit = payload.find(_next(payload, 1) + payload[4:12], _SHORTEST + 2) - 2
    elif kind in _FEEDBACK:
        unit = payload.find(payload[4:14], _SHORTEST + 4) - 4
    else:
        return [payload]
    if unit < _SHORTEST:
        return [payload]
    parts = [payload[at : at + unit] for at in range(0, len(payload), unit)]
    follow = all(_follows(payload, part, place) for place, part in enumerate(parts))
    return parts if follow else [payload]


def _next(payload: bytes, step: int) -> bytes:
    return (int.from_bytes(payload[2:4]) + step & 0xFFFF).to_bytes(2)


def _follows(first: bytes, part: bytes, place: int) -> bool:
    """Is this the message at that place of the batch that begins with `first`?"""
    if len(part) < _SHORTEST or part[0] >> 4 != _VERSION or part[4:8] != first[4:8]:
        return False
    if first[0] & 15 in _CONTENT:
        return part[0] & 15 in _CONTENT and part[2:4] == _next(first, place)
    return part[0] & 15 in _FEEDBACK
