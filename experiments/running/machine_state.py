"""Read what machines state of themselves. One of a user's own may return anything."""

import sys
from collections.abc import Mapping
from numbers import Real

from protocols.errors import ContractError
from protocols.machine import Machine

__all__ = ["counts_of", "held_by"]


def counts_of(machine: Machine) -> dict[str, int]:
    """Return the counters of a machine. ContractError, which names file, class and method, for what is no such thing."""
    counts = machine.counts()
    if not isinstance(counts, Mapping) or not all(isinstance(count, Real) for count in counts.values()):
        raise _refusal(machine, "counts", counts, "whole numbers by name")
    return counts


def held_by(machine: Machine) -> dict[str, tuple[int, int]]:
    """Return the bounded state of a machine; ContractError as for `counts_of`."""
    held = machine.held()
    if not isinstance(held, Mapping) or not all(isinstance(each, tuple) and len(each) == 2 for each in held.values()):
        raise _refusal(machine, "held", held, "pairs (kept now, allowed) by name")
    return held


def _refusal(machine: Machine, method: str, returned: object, allowed: str) -> ContractError:
    made = type(machine)
    file = getattr(sys.modules.get(made.__module__), "__file__", made.__module__)
    return ContractError(f"{file}: {made.__name__}.{method}() returns {returned!r}; {allowed} are allowed")
