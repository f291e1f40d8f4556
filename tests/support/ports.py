"""Ports of the loopback device for tests."""

import secrets
import socket
from typing import Final

__all__ = ["free_port"]

_PORTS: Final = range(10_000, 32_768)
"""Below those that Linux gives to sockets without a port, which could take one before the test does."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that neither TCP nor UDP uses."""
    while True:
        place = "127.0.0.1", secrets.choice(_PORTS)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(place)
                udp.bind(place)
            except OSError:
                continue
            return place[1]
