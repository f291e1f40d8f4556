"""Damaged copies of messages, for the rule that bad bytes from the network never make a machine raise."""

from contextlib import suppress
from typing import Final

from protocols.errors import WireError
from protocols.machine import Codec, Message
from protocols.rng import Rng, key_of

__all__ = ["Damage"]

MOST: Final = 2000
"""Copies that are made in all."""
OF_EACH: Final = 8
"""Payloads of a message that are damaged."""


class Damage:
    """Make copies of a message with damaged fields; see `FakeHost.damage`. Those that the codec refuses are left out."""

    def __init__(self, codec: Codec) -> None:
        self.copies = 0
        """How many were made."""
        self._codec, self._rng = codec, Rng(key_of(1, "damage"))

    def __call__(self, message: Message) -> list[Message]:
        """Return damaged copies of a message; none after `MOST`."""
        found: list[Message] = []
        for _ in range(min(OF_EACH, MOST - self.copies)):
            with suppress(WireError):
                found.append(self._codec.decode(self._damaged(self._codec.encode(message))))
        self.copies += len(found)
        return found

    def _damaged(self, payload: bytes) -> bytes:
        """Return a payload with one byte changed, or four bytes set, which makes a number very large or 0."""
        changed, rng = bytearray(payload), self._rng
        place = int(rng.uniform() * len(payload))
        if rng.uniform() < 0.5:
            changed[place] ^= 1 + int(rng.uniform() * 255)
        else:
            piece = changed[place : place + 4]
            changed[place : place + 4] = (b"\xff" if rng.uniform() < 0.5 else b"\x00") * len(piece)
        return bytes(changed)
