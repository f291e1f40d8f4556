"""What TCP has in every world: its congestion control, its retransmission time-out, and the options of its connections."""

from protocols.tcp.congestion import CONTROLS, Control, Cubic, LinuxCubic, LinuxReno, Reno, RenoPerAck
from protocols.tcp.options import TcpOptions
from protocols.tcp.rtt import RttEstimator

__all__ = ["CONTROLS", "Control", "Cubic", "LinuxCubic", "LinuxReno", "Reno", "RenoPerAck", "RttEstimator", "TcpOptions"]
