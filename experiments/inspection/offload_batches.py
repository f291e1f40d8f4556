"""Split batches captured before segmentation offload: one captured datagram may hold several NORM messages.

All messages of a batch but the last have equal size, which is stored nowhere. The second message is located by its sequence
number, which follows the first, and the repeated source id and instance id.
"""

__all__ = ["messages_in"]

_VERSION = 1
_CONTENT, _FEEDBACK = (1, 2, 3), (4, 5)
_SHORTEST = 16


def messages_in(payload: bytes) -> list[bytes]:
    """Return the messages of a datagram, usually one; a payload that does not parse as a batch is returned whole."""
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
    """Return whether `part` can be message number `place` of the batch that begins with `first`."""
    if len(part) < _SHORTEST or part[0] >> 4 != _VERSION or part[4:8] != first[4:8]:
        return False
    if first[0] & 15 in _CONTENT:
        return part[0] & 15 in _CONTENT and part[2:4] == _next(first, place)
    return part[0] & 15 in _FEEDBACK
