"""Tunnels between sites, which carry a multicast group by unicast (FJM2D)."""

from protocols.tunnel.config import TunnelOptions
from protocols.tunnel.messages import Brake, Presence, Report
from protocols.tunnel.role import ROLE
from protocols.tunnel.snapshot import MEASURES
from protocols.tunnel.tunnel import Tunnel
from protocols.tunnel.wire import TunnelCodec

PERIODIC = (Presence.kind, Report.kind, Brake.kind)
"""Kinds of the messages that a tunnel sends as long as it runs."""

__all__ = ["MEASURES", "PERIODIC", "ROLE", "Tunnel", "TunnelCodec", "TunnelOptions"]
