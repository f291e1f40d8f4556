"""The names of `experiments.contract.content`, for tests."""

from experiments.contract.content import Bytes, Extent, FailingSink, MemorySink, pattern

__all__ = ["Bytes", "Extent", "FailingSink", "MemorySink", "pattern"]
