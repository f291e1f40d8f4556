"""Reed-Solomon erasure coding over GF(2^8) (RFC 5510, section 8), the code of FEC encoding ids 5, 129 and 2 with m = 8.

The code is systematic with `k` source symbols and `parity` parity symbols per block, k + parity <= 255. A *shortened* block
has d < k source symbols; the other k - d are zeros and are not sent. Parity symbols are numbered from 0: parity symbol j is row
k + j of the generator matrix, whatever d is, and is sent as encoding symbol d + j.

A parity symbol is as long as the longest source symbol of its block; shorter source symbols are padded with zeros. The
arithmetic is that of zfec, whose generator matrix is the one of RFC 5510.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from zfec import Decoder, Encoder

from protocols.errors import UsageError

__all__ = ["MAX_SYMBOLS", "decode_8", "encode_8"]

MAX_SYMBOLS = 255
"""Most source and parity symbols a block may have together."""


def encode_8(k: int, parity: int, sources: Sequence[bytes], wanted: Sequence[int]) -> list[bytes]:
    """Return the parity symbols numbered `wanted` (0 to parity - 1) of the block with these `sources`.

    Raises UsageError for a block size or parity numbers out of range.
    """
    _check_block(k, parity, len(sources))
    _check_parity(parity, wanted)
    size = max(map(len, sources))
    return cast(list[bytes], _encoder(k, parity).encode(_filled(sources, size, k), tuple(k + j for j in wanted)))


def decode_8(k: int, parity: int, count: int, sources: Mapping[int, bytes], parities: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the missing ones of the `count` source symbols of a block, by index.

    `sources` and `parities` are the symbols received, by index. As many parity symbols are used as source symbols are missing;
    with fewer, or with a block size out of range, UsageError is raised. Decoded symbols have the length of the longest symbol
    given: the caller cuts the last symbol of an object.
    """
    _check_block(k, parity, count)
    missing = [index for index in range(count) if index not in sources]
    chosen = sorted(parities)[: len(missing)]
    if len(chosen) < len(missing):
        raise UsageError(f"{len(missing)} source symbols are missing, but only {len(chosen)} parity symbols are given")
    _check_parity(parity, chosen)
    if not missing:
        return {}
    rows = [*sorted(sources), *range(count, k), *(k + j for j in chosen)]
    symbols = [*(sources[index] for index in sorted(sources)), *(parities[j] for j in chosen)]
    size = max(map(len, symbols))
    symbols[len(sources) : len(sources)] = [_zeros(size)] * (k - count)
    whole = _decoder(k, parity).decode(_filled(symbols, size, k), tuple(rows))
    return {index: whole[index] for index in missing}


def _check_block(k: int, parity: int, count: int) -> None:
    if not (1 <= count <= k and parity >= 0 and k + parity <= MAX_SYMBOLS):
        raise UsageError(f"block of {count} of {k} source and {parity} parity symbols; allowed are 1 to {MAX_SYMBOLS} in total")


def _check_parity(parity: int, indices: Sequence[int]) -> None:
    if not all(0 <= j < parity for j in indices):
        raise UsageError(f"parity symbols {list(indices)} are out of range; the block has {parity}")


def _filled(symbols: Sequence[bytes], size: int, k: int) -> tuple[bytes, ...]:
    """Return the symbols padded to `size` bytes (those of full length are not copied), and zero symbols up to `k`."""
    full = [symbol if len(symbol) == size else symbol.ljust(size, b"\0") for symbol in symbols]
    return (*full, *[_zeros(size)] * (k - len(full)))


@lru_cache(maxsize=16)
def _zeros(size: int) -> bytes:
    return bytes(size)


@lru_cache(maxsize=32)
def _encoder(k: int, parity: int) -> Encoder:
    return Encoder(k, k + parity)


@lru_cache(maxsize=32)
def _decoder(k: int, parity: int) -> Decoder:
    return Decoder(k, k + parity)
