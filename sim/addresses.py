"""Addresses of simulated hosts: that of a host's first machine is the host's name, and those of further ones are `HostPort`."""

from typing import NamedTuple

from protocols.machine import Address

__all__ = ["HostPort", "address_at", "name_and_port"]


class HostPort(NamedTuple):
    """The address of the machine at a port of a host; `port` is 1 or more."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


def address_at(name: str, port: int = 0) -> Address:
    """Return the address of the machine at a port of a host; port 0 is that of the first machine."""
    return HostPort(name, port) if port else name


def name_and_port(address: Address) -> tuple[str, int]:
    """Return the name of the host that an address names, and the port there; any pair of the two will do."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) else (str(address), 0)
