"""Address and token of a web server, as options of a command."""

import socket
from ipaddress import ip_address
from os import strerror
from pathlib import Path

from protocols.errors import UnsupportedError, UsageError
from topologies.input_file import read_bytes

__all__ = ["SHORTEST", "Place", "hosts_of", "listen_at", "open_server", "read_token", "url_of"]

SHORTEST = 16
"""Characters of a token, at least."""
LONGEST = 8192
"""Bytes of a file with a token, at most; requests carry the token in their head."""

Place = tuple[str, int]
"""Address and port."""


def listen_at(text: str, token_file: Path | None, example: str) -> tuple[Place, str | None]:
    """Return the place of "ADDR:PORT", or of a port alone on 127.0.0.1, and the token of a file.

    UsageError for what is no place, and for one that others can reach without a token. `example` is one that is allowed.
    """
    address, _, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]") or "127.0.0.1"
    try:
        ip_address(address)
        if not (port.isascii() and port.isdecimal() and int(port) <= 0xFFFF):
            raise ValueError(port)
    except ValueError as error:
        raise UsageError(f"--listen: value {text!r} is not allowed; an IP address and a port, as in {example}") from error
    if not ip_address(address).is_loopback and token_file is None:
        raise UsageError(f"--listen: value {text!r} is not allowed without --token-file; others can reach this address")
    return (address, int(port)), None if token_file is None else read_token(token_file)


def read_token(file: Path) -> str:
    """Return the token in a file. UsageError for a file that has none, and for a device or a pipe."""
    try:
        secret = read_bytes(file, LONGEST).decode("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"--token-file: {file}: {error.strerror}") from error
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError(f"--token-file: {file}: is not allowed; one word of at least {SHORTEST} ASCII characters")
    return secret


def open_server(place: Place, failure: type[UsageError] | type[UnsupportedError] = UsageError) -> socket.socket:
    """Return a socket that listens. Raises `failure` where that is impossible, such as at a port in use."""
    address, port = place
    try:
        server = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise failure(f"--listen: {address}:{port} can't be used ({strerror(error.errno or 0)})") from error
    # Connections inherit it. A response is written as head and body, and the body would wait for a delayed ACK, 40 ms.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def hosts_of(address: str) -> frozenset[str]:
    """Return the names by which a server may be addressed; none: any, since it is not on the loopback device."""
    return frozenset({address, "localhost"}) if ip_address(address).is_loopback else frozenset()


def url_of(server: socket.socket) -> str:
    """Return the address of a server's page."""
    address, port = server.getsockname()[:2]
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"
