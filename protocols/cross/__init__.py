"""Cross traffic: flows beside a session, with constant, Poisson or on/off arrivals, TCP-like AIMD, or over TCP itself."""

from protocols.cross.aimd import AimdSource
from protocols.cross.bulk import BulkSource
from protocols.cross.messages import Load, Receipt, is_cross, load_of
from protocols.cross.paced import Gaps, PacedSource, constant, on_off, poisson
from protocols.cross.sink import FlowSink
from protocols.cross.wire import CrossCodec

__all__ = [
    "AimdSource",
    "BulkSource",
    "CrossCodec",
    "FlowSink",
    "Gaps",
    "Load",
    "PacedSource",
    "Receipt",
    "constant",
    "is_cross",
    "load_of",
    "on_off",
    "poisson",
]
