"""Registry of all measured families, and their execution."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from signal import SIG_IGN, SIGINT, signal
from types import ModuleType

from experiments.validation import (
    arq,
    channels,
    coding,
    congestion,
    connections,
    distributor,
    ethernet,
    implosion,
    layered,
    queues,
    srm,
    suppression,
)
from experiments.validation.references import Families, Measure, Reference, ReferenceCheck, check_values
from protocols.errors import UsageError

__all__ = ["families", "select", "validate"]

MODULES: tuple[ModuleType, ...] = (
    suppression,
    congestion,
    arq,
    coding,
    layered,
    srm,
    implosion,
    ethernet,
    channels,
    queues,
    connections,
    distributor,
)
"""Modules that measure families; add a new module here."""


def families() -> Families:
    """Return the measuring function of each family."""
    found: dict[str, Measure] = {}
    for module in MODULES:
        offered: Families = module.FAMILIES
        assert not found.keys() & offered.keys(), f"{module.__name__} offers what another module has"
        found.update(offered)
    return found


def select(references: Iterable[Reference], wanted: Iterable[str] = ()) -> list[Reference]:
    """Return the references of the families in `wanted` (default: all measured ones); UsageError for an unknown family."""
    known, chosen = families(), list(wanted)
    for name in chosen:
        if name not in known:
            raise UsageError(f"--family: value {name!r} is not allowed; one of {', '.join(sorted(known))}")
    return [reference for reference in references if reference.family in (chosen or known)]


def validate(references: Sequence[Reference], effort: float = 1.0, jobs: int = 1) -> Iterator[list[ReferenceCheck]]:
    """Yield the checks of each reference in order, measuring `jobs` references concurrently in processes."""
    measure = partial(_measure, effort=effort)
    if min(jobs, len(references)) < 2:
        yield from map(measure, references)
        return
    with Pool(min(jobs, len(references)), signal, (SIGINT, SIG_IGN)) as pool:
        yield from pool.imap(measure, references)


def _measure(reference: Reference, effort: float) -> list[ReferenceCheck]:
    return check_values(reference, families()[reference.family](reference, effort))
