"""EXT_AUTH: every message with a MAC by a key of the group, and protected against replay (RFC 6584 5, group-keyed MAC).

The extension has 24 bytes and is the last of the header:

    0                   1                   2                   3
    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
   +---------------+---------------+-------+-----+-+---------------+
   |   HET = 1     |   HEL = 6     | ASID  |  0  |1|               |
   +---------------+---------------+-------+-----+-+               +
   |             anti-replay sequence number (40 bits)             |
   +---------------------------------------------------------------+
   |       HMAC-SHA-256 of the message, the first 16 bytes         |
   +---------------------------------------------------------------+

The MAC covers the whole message with its own field set to 0. ASID is the id of the key. The sequence number of a message is the
time at which it was sent, in microseconds since 1970, or one more than that of the message before, whichever is more: it grows
from one start of a node to the next, without stored state. Its low 40 bits travel. The higher bits, which follow from the
clock of the receiver, are an input of the key derivation, so a number never comes twice under one key.

A receiver drops what has no valid MAC, what is more than `TOLERANCE` from its own clock, and numbers of a source that it has
accepted before, or that are older than the `WINDOW` numbers it accepted last from that source (RFC 4303 3.4.3). From a sender
that restarted, it drops all that was sent before the restart.
"""

from collections.abc import Callable, Mapping
from hmac import HMAC, compare_digest, digest, new

from protocols.errors import ReplayedError, StaleError, UnauthenticatedError, UsageError
from protocols.machine import Codec, Message
from protocols.norm.wire.commands import TYPE_CMD
from protocols.norm.wire.sizes import AUTH_SIZE

__all__ = ["HET_AUTH", "TOLERANCE", "WINDOW", "AuthenticatedCodec", "Authenticator", "ReplayWindow"]

HET_AUTH = 1
TOLERANCE = 300.0
"""Seconds by which the time of a message may differ from the receiver's clock."""
WINDOW = 1024
"""Numbers accepted last that are remembered of each source."""
SOURCES = 4096
"""Sources whose numbers are remembered; of more, the ones silent for longest are forgotten."""

_MAC_SIZE = 16
_ZEROS = bytes(_MAC_SIZE)
_WORDS = AUTH_SIZE // 4
_HEAD = bytes((HET_AUTH, _WORDS))
_SHORTEST = 8 + AUTH_SIZE
_HAS_NUMBER = 1
"""The AR bit."""
_BITS = 40
_MASK = (1 << _BITS) - 1
_HALF = 1 << _BITS - 1
_DERIVED_KEPT = 64
_HIGHEST_LENGTH = 255


class Authenticator:
    """Computes and checks MACs; `keys` maps the id of a key (0 to 15) to the key, and the first signs."""

    __slots__ = ("_derived", "_keys", "_signer")

    def __init__(self, keys: Mapping[int, bytes]) -> None:
        self._keys = dict(keys)
        self._signer = next(iter(keys))
        self._derived: dict[tuple[int, int], HMAC] = {}

    def sign(self, message: bytes, number: int) -> bytes:
        """Return a NORM message with EXT_AUTH. UsageError if its header has no room for it."""
        words = message[1]
        end = words << 2
        if words + _WORDS > _HIGHEST_LENGTH:
            raise UsageError(f"header of {end} bytes; {_HIGHEST_LENGTH * 4 - AUTH_SIZE} at most with EXT_AUTH")
        fields = (self._signer << 4 | _HAS_NUMBER) << _BITS | number & _MASK
        header = b"".join((message[:1], bytes((words + _WORDS,)), message[2:end], _HEAD, fields.to_bytes(6)))
        payload = message[end:]
        return b"".join((header, self._mac(self._signer, number >> _BITS, header, payload), payload))

    def verify(self, data: bytes, now: int) -> int:
        """Return the sequence number of an authentic message, given the time in microseconds. Raises UnauthenticatedError."""
        end = data[1] << 2 if len(data) >= _SHORTEST else 0
        start = end - AUTH_SIZE
        if start < 8 or end > len(data) or data[start : start + 2] != _HEAD:
            raise UnauthenticatedError("no EXT_AUTH at the end of the header")
        flags = data[start + 2]
        key = flags >> 4
        if key not in self._keys or not flags & _HAS_NUMBER:
            raise UnauthenticatedError(f"EXT_AUTH with key {key}, which is not known, or without a sequence number")
        # Of all numbers with these low bits, the nearest to the clock.
        oldest = now - _HALF
        number = oldest + (int.from_bytes(data[start + 3 : start + 8]) - oldest & _MASK)
        mac = self._mac(key, number >> _BITS, data[: start + 8], data[end:])
        if not compare_digest(mac, data[start + 8 : end]):
            raise UnauthenticatedError(f"wrong MAC for key {key}")
        return number

    def _mac(self, key: int, period: int, header: bytes, payload: bytes) -> bytes:
        """Return the MAC of a message that has zeros between `header` and `payload`."""
        derived = self._derived.get((key, period))
        if derived is None:
            derived = self._derive(key, period)
        hashed = derived.copy()
        hashed.update(header + _ZEROS + payload)
        return hashed.digest()[:_MAC_SIZE]

    def _derive(self, key: int, period: int) -> HMAC:
        """Return an HMAC by the key of a period of 2**40 microseconds, which begins at `period` of them after 1970."""
        if len(self._derived) >= _DERIVED_KEPT:
            self._derived.clear()
        label = b"mcastlab NORM EXT_AUTH" + period.to_bytes(8, signed=True)
        derived = self._derived[key, period] = new(digest(self._keys[key], label, "sha256"), digestmod="sha256")
        return derived


class ReplayWindow:
    """The sequence numbers that were accepted from one source, and the instance of its latest message as a sender."""

    __slots__ = ("_floor", "_instance", "_recent", "highest")

    def __init__(self, first: int, instance: bytes) -> None:
        self._floor = -1
        self._recent = {first: None}
        self._instance = instance
        self.highest = first

    def take(self, number: int, instance: bytes) -> bool:
        """Accept a number; return False if it was accepted before or is older than those remembered.

        `instance` is that of a sender's message, empty for feedback. What comes from another instance than the latest message
        has to be newer than all before: it is of a restarted sender.
        """
        recent = self._recent
        if instance and instance != self._instance:
            if self._instance:
                if number <= self.highest:
                    return False
                self._floor = self.highest
                recent.clear()
            self._instance = instance
        if number <= self._floor or number in recent:
            return False
        recent[number] = None
        self.highest = max(self.highest, number)
        if len(recent) > WINDOW:
            oldest = next(iter(recent))
            del recent[oldest]
            self._floor = max(self._floor, oldest)
        return True


class AuthenticatedCodec:
    """A codec whose messages carry EXT_AUTH, and that decodes only authentic and new ones.

    `clock` returns the time in seconds since 1970. With `shared` the codec serves several nodes, as a simulator's does; else
    what it has sent itself is refused when it comes back.
    """

    __slots__ = ("_authenticator", "_clock", "_decode", "_encode", "_latest", "_own", "_shared", "_windows")

    def __init__(self, inner: Codec, keys: Mapping[int, bytes], clock: Callable[[], float], *, shared: bool = False) -> None:
        self._encode, self._decode = inner.encode, inner.decode
        self._authenticator = Authenticator(keys)
        self._clock = clock
        self._shared = shared
        self._latest = 0
        self._own: set[bytes] = set()
        self._windows: dict[bytes, ReplayWindow] = {}

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. Raises UsageError for a message that does not fit the wire."""
        plain = self._encode(message)
        self._latest = number = max(self._latest + 1, int(self._clock() * 1e6))
        if not self._shared:
            self._own.add(plain[4:8])
        return self._authenticator.sign(plain, number)

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises a WireError whose class says what is wrong."""
        now = int(self._clock() * 1e6)
        number = self._authenticator.verify(data, now)
        if abs(number - now) > TOLERANCE * 1e6:
            raise StaleError(f"sent {abs(number - now) / 1e6:.0f} s {'before' if number < now else 'after'} this clock's time")
        self._check_new(data, number)
        end = data[1] << 2
        header = b"".join((data[:1], bytes((data[1] - _WORDS,)), data[2 : end - AUTH_SIZE]))
        return self._decode(header + data[end:])

    def _check_new(self, data: bytes, number: int) -> None:
        """Accept the number of a message. Raises ReplayedError."""
        source, instance = data[4:8], data[8:10] if data[0] & 15 <= TYPE_CMD else b""
        window = self._windows.get(source)
        if source in self._own:
            raise ReplayedError("an own message that came back")
        if window is None:
            if len(self._windows) >= SOURCES:
                self._forget()
            self._windows[source] = ReplayWindow(number, instance)
        elif not window.take(number, instance):
            raise ReplayedError("a sequence number that was accepted before, or is older than those remembered")

    def _forget(self) -> None:
        """Forget an eighth of the sources, those silent for longest."""
        silent = sorted(self._windows, key=lambda source: self._windows[source].highest)
        for source in silent[: SOURCES // 8]:
            del self._windows[source]
