"""Authentication of what tunnels send, by keys of the sites and their publishers: HMAC-SHA-256, protection from replay.

Key id, time and MAC stand at the end (`MAC_SIZE` bytes), and the type of the datagram says so. The time is that of sending in
microseconds since 1970, or one more than that of the datagram before. What differs from the clock by more than `TOLERANCE` is
refused, and so is what is older than the newest of its site by more than `REORDERED`, or came before.
"""

from collections.abc import Callable, Mapping
from hmac import compare_digest, digest
from typing import Final

from protocols.errors import ReplayedError, StaleError, UnauthenticatedError
from protocols.machine import Codec, Message
from protocols.tunnel.messages import Brake, Carried, Presence, Report
from protocols.tunnel.wire import BRAKE, KEYED, MAC_SIZE, PACKET, PRESENCE, REPORT, read_told

__all__ = ["TOLERANCE", "KeyedTunnelCodec"]

TOLERANCE: Final = 60.0
"""Seconds by which the time of a datagram may differ from the receiver's clock."""
REORDERED: Final = 500_000
"""Microseconds by which a datagram may be older than the newest of its site."""
MOST: Final = 65_536
_MAC: Final = 16
_TIME: Final = 7


class KeyedTunnelCodec:
    """A codec that authenticates what tunnels send each other and publishers; packets of the group pass as they are.

    `keys` maps an id to a key, of which the first signs. `clock` returns seconds since 1970.
    """

    def __init__(self, inner: Codec, keys: Mapping[int, bytes], clock: Callable[[], float]) -> None:
        self._inner, self._keys, self._clock = inner, dict(keys), clock
        self._signer = next(iter(keys))
        self._latest = 0
        self._newest: dict[bytes, int] = {}
        self._recent: dict[bytes, None] = {}

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload."""
        data = self._inner.encode(message)
        if not isinstance(message, (Brake, Carried, Presence, Report)):
            return data
        self._latest = max(self._latest + 1, int(self._clock() * 1e6))
        signed = bytes([data[0] | KEYED]) + data[1:] + bytes([self._signer]) + self._latest.to_bytes(_TIME)
        return signed + _mac(self._keys[self._signer], signed)

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises a WireError whose class says what is wrong."""
        kind = data[0] & ~KEYED if data else 0
        if kind not in (PACKET, PRESENCE, REPORT, BRAKE):
            return self._inner.decode(data)
        if not data[0] & KEYED or len(data) < MAC_SIZE + 2:
            raise UnauthenticatedError("a datagram of a tunnel without a MAC")
        key = self._keys.get(data[-MAC_SIZE])
        if key is None or not compare_digest(_mac(key, data[:-_MAC]), data[-_MAC:]):
            raise UnauthenticatedError(f"key {data[-MAC_SIZE]} is not known, or the MAC is wrong")
        self._check_new(data, int.from_bytes(data[1 - MAC_SIZE : -_MAC]))
        return self._inner.decode(data) if kind == PACKET else read_told(bytes([kind]) + data[1:-MAC_SIZE])

    def _check_new(self, data: bytes, sent: int) -> None:
        """Raise StaleError or ReplayedError for an authentic datagram that is not new."""
        if abs(sent - self._clock() * 1e6) > TOLERANCE * 1e6:
            raise StaleError(f"sent at {sent / 1e6:.0f} s, which is more than {TOLERANCE:.0f} s from this clock")
        site, mac = data[2:6], data[-_MAC:]
        newest = self._newest.get(site, sent)
        if sent < newest - REORDERED or mac in self._recent:
            raise ReplayedError("a datagram that came before, or is older than those remembered")
        if site not in self._newest and len(self._newest) >= MOST:
            del self._newest[next(iter(self._newest))]
        self._newest[site] = max(newest, sent)
        self._recent[mac] = None
        if len(self._recent) > MOST:
            del self._recent[next(iter(self._recent))]


def _mac(key: bytes, data: bytes) -> bytes:
    return digest(key, data, "sha256")[:_MAC]
