"""The client of a registry for a program: it keeps a tunnel in the list by HTTP (httpx), and receives advertisements by UDP.

What it does and when is decided by `protocols.admin.enrolment`, as for a simulated tunnel.
"""

import asyncio
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from emu.addresses import SocketAddress, socket_address
from protocols.admin.enrolment import CONNECT_PATIENCE, Counters, Enrolment, UpdatePeers
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.admin.registration import Registration
from protocols.admin.wire import BODY_LIMIT, AdminCodec
from protocols.errors import UsageError, WireError

__all__ = ["HttpRegistryClient", "check_url", "usage"]

EXAMPLE: Final = "http://10.0.0.1:8080"
_STATM: Final = Path("/proc/self/statm")


def check_url(url: str, option: str = "--admin") -> str:
    """Return the URL of a registry as a client takes it. UsageError, naming the option, for what is none."""
    try:
        found = urlsplit(url)
        named = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        named = False
    if not named or found.path not in ("", "/") or found.query or found.fragment or found.username:
        raise UsageError(f"{option}: value {url!r} is not allowed; the URL of a registry, like {EXAMPLE}")
    return url.rstrip("/")


def usage() -> tuple[float, int]:
    """Return the processor time of this process in seconds and its memory in bytes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    memory = used.ru_maxrss * 1024
    with suppress(OSError, ValueError, IndexError):
        memory = int(_STATM.read_text().split()[1]) * resource.getpagesize()
    return used.ru_utime + used.ru_stime, memory


class _Advertisements(asyncio.DatagramProtocol):
    """Gives what arrives at a socket to a client."""

    def __init__(self, client: "HttpRegistryClient") -> None:
        self._client = client

    def datagram_received(self, data: bytes, address: Any) -> None:
        """Take a datagram."""
        self._client.received(data)


class HttpRegistryClient:
    """Keeps the tunnel of a `registration` in the list of the registry at `url`; advertisements come to its own `address`.

    `update_peers` is called with the other tunnels when they change, `counters` for what a renewal tells, and `told`, with a
    text, when requests begin to fail or succeed again. `token_file` names the file of the token, which is `secret`, in errors.
    Use it as a context, and run `run` as a task: it raises UsageError if the registry refuses the token.
    """

    def __init__(
        self,
        url: str,
        registration: Registration,
        update_peers: UpdatePeers,
        counters: Counters,
        *,
        address: str,
        secret: str = "",
        token_file: Path | None = None,
        told: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._url = check_url(url)
        self._told, self._trouble = told, ""
        self._token_file = token_file
        self._socket = _open(socket_address(address, 0))
        own = replace(registration, udp=self._socket.getsockname()[1])
        self.enrolment = Enrolment(own, update_peers, counters, usage)
        headers = {"Accept": "application/json", "User-Agent": "mcastlab", "Accept-Encoding": "identity"}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        # Proxies of the environment are for other servers.
        self._http = httpx.AsyncClient(base_url=self._url, headers=headers, trust_env=False)
        self._codec = AdminCodec()
        self._wake = asyncio.Event()
        self._transport: asyncio.DatagramTransport | None = None
        self.malformed = 0
        """Datagrams that were no advertisement."""

    async def __aenter__(self) -> "HttpRegistryClient":
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: _Advertisements(self), sock=self._socket)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the list, as far as the registry answers, and close."""
        last = self.enrolment.last_request()
        if last is not None:
            with suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._http.request(last.method, last.target)
        await self._http.aclose()
        assert self._transport is not None
        self._transport.close()

    def received(self, data: bytes) -> None:
        """Take a datagram: an advertisement, or anything else, which is counted."""
        try:
            message = self._codec.decode(data)
        except WireError:
            self.malformed += 1
            return
        if isinstance(message, Advertisement):
            self.enrolment.advertised(message, asyncio.get_running_loop().time())
            self._wake.set()
        else:
            self.malformed += 1

    async def run(self) -> None:
        """Do what is due, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            request = self.enrolment.next_request(loop.time())
            if request is not None:
                await self._ask(request)
                continue
            self._wake.clear()
            delay = self.enrolment.due - loop.time()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, delay) if delay < 1e6 else None):
                    await self._wake.wait()

    async def _ask(self, request: Request) -> None:
        clock = asyncio.get_running_loop().time
        content_type = {"Content-Type": "application/json"} if request.body else {}
        begun_at = clock()
        try:
            response = await self._response(request, content_type)
        except (httpx.HTTPError, TimeoutError):
            self.enrolment.failed(clock(), clock() - begun_at)
            self._tell("does not answer, and is asked again")
            return
        is_useful = self.enrolment.answered(request, response, clock())
        self._tell("" if is_useful else f"answers {request.method} with status {response.status}, and is asked again")
        if self.enrolment.refused and self.enrolment.peers is None:
            raise UsageError(self._refusal())

    def _tell(self, trouble: str) -> None:
        """Tell of a problem that is new, or, empty, that it is over."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._told(f"the registry at {self._url} {trouble or 'answers'}")

    async def _response(self, request: Request, headers: dict[str, str]) -> Response:
        """Return the response to a request, with as much of its body as a registry sends."""
        content, patience = request.body or None, self.enrolment.patience
        timeout = httpx.Timeout(patience, connect=CONNECT_PATIENCE)
        asked = self._http.stream(request.method, request.target, content=content, headers=headers, timeout=timeout)
        async with asyncio.timeout(CONNECT_PATIENCE + patience), asked as answer:
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > BODY_LIMIT:
                    raise httpx.DecodingError(f"a body of more than {BODY_LIMIT} bytes")
            return Response(answer.status_code, bytes(body))

    def _refusal(self) -> str:
        status = self.enrolment.refused
        if self._token_file is None:
            return f"--admin: the registry at {self._url} wants a token ({status}); name a file that has it by --token-file"
        return f"--token-file: {self._token_file}: the registry at {self._url} refuses the token in it ({status})"


def _open(where: SocketAddress) -> socket.socket:
    """Return a UDP socket on a free port."""
    sock = socket.socket(socket.AF_INET6 if len(where) == 4 else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    try:
        sock.bind(where)
    except OSError as error:
        sock.close()
        raise UsageError(f"--listen: no datagrams of a registry can be received at {where[0]}: {error.strerror}") from error
    return sock
