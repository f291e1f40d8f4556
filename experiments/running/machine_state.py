"""Read what machines state of themselves. One of a user's own may return anything."""

import sys
from collections.abc import Mapping
from numbers import Real

from protocols.errors import ContractError
from protocols.machine import Machine

__all__ = ["counts_of", "exceeded"]


def counts_of(machine: Machine) -> dict[str, int]:
    """Return the counters of a machine. ContractError, which names file, class and method, for what is no such thing."""
    counts = machine.counts()
    if type(counts) is dict and set(map(type, counts.values())) <= {int}:
        # Nearly always, and the check below takes several microseconds.
        return counts
    # The difference is 0 of all numbers but infinite ones and nan, which JSON and means have no place for.
    if not isinstance(counts, Mapping) or not all(isinstance(each, Real) and each - each == 0 for each in counts.values()):
        raise _refusal(machine, "counts", counts, "whole numbers by name")
    return counts


def exceeded(machine: Machine) -> list[tuple[str, int, int]]:
    """Return what a machine keeps beyond its limits, as (name, kept, allowed); ContractError as for `counts_of`."""
    held = machine.held()
    try:
        return [(name, kept, limit) for name, (kept, limit) in held.items() if kept > limit]
    except (AttributeError, TypeError, ValueError):
        raise _refusal(machine, "held", held, "pairs (kept now, allowed) by name") from None


def _refusal(machine: Machine, method: str, returned: object, allowed: str) -> ContractError:
    made = type(machine)
    file = getattr(sys.modules.get(made.__module__), "__file__", made.__module__)
    return ContractError(f"{file}: {made.__name__}.{method}() returns {returned!r}; {allowed} are allowed")
