"""The simulator: hosts, links and switches in SimPy, one event per packet and distinct arrival time."""

from sim.network import Network

__all__ = ["Network"]
