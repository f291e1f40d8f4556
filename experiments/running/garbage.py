"""Garbage collection of programs in which most objects stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["frozen"]


@contextmanager
def frozen() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection; those that a caller has excluded already stay so."""
    is_first = not gc.get_freeze_count()
    if is_first:
        gc.freeze()
    try:
        yield
    finally:
        if is_first:
            gc.unfreeze()
