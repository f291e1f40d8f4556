"""Columns of a table whose names are known only with its data, as of the rows of a sweep."""

import re
from collections.abc import Iterable, Mapping

from experiments.output.budget import Column

__all__ = ["columns_of"]

_PREFIXES = ("p_", "m_")
"""Prefixes of stored columns: parameters of a sweep, and metrics."""
_FIRST = 1000
"""Rank of the first column without a rank of its own."""


def columns_of(names: Iterable[str], ranks: Mapping[str, int], units: Mapping[str, str] | None = None) -> list[Column]:
    """Return a column for each name, by its last part (dots are stored as __), unless that is another column's.

    A whole name comes before the last part of another, then the first one; as in SQL, capital letters make no difference.
    Columns of parameters have rank 0, those in `ranks` theirs (below 1000), and the others follow in their order.
    """
    known = list(names)
    owner: dict[str, str] = {}
    for name in sorted(known, key=lambda name: _last(name) != name):
        owner.setdefault(_last(name).lower(), name)
    units = units or {}
    return [
        Column(
            _last(name) if owner[_last(name).lower()] == name else name,
            units.get(_bare(name), ""),
            rank=0 if name.startswith("p_") else ranks.get(_bare(name), _FIRST + place),
        )
        for place, name in enumerate(known)
    ]


def _bare(name: str) -> str:
    return name[2:] if name.startswith(_PREFIXES) else name


def _last(name: str) -> str:
    return re.split(r"\.|__", _bare(name))[-1]
