"""The codecs of FJM2: that of NORM, and BRAKE of the site's tunnel, which may have to be authentic."""

from collections.abc import Callable, Mapping
from typing import cast

from protocols.batches import RunCodec
from protocols.machine import Codec, Message
from protocols.norm import NormCodec
from protocols.norm.messages import NormMessage
from protocols.tunnel.authentication import KeyedTunnelCodec
from protocols.tunnel.messages import Brake, Presence
from protocols.tunnel.wire import BRAKE, KEYED, MAC_SIZE, PRESENCE, REPORT, TunnelCodec, read_told, write_told

__all__ = ["Fjm2Codec", "GuardedCodec", "GuardedRunCodec", "guarded"]


class Fjm2Codec(NormCodec):
    """Reads BRAKE, which publishers take, and PRESENCE, which concerns tunnels only and is no error.

    It has no keys: it reads what has a MAC as what has none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._readers |= {PRESENCE: _read, PRESENCE | KEYED: _read_keyed, BRAKE: _read, BRAKE | KEYED: _read_keyed}
        self._writers |= {Presence.kind: write_told, Brake.kind: write_told}


class GuardedCodec:
    """A node's codec that reads from tunnels only what has a MAC by one of `keys`; all else is for the codec `inner`.

    `clock` returns seconds since 1970.
    """

    def __init__(self, inner: Codec, keys: Mapping[int, bytes], clock: Callable[[], float]) -> None:
        self.encode, self._inner = inner.encode, inner.decode
        self._told = KeyedTunnelCodec(TunnelCodec(), keys, clock).decode

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises a WireError whose class says what is wrong."""
        is_told = bool(data) and data[0] & ~KEYED in (PRESENCE, REPORT, BRAKE)
        return self._told(data) if is_told else self._inner(data)


class GuardedRunCodec(GuardedCodec):
    """The same around a codec that reads and writes runs, which are packets of NORM."""

    def __init__(self, inner: RunCodec, keys: Mapping[int, bytes], clock: Callable[[], float]) -> None:
        super().__init__(inner, keys, clock)
        self.encode_run, self.decode_run = inner.encode_run, inner.decode_run


def guarded(inner: Codec, keys: Mapping[int, bytes], clock: Callable[[], float]) -> Codec:
    """Return a codec that takes from tunnels only what is authentic."""
    return GuardedRunCodec(inner, keys, clock) if isinstance(inner, RunCodec) else GuardedCodec(inner, keys, clock)


def _read(data: bytes, end: int) -> NormMessage:
    del end
    return cast(NormMessage, read_told(data))


def _read_keyed(data: bytes, end: int) -> NormMessage:
    """Read a message with a MAC, which is not checked."""
    return _read(bytes([data[0] & ~KEYED]) + data[1:-MAC_SIZE], end)
