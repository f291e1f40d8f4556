"""A finding of the doctor: what a parameter implies, and what to set in its place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["COST", "PROBLEM", "Finding"]

PROBLEM, COST = "problem", "cost"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that applies to a scenario.

    `severity` is `problem` where content does not arrive in time or at all, `cost` where it takes more time or traffic than it
    has to. `changes` are the values to give to `--set` (or, with a leading `--`, to this command) that follow the advice.
    """

    rule: str
    severity: str
    key: str
    value: str
    implies: str
    advice: str
    changes: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
