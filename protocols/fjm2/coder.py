"""Processor time of a coder that encodes every message as a whole before it is sent, as the thesis measured one (4.3.1).

Parity symbols are sums of products: a block of k source symbols with h parity symbols of s bytes takes k h s of them, and the
coefficients of a systematic code take k^2 h more (a k x k matrix times an h x k one; L. Rizzo, Effective erasure codes, 1997).
"""

from protocols.fjm2.config import Fjm2Config
from protocols.norm.partition import Partition

__all__ = ["encoding_time"]


def encoding_time(size: int, config: Fjm2Config) -> float:
    """Return the seconds for a message of `size` bytes; 0 without parity, or for a coder that takes no time."""
    if not config.parity or not (config.encode or config.encode_matrix):
        return 0.0
    partition = Partition(size, config.segment, config.block)
    seconds = 0.0
    for number in range(partition.blocks):
        source = partition.length(number)
        seconds += source * config.parity * (config.segment * config.encode + source * config.encode_matrix)
    return seconds
