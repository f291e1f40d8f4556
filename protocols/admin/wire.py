"""Wire format of a registry: messages of HTTP/1.1 on connections, and the advertisement in a datagram.

An advertisement is 20 bytes in network order: the four bytes of `MAGIC`, the number of the registry (8) and the stamp (8). The
messages of HTTP are those that a registry needs (RFC 9112): bodies have a Content-Length, none is chunked. Headers are the ones
that the real server and its client send, so that messages have their real sizes.
"""

import re
import struct
from collections.abc import MutableSequence
from http import HTTPStatus
from typing import Final

from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.errors import UsageError, WireError
from protocols.framing import SelfDelimiting
from protocols.machine import Message

__all__ = ["ADVERTISEMENT_SIZE", "BODY_LIMIT", "HEAD_LIMIT", "AdminCodec", "HttpFraming", "is_ours", "size_of"]

MAGIC: Final = b"\xadMC\x01"
"""No version of NORM begins so, and no message of HTTP."""
HEAD_LIMIT: Final = 16 << 10
"""Bytes of the first line and the headers."""
BODY_LIMIT: Final = 1 << 20
"""Bytes of a body."""
_ADVERTISEMENT: Final = struct.Struct("!4sQQ")
ADVERTISEMENT_SIZE: Final = _ADVERTISEMENT.size

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r\n]*)", re.IGNORECASE)
_CODING: Final = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_REQUEST: Final = re.compile(r"([A-Z]{1,10}) (/[!-~]{0,1000}) HTTP/1\.1")
_STATUS: Final = re.compile(r"HTTP/1\.1 ([1-5][0-9]{2})(?: .*)?")
_STARTS: Final = (b"HTTP/1.1 ", b"GET ", b"POST ", b"PUT ", b"DELETE ")
_STATUSES: Final = frozenset(status.value for status in HTTPStatus)
_DATE: Final = "Sun, 22 Nov 2026 12:00:00 GMT"
"""A registry of a simulation has no calendar; all dates are equally long."""
_FIXED: Final = (
    "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\ncache-control: no-store\r\n"
)
"""Headers of every response of the real server."""


def is_ours(data: bytes) -> bool:
    """Return whether bytes begin as a message of this codec does, for a codec of several protocols."""
    return data.startswith(MAGIC) or data.startswith(_STARTS)


def size_of(message: Message) -> int:
    """Return the encoded bytes of a message."""
    return ADVERTISEMENT_SIZE if isinstance(message, Advertisement) else len(AdminCodec().encode(message))


class AdminCodec:
    """The codec of registries and their clients."""

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message. UsageError for one that is no message of a registry, or has no encoding."""
        try:
            if isinstance(message, Advertisement):
                return _ADVERTISEMENT.pack(MAGIC, message.registry, message.stamp)
            if isinstance(message, Request):
                return _request(message)
            if isinstance(message, Response):
                return _response(message)
        except (struct.error, ValueError) as error:
            raise UsageError(f"{message} can't be encoded: {error}") from error
        raise UsageError(f"{message} is no message of a registry")

    def decode(self, data: bytes) -> Message:
        """Return the message of a datagram or of a frame. Raises WireError and nothing else."""
        if data.startswith(MAGIC):
            if len(data) != ADVERTISEMENT_SIZE:
                raise WireError(f"an advertisement of {len(data)} bytes; it has {ADVERTISEMENT_SIZE}")
            _, registry, stamp = _ADVERTISEMENT.unpack(data)
            return Advertisement(registry, stamp)
        head, end, body = data.partition(_END)
        if not end:
            raise WireError("no end of the headers")
        lines = head.decode("latin-1").split("\r\n")
        if lines[0].startswith("HTTP/"):
            return _read_response(lines, body)
        return _read_request(lines, body)


def _request(message: Request) -> bytes:
    lines = [f"{message.method} {message.target} HTTP/1.1", f"Host: {message.host}", "Accept: application/json"]
    lines += ["User-Agent: mcastlab", "Connection: keep-alive"]
    if message.secret:
        lines.append(f"Authorization: Bearer {message.secret}")
    if message.body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(message.body)}"]
    return "\r\n".join(lines).encode("latin-1") + _END + message.body


def _response(message: Response) -> bytes:
    lines = [f"HTTP/1.1 {message.status} {HTTPStatus(message.status).phrase}", f"date: {_DATE}"]
    if message.tag:
        lines.append(f'etag: "{message.tag}"')
    if message.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        lines += [f"content-length: {len(message.body)}", "content-type: application/json"]
    return ("\r\n".join(lines) + "\r\n" + _FIXED + "\r\n").encode("latin-1") + message.body


def _read_request(lines: list[str], body: bytes) -> Request:
    first = _REQUEST.fullmatch(lines[0])
    if first is None:
        raise WireError("no request begins so")
    headers = _headers(lines)
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    return Request(first[1], first[2], body, headers.get("host", ""), secret if scheme.lower() == "bearer" else "")


def _read_response(lines: list[str], body: bytes) -> Response:
    first = _STATUS.fullmatch(lines[0])
    if first is None or int(first[1]) not in _STATUSES:
        raise WireError("no response begins so")
    return Response(int(first[1]), body, _headers(lines).get("etag", "").strip('"'))


def _headers(lines: list[str]) -> dict[str, str]:
    found = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WireError("a line of the headers has no name")
        found[name.lower()] = value.strip(" \t")
    return found


class HttpFraming(SelfDelimiting):
    """Finds requests or responses in the bytes of a connection; what is kept of an incomplete one is bounded."""

    __slots__ = ("_looked", "_needed")

    def __init__(self) -> None:
        super().__init__(HEAD_LIMIT + BODY_LIMIT)
        self._needed = 0
        """Bytes of the message that is incomplete; 0 while its headers are."""
        self._looked = 0
        """Bytes that were searched for the end of the headers."""

    def unwrap(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> None:
        """Append the messages that `data` completes. WireError beyond a limit, and for a body without a length."""
        rest = self._rest
        rest += data
        while rest:
            if not self._needed:
                end = rest.find(_END, max(0, self._looked - len(_END)), HEAD_LIMIT)
                self._looked = len(rest)
                if end < 0:
                    if len(rest) >= HEAD_LIMIT:
                        raise WireError(f"headers have no end within {HEAD_LIMIT} bytes")
                    return
                self._needed = end + len(_END) + _body_length(bytes(rest[:end]))
            if len(rest) < self._needed:
                return
            into.append(bytes(rest[: self._needed]))
            del rest[: self._needed]
            self._needed = self._looked = 0


def _body_length(head: bytes) -> int:
    """Return the bytes of the body that follows these headers."""
    if _CODING.search(head):
        raise WireError("a body in chunks is not allowed")
    lengths = _LENGTH.findall(head)
    if not lengths:
        return 0
    value = lengths[0]
    if any(other != value for other in lengths) or not (value.isdigit() and len(value) <= 9 and int(value) <= BODY_LIMIT):
        raise WireError(f"content-length: {value[:20]!r} is not allowed; 0 to {BODY_LIMIT}")
    return int(value)
