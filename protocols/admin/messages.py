"""Messages of tunnels and a registry on a connection: requests and responses of HTTP/1.1."""

from dataclasses import dataclass, field
from typing import ClassVar

from protocols.machine import Message

__all__ = ["Request", "Response"]


@dataclass(frozen=True, slots=True)
class Request(Message):
    """A request of a client to the registry at `host`; `body` is JSON, empty for none, `secret` the token it shows."""

    kind: ClassVar[str] = "http_request"
    method: str
    target: str
    body: bytes = b""
    host: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Response(Message):
    """The response of the registry; `body` is JSON, empty for none. `tag` is the stamp of a list, as an entity tag."""

    kind: ClassVar[str] = "http_response"
    status: int
    body: bytes = b""
    tag: str = ""
