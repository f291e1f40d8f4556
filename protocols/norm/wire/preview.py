"""Type and source of a packet from its first bytes, for machines that decide before it is decoded."""

from typing import Final

from protocols.norm.messages import Data, Info
from protocols.norm.wire.commands import COMMANDS, TYPE_CMD
from protocols.norm.wire.content import TYPE_DATA, TYPE_INFO
from protocols.norm.wire.feedback import FEEDBACK, TYPE_ACK, TYPE_NACK
from protocols.norm.wire.frame import VERSION

__all__ = ["KINDS", "feedback_to", "is_nack", "kind_in", "sender_in"]

_OF_SENDERS: Final = frozenset(VERSION << 4 | kind for kind in (TYPE_INFO, TYPE_DATA, TYPE_CMD))
_FEEDBACK: Final = frozenset(VERSION << 4 | kind for kind in (TYPE_NACK, TYPE_ACK))
_SHORTEST_FEEDBACK: Final = 14
_COMMAND: Final = VERSION << 4 | TYPE_CMD
_FLAVOUR_AT: Final = 12
_COMMANDS: Final = {layout.flavour: message.kind for message, layout in COMMANDS.items()}
_TYPES: Final = {
    VERSION << 4 | TYPE_INFO: Info.kind,
    VERSION << 4 | TYPE_DATA: Data.kind,
    **{VERSION << 4 | number: message.kind for number, (message, _) in FEEDBACK.items()},
}
KINDS: Final = frozenset((*_COMMANDS.values(), *_TYPES.values()))
"""All kinds of messages."""
_NACK: Final = bytes((VERSION << 4 | TYPE_NACK,))


def kind_in(data: bytes) -> str:
    """Return the kind of message that this is, empty for what is none."""
    if len(data) > _FLAVOUR_AT and data[0] == _COMMAND:
        return _COMMANDS.get(data[_FLAVOUR_AT], "")
    return _TYPES.get(data[0], "") if data else ""


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
