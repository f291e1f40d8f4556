"""Classes of service: the rank of a DSCP (RFC 2474) in a queue of strict priority."""

from typing import Final

__all__ = ["DEFAULT_RANK", "RANKS", "rank_of"]

_LOWER_EFFORT: Final = (1, 8)
"""LE (RFC 8622) and CS1, which stood for it before (RFC 3662)."""
_EXPEDITED: Final = (44, 46)
"""VOICE-ADMIT (RFC 5865) and EF (RFC 3246)."""


def _rank(dscp: int) -> int:
    if dscp in _LOWER_EFFORT:
        return 0
    precedence = dscp >> 3
    return 1 + precedence + (precedence > 5 or dscp in _EXPEDITED)


_RANKS: Final = tuple(map(_rank, range(64)))
RANKS: Final = 1 + max(_RANKS)
"""The number of ranks."""
DEFAULT_RANK: Final = _RANKS[0]


def rank_of(dscp: int) -> int:
    """Return the rank of a DSCP, from 0; packets of a higher rank are sent first.

    Classes rank by their class selector, the first three bits, so that packets of an AF class keep their order (RFC 2597).
    Expedited forwarding is before CS5, lower effort behind the default.
    """
    return _RANKS[dscp]
