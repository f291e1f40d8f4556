"""Names of nodes in messages and as file names."""

from collections.abc import Iterable
from itertools import islice

__all__ = ["file_name", "first_names"]


def first_names(names: Iterable[object], most: int = 8) -> str:
    """Return the first `most` names, separated by commas, and an ellipsis if there are more; "none" without any."""
    listed = [str(name) for name in islice(names, most + 1)]
    return (", ".join(listed[:most]) or "none") + (", ..." if len(listed) > most else "")


def file_name(name: str) -> str:
    """Return the name of a node or link as that of a file in one folder: different names give different files.

    Slashes, per cent signs and a dot at the beginning are written as in URLs (RFC 3986).
    """
    quoted = name.replace("%", "%25").replace("/", "%2F")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
