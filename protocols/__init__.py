"""Reliable-multicast protocols as pure objects: no sockets, no clocks, no simulator."""
