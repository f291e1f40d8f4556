"""Cross traffic: flows that share the network with a session, with constant, Poisson or on/off arrivals, or TCP-like AIMD."""

from protocols.cross.aimd import AimdSource
from protocols.cross.messages import Load, Receipt, is_cross, load_of
from protocols.cross.paced import Gaps, PacedSource, constant, on_off, poisson
from protocols.cross.sink import FlowSink
from protocols.cross.wire import CrossCodec

__all__ = [
    "AimdSource",
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
