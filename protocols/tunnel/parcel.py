"""Fields that a tunnel reads of a packet: those for cutting loops and counting losses.

On a network packets are bytes. In a simulation they are messages of NORM, of which the same is read.
"""

from collections.abc import Hashable
from hashlib import blake2b
from typing import Final, NamedTuple

from protocols.machine import Message
from protocols.norm.messages import Command, Data, Info, NormMessage
from protocols.norm.wire.preview import sender_in
from protocols.norm.wire.sizes import AUTH_SIZE, size_of
from protocols.tunnel.messages import Opaque

__all__ = ["Parcel", "read_parcel"]

_GRTT_AT: Final = 10
_SHORTEST: Final = 12
"""Bytes of a sender's message up to the advertised GRTT."""


class Parcel(NamedTuple):
    """A packet to be carried, and its `size` in bytes.

    Equal packets have an equal `key`. `sender` and `sequence` (16 bits) are those of a message of a sender of NORM, which never
    repeats itself byte by byte; `grtt` is the code of the round-trip time that it advertises. None for all others.
    """

    message: Message
    size: int
    key: Hashable
    sender: int | None = None
    sequence: int = 0
    grtt: int = 0


def read_parcel(message: Message, is_authenticated: bool) -> Parcel | None:
    """Read a packet of the group; None for a message that is none, such as a datagram of a tunnel.

    `is_authenticated`: messages of NORM have an EXT_AUTH, which only the wire has.
    """
    if isinstance(message, Opaque):
        data = message.data
        key = blake2b(data, digest_size=8).digest()
        sender = sender_in(data) if len(data) >= _SHORTEST else None
        if sender is None:
            return Parcel(message, len(data), key)
        return Parcel(message, len(data), key, sender, data[2] << 8 | data[3], data[_GRTT_AT])
    if not isinstance(message, NormMessage):
        return None
    size = size_of(message) + (AUTH_SIZE if is_authenticated else 0)
    if isinstance(message, (Data, Info, Command)):
        origin, sequence = message.origin, message.sequence
        return Parcel(message, size, (message.kind, origin, sequence), origin.source_id, sequence, origin.grtt)
    return Parcel(message, size, repr(message))
