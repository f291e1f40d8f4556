"""The web application of the monitor: the page, its events, JSON, and metrics for Prometheus."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from emu.web.guard import Guard
from emu.web.page import add_page
from experiments.monitor.discovery import Answer
from experiments.monitor.watcher import Watcher, shortened
from experiments.output.prometheus import exposition

__all__ = ["COOKIE", "application"]

PAGE: Final = Path(__file__).with_name("page")
COOKIE: Final = "mcastlab-token"
MOST_READERS: Final = 32
"""Pages that are kept up to date at a time."""
MOST_METRICS: Final = 1000
"""Parts of one kind below another in the metrics."""


def application(watcher: Watcher, hosts: frozenset[str], secret: str | None = None) -> FastAPI:
    """Return the application.

    `hosts` are the allowed values of the header Host, so that no page of another site can reach it by DNS rebinding; empty:
    any. With a `secret`, requests need it: as `?token=` once, which sets a cookie, or as a bearer token.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(watcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    app.add_middleware(Guard, hosts=hosts, secret=secret, cookie=COOKIE)
    add_page(app, PAGE)
    _add_sessions(app, watcher)
    _add_data(app, watcher)
    return app


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
        content, media_type = exposition(*watcher.snapshot(), MOST_METRICS)
        return Response(content, media_type=media_type)

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


def _event(data: str) -> str:
    """Return a server-sent event; JSON has no line feed, since its strings escape it."""
    return f"data: {data}\n\n"
