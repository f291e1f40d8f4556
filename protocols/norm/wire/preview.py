"""What the first bytes of a packet tell of its message, for machines that decide before it is decoded."""

from typing import Final

from protocols.norm.wire.commands import TYPE_CMD
from protocols.norm.wire.content import TYPE_DATA, TYPE_INFO
from protocols.norm.wire.feedback import TYPE_ACK, TYPE_NACK
from protocols.norm.wire.frame import VERSION

__all__ = ["feedback_to", "is_nack", "sender_in"]

_OF_SENDERS: Final = frozenset(VERSION << 4 | kind for kind in (TYPE_INFO, TYPE_DATA, TYPE_CMD))
_FEEDBACK: Final = frozenset(VERSION << 4 | kind for kind in (TYPE_NACK, TYPE_ACK))
_SHORTEST_FEEDBACK: Final = 14
_NACK: Final = bytes((VERSION << 4 | TYPE_NACK,))


def sender_in(data: bytes) -> int | None:
    """Return the node id of the sender whose DATA, INFO or CMD this is; None for anything else."""
    return int.from_bytes(data[4:8]) if data and data[0] in _OF_SENDERS else None


def feedback_to(data: bytes) -> tuple[int, int] | None:
    """Return the sender's node id and instance id that a NACK or an ACK is for; None for anything else."""
    if len(data) < _SHORTEST_FEEDBACK or data[0] not in _FEEDBACK:
        return None
    return int.from_bytes(data[8:12]), data[12] << 8 | data[13]


def is_nack(data: bytes) -> bool:
    """Return whether this is a NACK."""
    return data[:1] == _NACK
