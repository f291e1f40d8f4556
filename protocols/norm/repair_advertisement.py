"""The content of CMD(REPAIR_ADV) (RFC 5740 4.2.3.6): what a sender was asked for and is going to repair."""

from collections.abc import Iterable, Iterator

from protocols.norm.config import NormConfig
from protocols.norm.maps import bit_runs
from protocols.norm.nack_process import MissingRange, contents_for, nack_size
from protocols.norm.requests import (
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.tx_object import TxObject

__all__ = ["pending_requests"]


def pending_requests(objects: Iterable[TxObject], config: NormConfig) -> tuple[tuple[Request, ...], bool]:
    """Return what is requested of objects and not activated yet, and whether that is not all, for lack of room."""
    ranges = [each for item in objects if item.requested for each in _ranges(item)]
    contents = contents_for(ranges, nack_size(config.segment))
    return (contents[0], len(contents) > 1) if contents else ((), False)


def _ranges(item: TxObject) -> Iterator[MissingRange]:
    """Yield what is requested of an object, blocks as they are numbered on the wire."""
    fec_id, key, partition, mask = item.fti.fec_id, item.object_id, item.partition, item.block_mask
    if item.info_wanted:
        yield MissingRange(LEVEL_INFO, Item(fec_id, key), Item(fec_id, key))
    for low, high in item.wanted_blocks:
        first, last = (Item(fec_id, key, block & mask, 0, partition.length(block)) for block in (low, high))
        yield MissingRange(LEVEL_BLOCK, first, last, high - low + 1)
    for block, symbols in sorted(item.wanted.items()):
        for low, high in bit_runs(symbols):
            first, last = (Item(fec_id, key, block & mask, symbol, partition.length(block)) for symbol in (low, high))
            yield MissingRange(LEVEL_SEGMENT, first, last, high - low + 1)
