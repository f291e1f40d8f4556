"""Check what a program gives to a session before a machine meets it, whose failure would end the session."""

from collections.abc import Iterable
from operator import index
from os import PathLike, fspath
from typing import SupportsIndex, cast

from protocols.acknowledgement import AckRequest
from protocols.errors import UsageError, shown

__all__ = ["as_bytes", "as_flag", "as_path", "as_request", "as_text", "as_whole", "check_callback", "refused"]


def as_bytes(name: str, value: object) -> bytes:
    """Return bytes, or a copy of a buffer of them. UsageError for all else, text included."""
    if isinstance(value, bytes):
        return value
    try:
        return bytes(memoryview(value))  # type: ignore[arg-type]
    except TypeError as error:
        raise refused(name, value, "bytes") from error


def as_text(name: str, value: object) -> str:
    """Return a text. UsageError for all else."""
    if not isinstance(value, str):
        raise refused(name, value, "text")
    return value


def as_path(name: str, value: object) -> str:
    """Return a path as text. UsageError for all else."""
    text = fspath(value) if isinstance(value, (str, PathLike)) else None
    return as_text(name, value if text is None else text)


def as_whole(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`; one of numpy as a plain one. UsageError for all else."""
    try:
        number = index(cast(SupportsIndex, value))
    except TypeError:
        number = least - 1
    if number < least:
        raise refused(name, value, f"a whole number of at least {least}")
    return number


def as_flag(name: str, value: object) -> bool:
    """Return True or False. UsageError for all else."""
    if not isinstance(value, bool):
        raise refused(name, value, "True or False")
    return value


def as_request(name: str, value: object) -> AckRequest:
    """Return a request for acknowledgements, also of a list of node ids. UsageError for all else, and for a wrong part."""
    if not isinstance(value, AckRequest):
        if not isinstance(value, Iterable):
            raise refused(name, value, "node ids, or an AckRequest")
        return AckRequest(tuple(as_whole(name, node, 1) for node in value))
    if not isinstance(value.nodes, Iterable):
        raise refused(f"{name}.nodes", value.nodes, "node ids")
    return AckRequest(
        tuple(as_whole(f"{name}.nodes", node, 1) for node in value.nodes),
        as_flag(f"{name}.everybody", value.everybody),
        as_whole(f"{name}.expected", value.expected, 0),
        as_bytes(f"{name}.content", value.content),
        as_flag(f"{name}.replaces_flush", value.replaces_flush),
    )


def check_callback(value: object) -> None:
    """Raise UsageError for a callback that can't be called; None stands for no callback."""
    if value is not None and not callable(value):
        raise refused("callback", value, "a function of one argument")


def refused(name: str, value: object, allowed: str) -> UsageError:
    """Return the error for an argument that is not allowed."""
    return UsageError(f"{name}: value {shown(value)} is not allowed; {allowed}")
