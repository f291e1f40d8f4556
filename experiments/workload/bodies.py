"""Bodies of messages: pseudo-random bytes that subscribers can make again to compare."""

from functools import lru_cache
from hashlib import shake_128

from protocols.rng import key_of, mix

__all__ = ["body_of"]

BLOCK = 1 << 16


@lru_cache(maxsize=64)
def _block(key: int) -> bytes:
    """Return 64 kB of SHAKE-128 (FIPS 202) for a key, equal on every machine."""
    return shake_128(key.to_bytes(8, "little")).digest(BLOCK)


def body_of(seed: int, client: int, number: int, size: int) -> bytes:
    """Return the body of a message of a client: a block of the client's own, begun at a place that depends on the number."""
    block = _block(key_of(seed, "body", client))
    start = mix(number) % BLOCK
    piece = block[start : start + size]
    while len(piece) < size:
        piece += block[: size - len(piece)]
    return piece
