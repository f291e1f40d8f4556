"""Addresses of machines on simulated hosts: the name of the host for its first machine, a `HostPort` for each further one."""

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
    """Return the name of the host and the port in an address, which may be any tuple of both."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) else (str(address), 0)
