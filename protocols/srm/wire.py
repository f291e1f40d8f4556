"""Wire format of SRM. Integers are unsigned and big-endian; field lengths below are in bytes.

DATA and END are those of `protocols.arq`. REQUEST (type 5) is its NACK, followed by the requester's distance to the source (4).
REPAIR (type 6) is its DATA with the distance to the requester (4) between the flags and the payload. SESSION (type 7) has a
header of its own: magic 0xA7 (1), type (1), number of positions (1), number of echoes (2), node (4), clock (4); then come the
positions, each source (4), instance (2), object id (4), unit (4), and the echoes, each node (4), clock (4), time held (4).
Distances and times are in microseconds.
"""

import struct
from functools import lru_cache

from protocols.arq.messages import Data, End, Nack
from protocols.arq.wire import DATA_OVERHEAD, MOST_UNITS, ArqCodec
from protocols.arq.wire import size_of as size_of_arq
from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.srm.messages import Repair, Request, SessionMessage, repair_of, request_of

__all__ = ["MOST_POSITIONS", "SrmCodec", "echoes_that_fit", "size_of"]

MAGIC = 0xA7
TYPE_DATA, TYPE_END, TYPE_NACK, REQUEST, REPAIR, SESSION = 1, 2, 4, 5, 6, 7
MOST_POSITIONS = 255

_HEAD = struct.Struct("!BBBHII")
_POSITION = struct.Struct("!IHII")
_ECHO = struct.Struct("!III")
_WORD = struct.Struct("!I")


def size_of(message: Message) -> int:
    """Return the bytes of UDP payload of a message, simulated content included."""
    if isinstance(message, SessionMessage):
        return _HEAD.size + len(message.positions) * _POSITION.size + len(message.echoes) * _ECHO.size
    return size_of_arq(message)


@lru_cache(maxsize=64)
def echoes_that_fit(segment: int, positions: int) -> int:
    """Return the echoes in a session message that is no longer than a DATA message with `segment` bytes; at least one."""
    room = DATA_OVERHEAD + segment - _HEAD.size - positions * _POSITION.size
    return min(max(room // _ECHO.size, 1), 0xFFFF)


class SrmCodec:
    """Encodes and decodes the messages of SRM; it keeps no state."""

    __slots__ = ("_arq",)

    def __init__(self) -> None:
        self._arq = ArqCodec()

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a value out of its field's range, or a message of another protocol."""
        try:
            if isinstance(message, SessionMessage):
                return _write_session(message)
            if isinstance(message, Request):
                return _typed(REQUEST, self._arq.encode(message)) + _WORD.pack(message.distance)
            if isinstance(message, Repair):
                plain = _typed(REPAIR, self._arq.encode(message))
                return plain[:DATA_OVERHEAD] + _WORD.pack(message.distance) + plain[DATA_OVERHEAD:]
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        if isinstance(message, (Data, End)):
            return self._arq.encode(message)
        raise UsageError(f"{message} is not an SRM message")

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises WireError and nothing else."""
        kind = data[1] if len(data) > 1 and data[0] == MAGIC else 0
        if kind in (TYPE_DATA, TYPE_END):
            return self._arq.decode(data)
        try:
            if kind == SESSION:
                return _read_session(data)
            if kind == REQUEST:
                (distance,) = _WORD.unpack(data[-_WORD.size :])
                nack = self._arq.decode(_typed(TYPE_NACK, data[: -_WORD.size]))
                assert isinstance(nack, Nack)
                return request_of(nack, distance)
            if kind == REPAIR:
                (distance,) = _WORD.unpack_from(data, DATA_OVERHEAD)
                plain = data[:DATA_OVERHEAD] + data[DATA_OVERHEAD + _WORD.size :]
                content = self._arq.decode(_typed(TYPE_DATA, plain))
                assert isinstance(content, Data)
                return repair_of(content, distance)
        except struct.error as error:
            raise WireError(f"{len(data)} bytes are not a message: {error}") from error
        raise WireError(f"{len(data)} bytes begin with {data[:2].hex()!r}, not with a7 and a type of SRM (01, 02, 05 to 07)")


def _typed(kind: int, data: bytes) -> bytes:
    """Return a message of `protocols.arq` with another type."""
    return data[:1] + bytes([kind]) + data[2:]


def _write_session(message: SessionMessage) -> bytes:
    head = _HEAD.pack(MAGIC, SESSION, len(message.positions), len(message.echoes), message.node, message.clock)
    positions = [_POSITION.pack(*position) for position in message.positions]
    return b"".join([head, *positions, *(_ECHO.pack(node, *echo) for node, echo in message.echoes.items())])


def _read_session(data: bytes) -> SessionMessage:
    _, _, positions, echoes, node, clock = _HEAD.unpack_from(data)
    middle = _HEAD.size + positions * _POSITION.size
    if len(data) != middle + echoes * _ECHO.size:
        raise WireError(f"SESSION of {len(data)} bytes with {positions} positions and {echoes} echoes")
    known = tuple(_POSITION.iter_unpack(data[_HEAD.size : middle]))
    if any(unit > MOST_UNITS for *_, unit in known):
        raise WireError(f"SESSION with a unit above {MOST_UNITS}")
    heard = {peer: (at, held) for peer, at, held in _ECHO.iter_unpack(data[middle:])}
    if len(heard) < echoes:
        raise WireError("SESSION with two echoes for a node")
    return SessionMessage(node, clock, known, heard)
