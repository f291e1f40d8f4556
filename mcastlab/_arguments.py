"""Check the arguments of the public functions: what notebooks pass is made plain, all else is refused in one line."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import wraps
from os import PathLike, fspath
from pathlib import Path
from typing import ParamSpec, TypeVar

from experiments.scenario.plain_values import plain_value
from experiments.scenario.suggestion import one_of
from experiments.session.arguments import refused
from experiments.session.membership import HIGHEST_NODE
from protocols.errors import ConfigError, UsageError
from topologies.units import parse_fraction, parse_size

__all__ = [
    "a_choice",
    "a_flag",
    "a_fraction",
    "a_node",
    "a_path",
    "a_place",
    "a_size",
    "a_text",
    "a_whole",
    "names",
    "names_arguments",
]

P = ParamSpec("P")
R = TypeVar("R")
_ARGUMENTS = {"metric": "metrics", "set": "overrides", "with": "settings"}
"""Arguments that have other names than the options of commands that do the same."""


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Have the errors of a public function name its arguments, where those of commands name options: `by`, not `--by`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UsageError as error:
            option = re.match("--([a-z]+):", str(error))
            if option is not None:
                error.args = (re.sub("(^|(?<=beside ))--([a-z]+)", lambda found: _argument(found[2]), str(error)),)
            raise

    return call


def _argument(option: str) -> str:
    return _ARGUMENTS.get(option, option)


def a_path(name: str, value: object) -> Path:
    """Return the path of a file or folder. UsageError for what is no path, and for an empty one."""
    text = fspath(value) if isinstance(value, (str, PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise refused(name, value, "the path of a file or folder")
    return Path(text)


def a_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`; one of numpy as a plain one. UsageError for all else."""
    number = _plain(name, value)
    if not isinstance(number, int) or isinstance(number, bool) or number < least or (most is not None and number > most):
        raise refused(name, value, f"a whole number from {least} " + ("on" if most is None else f"to {most}"))
    return number


def a_fraction(name: str, value: object) -> float:
    """Return a fraction like 0.02 or "2%" as a number. UsageError for all else."""
    try:
        return parse_fraction(_plain(name, value))
    except ConfigError as error:
        raise refused(name, value, "a fraction like 2% or 0.02") from error


def a_choice(name: str, value: object, known: Sequence[str]) -> str:
    """Return the one of `known` that was given. UsageError, with the nearest, for all else."""
    if not isinstance(value, str) or value not in known:
        raise refused(name, value, one_of(value, known))
    return str(value)


def a_flag(name: str, value: object) -> bool:
    """Return True or False; one of numpy as a plain one. UsageError for all else."""
    flag = _plain(name, value)
    if not isinstance(flag, bool):
        raise refused(name, value, "True or False")
    return flag


def a_text(name: str, value: object) -> str:
    """Return text that is not empty. UsageError for all else."""
    if not isinstance(value, str) or not value:
        raise refused(name, value, "text that is not empty")
    return str(value)


def a_size(name: str, value: object) -> int:
    """Return the bytes of a size like "64MB" or a number. UsageError for all else."""
    try:
        return parse_size(_plain(name, value))
    except ConfigError as error:
        raise refused(name, value, "a size, like 64MB") from error


def a_place(group: object, iface: object) -> tuple[str, str | None]:
    """Return the group and the interface of a session on a real network. UsageError for what is no text."""
    return a_text("group", group), None if iface is None else a_text("iface", iface)


def a_node(value: object) -> int | None:
    """Return the node id of a member of a session, None for one of its own. UsageError for an invalid one."""
    return None if value is None else a_whole("node", value, 1, HIGHEST_NODE)


def names(name: str, value: object) -> tuple[str, ...]:
    """Return the names in a list, or a single one as a list of it. UsageError for all else."""
    if isinstance(value, str):
        return (str(value),)
    if not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes)):
        raise refused(name, value, "a name or a list of names")
    listed = list(value)
    if not all(isinstance(item, str) for item in listed):
        raise refused(name, listed, "a name or a list of names")
    texts = tuple(map(str, listed))
    # The order of a set is that of hashes.
    return tuple(sorted(texts)) if isinstance(value, Set) else texts


def _plain(name: str, value: object) -> object:
    try:
        return plain_value(value, name)
    except UsageError:
        return None
