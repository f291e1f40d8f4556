"""The HTTP interface of a registry: routes, and the page. Its OpenAPI document, at /openapi.json, describes all of it."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from emu.admin.board import MOST_READERS, Board
from emu.admin.models import (
    ListedNode,
    NodeId,
    NodeList,
    PauseBody,
    RegisteredBody,
    RegistrationBody,
    RenewalBody,
    RenewedBody,
    Stamp,
    problems,
)
from emu.web.guard import REFUSALS, Guard
from emu.web.page import add_page
from protocols.admin.registry import Answer, Registry
from protocols.hosting import Host

__all__ = ["COOKIE", "Metrics", "application"]

PAGE: Final = Path(__file__).with_name("page")
COOKIE: Final = "mcastlab-admin-token"
NODE: Final = "/nodes/{number}"
_SHOWN: Final = 80

Metrics: TypeAlias = Callable[[], tuple[bytes, str]]
"""Returns the metrics for Prometheus, and the type of this content."""
_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": text, "content": {"text/plain": {}}} for status, text in REFUSALS.items()
}
_JSON: Final[dict[int | str, dict[str, Any]]] = {
    **_REFUSED,
    **problems(s400="the body is not JSON", s422="a value is not allowed"),
}


def application(
    host: Host,
    address: str,
    registry: Registry,
    board: Board,
    metrics: Metrics,
    hosts: frozenset[str],
    secret: str | None,
) -> FastAPI:
    """Return the web application of a registry that runs on a host at an IP address.

    `hosts` are the names by which it may be addressed, empty: any. With a `secret` every request needs it (`emu.web.guard`).
    """
    app = FastAPI(title="mcastlab admin", version="1", description="The registry of tunnels.", docs_url=None, redoc_url=None)
    app.add_middleware(Guard, hosts=hosts, secret=secret, cookie=COOKIE)

    @app.exception_handler(RequestValidationError)
    async def refuse(request: Request, error: RequestValidationError) -> Response:
        return JSONResponse({"detail": _why(error)}, 422)

    _add_nodes(app, host, address, registry)
    _add_data(app, board, metrics)
    add_page(app, PAGE)
    return app


async def _ask(host: Host, verb: Callable[..., None], *args: object) -> Response:
    """Call a verb of the registry, and return its answer when it comes."""
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    host.call(verb, *args, lambda told: None if answer.done() else answer.set_result(told))
    return _response(await answer)


def _response(answer: Answer) -> Response:
    headers = {"ETag": f'"{answer.tag}"'} if answer.tag else None
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    return JSONResponse(answer.body, answer.status, headers)


def _why(error: RequestValidationError) -> str:
    """Return one line about the first value that is not allowed."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"][1:] or first["loc"])
    text = f"{key}: {first['msg']}".encode("ascii", "backslashreplace").decode()
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def _place_problem(own: str, address: str) -> str | None:
    """Return why an address can't be that of a tunnel of the registry at `own`; None if it can."""
    ip, version = ip_address(address), ip_address(own).version
    if ip.version != version:
        return f"an IPv{version} address, as the registry has"
    return "the address of one host" if ip.is_multicast or ip.is_unspecified else None


def _add_nodes(app: FastAPI, host: Host, own: str, registry: Registry) -> None:
    unknown = problems(s404="no tunnel has this number")
    full = problems(s409="no advertisement can be sent to this address", s503="the list is full")

    @app.post("/nodes", status_code=201, response_model=RegisteredBody, responses=_JSON | full)
    async def register(body: RegistrationBody, request: Request) -> Response:
        """Put a tunnel in the list; the same address and port are the same tunnel, come again."""
        registration = body.plain()
        source = registration.address or (request.client.host if request.client is not None else "127.0.0.1")
        problem = _place_problem(own, source)
        if problem is not None:
            return JSONResponse({"detail": f"address: value {source[:_SHOWN]!a} is not allowed; {problem}"}, 409)
        return await _ask(host, registry.register, registration, source)

    @app.put(NODE, response_model=RenewedBody, responses=_JSON | unknown)
    async def renew(number: NodeId, body: RenewalBody) -> Response:
        """Keep a tunnel in the list for another lease."""
        return await _ask(host, registry.renew, number, body.plain())

    @app.put(f"{NODE}/paused", response_model=ListedNode, responses=_JSON | unknown)
    async def pause(number: NodeId, body: PauseBody) -> Response:
        """Pause or resume a tunnel."""
        return await _ask(host, registry.pause, number, body.paused)

    @app.delete(NODE, status_code=204, response_class=Response, responses=_JSON | unknown)
    async def remove(number: NodeId) -> Response:
        """Take a tunnel out of the list."""
        return await _ask(host, registry.remove, number)

    current: dict[int | str, dict[str, Any]] = {304: {"description": "the list of the caller's stamp is current"}}

    @app.get("/nodes", response_model=NodeList, responses=_JSON | current)
    async def listing(
        stamp: Annotated[Stamp | None, Query(description="that of the caller's list")] = None,
        if_none_match: Annotated[str | None, Header(description='the stamp as an entity tag, such as "7"')] = None,
    ) -> Response:
        """Return the list, unless the caller's is current."""
        if stamp is None and if_none_match is not None:
            tag = if_none_match.removeprefix("W/").strip('"')
            stamp = int(tag) if tag.isascii() and tag.isdecimal() and len(tag) < 20 else None
        return _response(host.call(registry.listing, stamp))


def _add_data(app: FastAPI, board: Board, metrics: Metrics) -> None:
    @app.get("/metrics", response_class=PlainTextResponse, responses=_REFUSED)
    async def read_metrics() -> Response:
        """Return metrics for Prometheus."""
        content, media_type = metrics()
        return Response(content, media_type=media_type)

    streamed: dict[int | str, dict[str, Any]] = {
        200: {"description": "server-sent events, as JSON", "content": {"text/event-stream": {}}},
        503: {"description": "too many pages are open", "content": {"text/plain": {}}},
    }

    @app.get("/events", response_class=Response, responses=_REFUSED | streamed)
    async def events() -> Response:
        """Stream the list and its changes as server-sent events."""
        if board.readers >= MOST_READERS:
            return PlainTextResponse("too many pages are open\n", 503)
        return StreamingResponse(board.stream(), media_type="text/event-stream")
