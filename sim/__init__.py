"""The simulator: hosts, links and switches on SimPy's event queue."""

from sim.network import Network

__all__ = ["Network"]
