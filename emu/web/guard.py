"""Access to a web server: token, host names, origin, size of bodies, and headers of every response."""

import asyncio
import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs

from fastapi.responses import PlainTextResponse, RedirectResponse, Response

__all__ = ["BODY_LIMIT", "HEADERS", "REFUSALS", "Guard"]

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
REFUSALS: Final = {
    400: "the body is not encoded as it says",
    401: "a token is needed",
    403: "a page of another server asks for a change",
    408: "the body did not come in time",
    413: "the body is too long",
    421: "the server has another name",
}
"""Statuses of the responses of a guard itself, in plain text."""
BODY_LIMIT: Final = 64 << 10
"""Bytes of a request's body."""
PATIENCE: Final = 10.0
"""Seconds within which a body has to be there."""
_READING: Final = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Checks requests before they reach a web application `app`.

    `hosts` are the names by which it may be addressed, so that no other page can reach it by a name of its own; empty: any.
    With a `secret`, requests need it: as `?token=` once, which sets the `cookie`, or as a bearer. A page of another server
    can't change anything.
    """

    def __init__(self, app: Any, hosts: frozenset[str], secret: str | None, cookie: str) -> None:
        self._app, self._hosts, self._secret, self._cookie = app, hosts, secret, cookie

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def say(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = [(name, value) for name, value in message["headers"] if name.decode("latin-1") not in _OURS]
                message["headers"] = [*given, *_ENCODED]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope, headers)
        body = b""
        if refused is None and scope["method"] not in _READING:
            body, refused = await _body(headers, receive)
        if refused is not None:
            await refused(scope, receive, say)
        else:
            await self._app(scope, _once(body, receive) if scope["method"] not in _READING else receive, say)

    def _refusal(self, scope: Any, headers: Mapping[str, str]) -> Response | None:
        """Return the answer to a request that is not served; None for one that is."""
        named = headers.get("host", "").rpartition("@")[2]
        if self._hosts and _without_port(named) not in self._hosts:
            return _refuse(421, "this name is not mine")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _READING and origin.partition("://")[2] != named:
            return _refuse(403, "a page of another server asks for this")
        if self._secret is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["path"] == "/" and _is_equal(given, self._secret):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if _is_equal(_cookie(headers, self._cookie), self._secret):
            return None
        if scheme.lower() == "bearer" and _is_equal(bearer.strip(), self._secret):
            return None
        return _refuse(401, "a token is needed: open /?token=..., or send it as a bearer")


_OURS: Final = frozenset(name.lower() for name in HEADERS)
_ENCODED: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def _refuse(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


def _without_port(named: str) -> str:
    """Return the name in a Host header."""
    name, colon, port = named.rpartition(":")
    return (name if colon and port.isdecimal() else named).strip("[]")


def _cookie(headers: Mapping[str, str], name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


async def _body(headers: Mapping[str, str], receive: Any) -> tuple[bytes, Response | None]:
    """Return the body of a request, or the answer to one that is too long or does not come."""
    too_long = _refuse(413, f"a body has at most {BODY_LIMIT} bytes")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > BODY_LIMIT:
        return b"", too_long
    found = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await receive()
                found += message.get("body", b"")
                if len(found) > BODY_LIMIT:
                    return b"", too_long
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return bytes(found), None
    except TimeoutError:
        return b"", _refuse(408, "the body did not come in time")


def _once(body: bytes, receive: Any) -> Any:
    """Return a source of a body that was read already, then of what follows it."""
    is_told = False

    async def next_message() -> Any:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
