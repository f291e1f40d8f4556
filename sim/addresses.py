"""Addresses of machines in the simulator: a host's name for its first machine, a `HostPort` for any other."""

from typing import NamedTuple

__all__ = ["HostPort"]


class HostPort(NamedTuple):
    """The machine at port `port` (from 1) of a host."""

    name: str
    port: int
