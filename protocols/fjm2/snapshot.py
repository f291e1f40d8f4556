"""Meanings of the statistics of publishers and subscribers."""

from typing import Final

from protocols.snapshot import Measure

__all__ = ["MEASURES"]

MEASURES: Final = (
    Measure("messages_filtered", "messages that a selector did not let pass"),
    Measure("messages_lost", "messages lost for good"),
    Measure("messages_refused", "messages larger than the pool"),
    Measure("messages_malformed", "objects that were no messages"),
    Measure("messages_skipped", "those of messages_lost that were given up since too many waited for them"),
    Measure("pool_taken", "containers taken"),
    Measure("pool_returned", "containers given back"),
    Measure("pool_exhausted", "containers wanted in vain, the pool being used up"),
)
