"""Wire format of the messages between a relay and its clients. Integers are unsigned and big-endian.

A message is its type (1) and: PUBLISH and DELIVERY the message (`protocols.message_wire`); ACCEPTED number (8); SUBSCRIBE
number (4) and the destination in UTF-8; SUBSCRIBED and UNSUBSCRIBE number (4). Lengths are in bytes.
"""

import struct

from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.message_wire import LONGEST_DESTINATION, head_size, read_message, write_message
from protocols.relay.messages import Accepted, Delivery, Publish, Subscribe, SubscribeDone, Unsubscribe

__all__ = ["RelayCodec", "size_of"]

PUBLISH, DELIVERY, ACCEPTED, SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE = range(1, 7)
_NUMBER = struct.Struct("!BQ")
_SHORT = struct.Struct("!BI")
_CARRIERS: dict[int, type[Publish] | type[Delivery]] = {PUBLISH: Publish, DELIVERY: Delivery}


def size_of(message: Message) -> int:
    """Return the encoded bytes of a message, bodies without bytes included."""
    if isinstance(message, (Publish, Delivery)):
        return 1 + head_size(message.message) + message.message.size
    if isinstance(message, Accepted):
        return _NUMBER.size
    return _SHORT.size + (len(message.destination.encode()) if isinstance(message, Subscribe) else 0)


class RelayCodec:
    """Encodes and decodes the messages; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message. UsageError for a message of another protocol, or a value out of its field's range."""
        try:
            if isinstance(message, (Publish, Delivery)):
                kind = PUBLISH if isinstance(message, Publish) else DELIVERY
                return bytes([kind]) + write_message(message.message)
            if isinstance(message, Accepted):
                return _NUMBER.pack(ACCEPTED, message.number)
            if isinstance(message, Subscribe):
                return _SHORT.pack(SUBSCRIBE, message.number) + message.destination.encode()
            if isinstance(message, (SubscribeDone, Unsubscribe)):
                return _SHORT.pack(SUBSCRIBED if isinstance(message, SubscribeDone) else UNSUBSCRIBE, message.number)
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        raise UsageError(f"{message} is no message of a relay")

    def decode(self, data: bytes) -> Message:
        """Return the message in a frame. Raises WireError and nothing else."""
        kind = data[0] if data else 0
        if kind in _CARRIERS:
            return _CARRIERS[kind](read_message(data[1:]))
        try:
            if kind == ACCEPTED:
                return Accepted(_NUMBER.unpack(data)[1])
            if kind == SUBSCRIBE:
                number, destination = _SHORT.unpack_from(data)[1], data[_SHORT.size :]
                if not 0 < len(destination) <= LONGEST_DESTINATION:
                    raise WireError(f"a destination of {len(destination)} bytes; 1 to {LONGEST_DESTINATION} are allowed")
                return Subscribe(number, destination.decode())
            if kind in (SUBSCRIBED, UNSUBSCRIBE):
                return (SubscribeDone if kind == SUBSCRIBED else Unsubscribe)(_SHORT.unpack(data)[1])
        except (struct.error, UnicodeDecodeError) as error:
            raise WireError(f"{len(data)} bytes are no message of a relay: {error}") from error
        raise WireError(f"unknown message type {kind}; known are {PUBLISH} to {UNSUBSCRIBE}")
