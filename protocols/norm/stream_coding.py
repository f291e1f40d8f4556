"""What both ends of a stream have in common: its partition, block numbers, and the header of its segments (RFC 5740 4.2.1)."""

from dataclasses import replace
from struct import Struct
from typing import Final

from protocols.norm.messages import Fti
from protocols.norm.partition import Partition

__all__ = ["HEADER", "HEADER_SIZE", "STREAM_END", "StreamPartition", "buffer_blocks", "nearest", "stream_fti"]

HEADER: Final = Struct(">HHI")
"""payload_len; payload_msg_start, 1 + the offset of the first message that begins here, 0 for none; payload_offset.

With payload_len 0 the segment is no content, and payload_msg_start gives its kind.
"""
HEADER_SIZE: Final = 8
STREAM_END: Final = 0
"""The payload_msg_start of the segment behind the last byte."""
_UNLIMITED: Final = 1 << 62
_LEAST_BLOCKS: Final = 2


class StreamPartition(Partition):
    """The blocks of a stream: all have `block` segments, and there is no last one. Blocks are numbered without an end."""

    __slots__ = ()

    def __init__(self, size: int, segment: int, block: int) -> None:
        super().__init__(size, segment, block)
        self.blocks = _UNLIMITED
        self.large = self.small = block
        self.large_blocks = self._edge = 0

    def payload(self, index: int) -> int:
        """Return the bytes of a full segment with its header, whichever it is."""
        del index
        return self.segment + HEADER_SIZE


def stream_fti(fti: Fti) -> Fti:
    """Return the coding of a stream, whose object size is that of the sender's buffer, with the partition of a stream."""
    coding = replace(fti)
    object.__setattr__(coding, "partition", StreamPartition(fti.object_size, fti.segment, fti.block))
    return coding


def buffer_blocks(size: int, fti: Fti) -> int:
    """Return the blocks that a buffer of `size` bytes holds, at least two."""
    return max(_LEAST_BLOCKS, size // (fti.segment * fti.block))


def nearest(block: int, near: int, count: int) -> int:
    """Return the block nearest to `near` whose number on the wire, where `count` blocks are numbered, is `block`."""
    distance = (block - near) % count
    return near + (distance if distance < count >> 1 else distance - count)
