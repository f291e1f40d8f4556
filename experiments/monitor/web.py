"""The web application of the monitor: the page, its events, JSON, and metrics for Prometheus."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from experiments.monitor.discovery import Answer
from experiments.monitor.watcher import Watcher, shortened
from experiments.output.prometheus import families_of

__all__ = ["COOKIE", "application"]

PAGE: Final = Path(__file__).with_name("page")
COOKIE: Final = "mcastlab-token"
MOST_READERS: Final = 32
"""Pages that are kept up to date at a time."""
MOST_METRICS: Final = 1000
"""Parts of one kind below another in the metrics."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def application(watcher: Watcher, hosts: frozenset[str], secret: str | None = None) -> FastAPI:
    """Return the application.

    `hosts` are the names under which it may be asked, so that no other page can reach it by a name of its own; empty: any.
    With a `secret`, requests need it: as `?token=` once, which sets a cookie, or as a bearer.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(watcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        refused = _refusal(request, hosts, secret)
        answer = await go_on(request) if refused is None else refused
        for name, value in HEADERS.items():
            answer.headers[name] = value
        return answer

    _add_page(app)
    _add_sessions(app, watcher)
    _add_data(app, watcher)
    return app


def _refusal(request: Request, hosts: frozenset[str], secret: str | None) -> Response | None:
    """Return the answer to a request that is not served; None for one that is."""
    name = request.headers.get("host", "").rpartition("@")[2]
    if hosts and name.removesuffix(f":{request.url.port}").strip("[]") not in hosts:
        return PlainTextResponse("this name is not mine\n", 421)
    if secret is None:
        return None
    given = request.query_params.get("token")
    if given is not None and _is_equal(given, secret) and request.url.path == "/":
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, secret, httponly=True, samesite="strict")
        return answer
    cookies = SimpleCookie(request.headers.get("cookie", ""))
    kept = cookies[COOKIE].value if COOKIE in cookies else ""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    if _is_equal(kept, secret) or _is_equal(bearer, secret):
        return None
    return PlainTextResponse("a token is needed: open /?token=..., or send it as a bearer\n", 401)


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _add_page(app: FastAPI) -> None:
    files = {"/": "index.html", **{f"/{name}": name for name in ("format.js", "monitor.js", "monitor.css")}}
    for path, name in files.items():

        def page(file: Path = PAGE / name) -> FileResponse:
            return FileResponse(file)

        app.add_api_route(path, page, methods=["GET"], response_model=None)


def _add_sessions(app: FastAPI, watcher: Watcher) -> None:
    @app.get("/api/domain", response_model=None)
    async def domain() -> dict[str, Any]:
        return watcher.whole()

    @app.get("/api/sessions", response_model=None)
    async def sessions() -> dict[str, Any]:
        return {"sessions": [_session(name, answer) for name, answer in sorted(watcher.sessions.answers.items())]}

    @app.get("/api/session", response_model=None)
    async def session(name: str) -> Any:
        # A page asks for a session that may have ended meanwhile, which is no error: the answer is null.
        answer = await watcher.sessions.ask(name)
        return JSONResponse(None if answer is None else _session(name, answer))


def _add_data(app: FastAPI, watcher: Watcher) -> None:
    readers = 0

    @app.get("/metrics", response_model=None)
    async def metrics() -> Response:
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        registry = CollectorRegistry()
        registry.register(_Families(watcher))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/events", response_model=None)
    async def events() -> Response:
        if readers >= MOST_READERS:
            return PlainTextResponse("too many pages are open\n", 503)
        return StreamingResponse(stream(), media_type="text/event-stream")

    async def stream() -> AsyncIterator[str]:
        nonlocal readers
        readers += 1
        try:
            yield _event(json.dumps({"whole": True} | watcher.whole()))
            while not watcher.has_ended:
                await watcher.change()
                yield _event(watcher.update())
        finally:
            readers -= 1


def _session(name: str, answer: Answer) -> dict[str, Any]:
    """Return the full statistics of a session, and what their names mean."""
    return {
        "id": name,
        "pid": answer.pid,
        "command": answer.command,
        "time": answer.time,
        "statistics": shortened(answer.statistics).plain(),
        "measures": {each: [known.kind, known.unit, known.help] for each, known in answer.measures.items()},
    }


class _Families:
    """The metrics of all sessions, for one request."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def collect(self) -> list[Any]:
        """Return the metric families."""
        snapshot, measures = self._watcher.snapshot()
        return families_of(snapshot, measures, MOST_METRICS)


def _event(data: str) -> str:
    """Return a server-sent event; JSON has no line feed, since its strings escape it."""
    return f"data: {data}\n\n"
