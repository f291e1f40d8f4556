"""Check the parts of an external protocol when it is loaded: its codec, its machines, and its fast machines."""

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from protocols.errors import ConfigError
from protocols.machine import Codec, Machine, Sender
from protocols.spec import ProtocolSpec

__all__ = ["check_parts"]

_SENDER = ("ports", "config", "node", "group", "instance")
_RECEIVER = _SENDER[:-1]
"""What the constructors of machines are called with."""
_FAST = ("make_sender", "make_receiver")
"""The functions that a module of fast machines defines."""


def check_parts(spec: ProtocolSpec, origin: str) -> None:
    """Raise ConfigError for parts of a wrong kind, methods that are missing or take other arguments, and unknown modules."""
    made = {"codec": spec.codec, "make_sender": spec.make_sender, "make_receiver": spec.make_receiver}
    for part, maker in made.items():
        if not callable(maker):
            raise ConfigError(f"protocol.module: {origin}: {part} is {maker!r}; a class, or a function that makes one")
    _check_codec(spec.codec, origin)
    _check_machines(spec, origin)
    _check_fast(spec, origin)


def _check_codec(codec: object, origin: str) -> None:
    if not isinstance(codec, type):
        return
    for name in ("encode", "decode"):
        if not hasattr(codec, name):
            raise ConfigError(f"protocol.module: {origin}: codec is {codec.__name__}, which has no {name}")
        _check_method(codec, name, getattr(Codec, name), origin)


def _check_machines(spec: ProtocolSpec, origin: str) -> None:
    """ConfigError for one of sender and receiver alone, and for classes that can't be these machines."""
    makers: dict[str, tuple[Any, type[Machine], Sequence[str]]] = {
        "make_sender": (spec.make_sender, Sender, _SENDER),
        "make_receiver": (spec.make_receiver, Machine, _RECEIVER),
    }
    given = [part for part, (maker, *_) in makers.items() if maker is not ProtocolSpec.__dataclass_fields__[part].default]
    if len(given) == 1:
        lacking = next(part for part in makers if part not in given)
        raise ConfigError(
            f"protocol.module: {origin} has no {lacking}; beside {given[0]}, a class or a function that makes one"
        )
    for part, (maker, base, arguments) in makers.items():
        if isinstance(maker, type):
            _check_machine(part, maker, base, origin)
        _check_call(f"{part} is {getattr(maker, '__name__', maker)}, which", maker, arguments, origin)


def _check_machine(part: str, made: type, base: type[Machine], origin: str) -> None:
    if not issubclass(made, base):
        raise ConfigError(f"protocol.module: {origin}: {part} is {made.__name__}; a class derived from {base.__name__}")
    if missing := sorted(getattr(made, "__abstractmethods__", ())):
        raise ConfigError(f"protocol.module: {origin}: {part} is {made.__name__}, which has no {', '.join(missing)}")
    for name in dir(base):
        method = getattr(base, name)
        if not name.startswith("_") and callable(method) and getattr(made, name) is not method:
            _check_method(made, name, method, origin)


def _check_method(made: type, name: str, ours: Callable[..., object], origin: str) -> None:
    """ConfigError for what is no method, or takes other arguments than `ours`."""
    method = inspect.getattr_static(made, name)
    if not callable(method) and not isinstance(method, staticmethod | classmethod):
        raise ConfigError(f"protocol.module: {origin}: {made.__name__}.{name} is a {type(method).__name__}; a method")
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
        raise ConfigError(f"protocol.module: {origin}: {made.__name__}.{name} is async or a generator; a method that returns")
    arguments = _arguments(ours)
    if arguments is not None:
        given = arguments[1:] if isinstance(method, staticmethod | classmethod) else arguments
        _check_call(f"{made.__name__}.{name}", getattr(made, name), given, origin)


def _check_call(what: str, called: Any, given: Sequence[str], origin: str) -> None:
    """ConfigError for a function that can't be called with so many arguments."""
    taken = _arguments(called)
    if taken is None:
        return
    try:
        inspect.signature(called).bind(*given)
    except TypeError as error:
        listed = [", ".join(name for name in names if name != "self") for names in (taken, given)]
        raise ConfigError(f"protocol.module: {origin}: {what} takes ({listed[0]}); it is called with ({listed[1]})") from error


def _arguments(called: Callable[..., object]) -> list[str] | None:
    """Return the names of the arguments of a function; None for a compiled one that does not tell."""
    try:
        return list(inspect.signature(called).parameters)
    except ValueError:
        return None


def _check_fast(spec: ProtocolSpec, origin: str) -> None:
    """ConfigError for fast machines in a module that can't be imported, or has none."""
    for part, name, wanted in (("fast", spec.fast, _FAST), ("fast_roles", spec.fast_roles, ("ROLES",))):
        if name is None:
            continue
        try:
            module = import_module(name)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                f"protocol.module: {origin}: {part} is {name!r}; the dotted name of an importable module ({reason})"
            ) from error
        if lacking := [attribute for attribute in wanted if not hasattr(module, attribute)]:
            raise ConfigError(f"protocol.module: {origin}: {part} is {name!r}, which has no {lacking[0]}")
