"""Meanings of the statistics of a tunnel."""

from typing import Final

from protocols.snapshot import Measure

__all__ = ["MEASURES"]

MEASURES: Final = (
    Measure("packets_carried", "packets of the site sent to the other sites"),
    Measure("packets_returned", "packets of other sites multicast in this one"),
    Measure("packets_left", "packets left to the tunnel that serves the site"),
    Measure("packets_oversized", "packets too long for a datagram"),
    Measure("datagrams_sent", "datagrams sent to other tunnels"),
    Measure("datagrams_received", "datagrams of other tunnels received"),
    Measure("datagrams_lost", "datagrams of other tunnels missing by their sequence numbers"),
    Measure("datagrams_refused", "datagrams that are of no known tunnel, or no packet of the group"),
    Measure("bytes_out", "datagrams sent to other tunnels, in bytes", "bytes"),
    Measure("bytes_in", "datagrams of other tunnels received, in bytes", "bytes"),
    Measure("ring_dropped", "packets dropped because the ring was full"),
    Measure("loops_cut_site", "datagrams not carried: of the own site, or without hops left"),
    Measure("loops_cut_tunnels", "multicasts of other tunnels not carried"),
    Measure("loops_cut_memory", "packets not carried because they were carried already"),
    Measure("brakes_sent", "times that publishers were told of the ring and of losses"),
)
