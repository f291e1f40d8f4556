"""Reed-Solomon erasure coding over GF(2^16) (RFC 5510, section 8), the code of FEC encoding id 2 with m = 16.

The interface, numbering and shortening are those of `protocols.fec.reed_solomon`, with k + parity <= 65535. A symbol is read as
16-bit elements in little-endian order, as NRL NORM does; symbols are padded with a zero to an even length, and so are results.

Symbol i of the code is the value at the point x_i of the polynomial of degree < k that has the source symbols as its values at
x_0 .. x_(k-1). RFC 5510's Vandermonde matrix has x_0 = 0 and x_i = alpha^(i-1). So any k symbols give any other one by Lagrange
interpolation, and encoding and decoding are one sum. Its coefficients are products of differences of powers of alpha, which
sums of logarithms give in closed form: no matrix is inverted, and their cost is that of the coefficients alone.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from protocols.errors import UsageError

__all__ = ["MAX_SYMBOLS_16", "decode_16", "encode_16"]

MAX_SYMBOLS_16 = 65535
"""Most source and parity symbols a block may have together."""
_ORDER: Final = 65535
"""Order of alpha: logarithms are numbers modulo this."""
_POLYNOMIAL: Final = 0x1100B
_ELEMENTS: Final = 1 << 18
"""Products of elements computed at once: a few megabytes."""

_Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
_Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.uint16]]"
_Logs: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"


def encode_16(k: int, parity: int, sources: Sequence[bytes], wanted: Sequence[int]) -> list[bytes]:
    """Return the parity symbols numbered `wanted` (0 to parity - 1) of the block with these `sources`, of an even length.

    Raises UsageError for a block size or parity numbers out of range.
    """
    _check(k, parity, len(sources), wanted)
    if not wanted:
        return []
    return _combined(sources, [_log_row(k, len(sources), k + number) for number in wanted])


def decode_16(k: int, parity: int, count: int, sources: Mapping[int, bytes], parities: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the missing ones of the `count` source symbols of a block, by index, all of one even length.

    As many of `parities` are used as source symbols are missing; with fewer, or with a block size out of range, UsageError is
    raised.
    """
    missing = [index for index in range(count) if index not in sources]
    chosen = sorted(parities)[: len(missing)]
    _check(k, parity, count, chosen)
    if len(chosen) < len(missing):
        raise UsageError(f"{len(missing)} source symbols are missing, but only {len(chosen)} parity symbols are given")
    if not missing:
        return {}
    present = sorted(sources)
    symbols = [*(sources[index] for index in present), *(parities[number] for number in chosen)]
    points = np.array([*present, *(k + number for number in chosen)], dtype=np.int64)
    coefficients = _log_coefficients(k, points, np.array(missing, dtype=np.int64), [k + number for number in chosen])
    return dict(zip(missing, _combined(symbols, coefficients), strict=True))


def _check(k: int, parity: int, count: int, indices: Sequence[int]) -> None:
    if not (1 <= count <= k and parity >= 0 and k + parity <= MAX_SYMBOLS_16):
        allowed = f"1 to {MAX_SYMBOLS_16} in total"
        raise UsageError(f"block of {count} of {k} source and {parity} parity symbols; allowed are {allowed}")
    if not all(0 <= j < parity for j in indices):
        raise UsageError(f"parity symbols {list(indices)} are out of range; the block has {parity}")


# -- the field ---------------------------------------------------------------------------------------------------------


@cache
def _tables() -> tuple[_Elements, _Logs]:
    """Return powers of alpha and logarithms. The logarithm of 0 is so large that a sum with it finds a power 0."""
    powers = np.zeros(4 * _ORDER + 1, dtype=np.uint16)
    logs = np.zeros(_ORDER + 1, dtype=np.int32)
    element = 1
    for exponent in range(_ORDER):
        powers[exponent] = element
        logs[element] = exponent
        element <<= 1
        if element > _ORDER:
            element ^= _POLYNOMIAL
    powers[_ORDER : 2 * _ORDER] = powers[:_ORDER]
    logs[0] = 2 * _ORDER
    return powers, logs


@cache
def _factorials() -> _Numbers:
    """Return, by n, the logarithm of (alpha^1 - 1) (alpha^2 - 1) ... (alpha^n - 1), for n < 65535."""
    powers, logs = _tables()
    factors = logs[powers[1:_ORDER] ^ 1].astype(np.int64)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(factors)))


def _log_difference(a: _Numbers, b: "_Numbers | np.int64") -> _Numbers:
    """Return the logarithms of x_a - x_b, elementwise; a and b differ."""
    powers, logs = _tables()
    value_a = np.where(a > 0, powers[np.maximum(a - 1, 0)], 0)
    value_b = np.where(b > 0, powers[np.maximum(b - 1, 0)], 0)
    return logs[value_a ^ value_b].astype(np.int64)


def _log_products(k: int, points: _Numbers) -> _Numbers:
    """Return, by point p, the logarithm of the product of x_p - x_i over all i < k other than p."""
    factorials, last = _factorials(), k - 2
    exponents = points - 1
    # The factors x_p - alpha^i with i below and above the exponent of x_p; for a parity point none is above.
    below = np.minimum(exponents, last + 1)
    lower = below * (below - 1) // 2 + factorials[np.maximum(exponents, 0)] - factorials[np.maximum(exponents - below, 0)]
    above = np.maximum(last - exponents, 0)
    upper = exponents * above + factorials[above]
    at_zero = (k - 1) * (k - 2) // 2
    return np.where(points > 0, exponents + lower + upper, at_zero) % _ORDER


@lru_cache(maxsize=8)
def _log_weights(k: int, count: int) -> _Numbers:
    """Return `_log_products` of the first `count` of the k source points."""
    return _log_products(k, np.arange(count, dtype=np.int64))


def _log_row(k: int, count: int, point: int) -> _Numbers:
    """Return the logarithms of the coefficients by which `count` source symbols of k, the rest zeros, give a parity symbol."""
    here = np.array([point], dtype=np.int64)
    rows = np.arange(count, dtype=np.int64)
    return (_log_products(k, here) - _log_difference(here, rows) - _log_weights(k, count)) % _ORDER


def _log_coefficients(k: int, points: _Numbers, missing: _Numbers, parities: Sequence[int]) -> list[_Numbers]:
    """Return, by missing source symbol, the logarithms of the coefficients of the symbols at `points`.

    Of the k source points the `missing` are replaced by `parities`; source points that are neither given nor missing are zeros.
    """
    known, lost = _log_products(k, points), _log_products(k, missing)
    for gone in missing:
        other = points != gone
        known[other] -= _log_difference(points[other], np.int64(gone))
        rest = missing != gone
        lost[rest] -= _log_difference(missing[rest], np.int64(gone))
    for parity in parities:
        other = points != parity
        known[other] += _log_difference(points[other], np.int64(parity))
        lost += _log_difference(missing, np.int64(parity))
    return [(log - _log_difference(index, points) - known) % _ORDER for index, log in zip(missing, lost, strict=True)]


def _combined(symbols: Sequence[bytes], coefficients: Sequence[_Numbers]) -> list[bytes]:
    """Return, for each row of logarithms of coefficients, the sum of the symbols multiplied by them."""
    powers, logs = _tables()
    size = max(map(len, symbols))
    size += size & 1
    words = np.frombuffer(b"".join([symbol.ljust(size, b"\0") for symbol in symbols]), dtype="<u2")
    values = logs[words].reshape(len(symbols), size // 2)
    step = max(1, _ELEMENTS // max(1, size // 2))
    results = []
    for row in coefficients:
        factors, total = row.astype(np.int32)[:, None], np.zeros(size // 2, dtype=np.uint16)
        for start in range(0, len(symbols), step):
            products = powers[values[start : start + step] + factors[start : start + step]]
            total ^= np.bitwise_xor.reduce(products, axis=0)
        results.append(total.astype("<u2").tobytes())
    return results
