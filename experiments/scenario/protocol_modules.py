"""Find external protocols: in a Python file, an importable module, or an entry point of an installed package."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from experiments.scenario.protocol_parts import check_parts
from protocols import registry
from protocols.errors import ConfigError
from protocols.settings import Setting
from protocols.spec import ProtocolSpec
from topologies.input_file import read_bytes

__all__ = [
    "GROUP",
    "ProtocolModule",
    "external_sources",
    "find_protocol",
    "protocol_names",
    "provide",
    "resolve",
    "resolve_in",
    "source_of",
]

GROUP = "mcastlab.protocols"
"""Group of the entry points that name a `ProtocolSpec`, or a module whose `PROTOCOL` is one."""

_provided: dict[str, bytes] = {}
"""Source of files by absolute path, sent by a process that could read them (`provide`)."""
_external: set[Path] = set()
"""The file of each external protocol that was imported, or the folder of its package."""


@dataclass(frozen=True, slots=True)
class ProtocolModule:
    """A protocol, the settings the contract suite runs it with, and a digest of its source.

    `contract` is the module's `CONTRACT`, empty where it has none. `digest` is a SHA-256, empty for mcastlab's own protocols.
    """

    spec: ProtocolSpec
    contract: dict[str, Any] = field(default_factory=dict)
    digest: str = ""


def resolve(reference: str, *folders: Path) -> str:
    """Return the absolute path of a file found in `folders` or the working directory; return a dotted name unchanged."""
    return _found(reference, *folders) if reference.endswith(".py") else reference


def _found(reference: str, *folders: Path) -> str:
    """Return the absolute path of a file found in `folders` or the working directory, else the reference."""
    for folder in (*folders, Path()):
        if (folder / reference).is_file():
            return str((folder / reference).resolve())
    return reference


def resolve_in(data: dict[str, Any], *folders: Path) -> None:
    """Replace `protocol.module` and the key files of `protocol` in a scenario's plain values by absolute paths, in place."""
    chosen = data.get("protocol")
    if isinstance(chosen, dict) and isinstance(chosen.get("module"), str):
        chosen["module"] = resolve(chosen["module"], *folders)
    for key in ("key_file", "tunnel_key_file"):
        if isinstance(chosen, dict) and isinstance(chosen.get(key), str):
            chosen[key] = _found(chosen[key], *folders)


def source_of(reference: str) -> bytes | None:
    """Return the source of a Python file, for `provide` in another process; None for a dotted name."""
    return _read(reference) if reference.endswith(".py") else None


def provide(sources: Mapping[str, bytes]) -> None:
    """Set the sources of files by absolute path; they are used instead of the files, which may not exist here."""
    _provided.update(sources)


def find_protocol(name: str, module: str = "") -> ProtocolModule:
    """Return the protocol of a module, or without a module that of this name: mcastlab's own, or an installed package's.

    `module` is a Python file or a dotted name. A file is imported again when its content has changed. ConfigError for a module
    that does not exist, can't be imported, or has no `PROTOCOL`.
    """
    if not module:
        outside = name not in registry.names() and name in _entry_points()
        return _load_entry_point(_entry_points()[name]) if outside else ProtocolModule(registry.protocol(name))
    if not module.endswith(".py"):
        return _load_dotted(module)
    source = _read(module)
    return _load_file(Path(module).resolve(), source, sha256(source).hexdigest())


def external_sources() -> frozenset[Path]:
    """Return the file of each external protocol that was imported, or the folder of its package."""
    return frozenset(_external)


def protocol_names() -> list[str]:
    """Return the names of all protocols that need no module, sorted."""
    return sorted({*registry.names(), *_entry_points()})


def _read(reference: str) -> bytes:
    if reference in _provided:
        return _provided[reference]
    try:
        return read_bytes(Path(reference))
    except OSError as error:
        raise ConfigError(f"protocol.module: value {reference!r} is not allowed; can't be read ({error.strerror})") from error


@cache
def _load_file(path: Path, source: bytes, digest: str) -> ProtocolModule:
    module = ModuleType(f"mcastlab_protocol_{digest[:16]}")
    module.__file__ = str(path)
    # Dataclasses with slots look up their module in sys.modules.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f" (line {lines[-1]})" if lines else ""
        raise ConfigError(f"protocol.module: {path} can't be imported; {type(error).__name__}: {error}{where}") from error
    return _checked(module, str(path), digest)


@cache
def _load_dotted(name: str) -> ProtocolModule:
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(
            f"protocol.module: value {name!r} is not allowed; a file.py or an importable module ({reason})"
        ) from error
    return _checked(module, name, _digest_of(module))


def _digest_of(module: ModuleType) -> str:
    """Return the SHA-256 of the source of a module, or of all Python files of a package."""
    place = _source_place(module)
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    hashed = sha256()
    for path in paths:
        hashed.update(path.read_bytes() + b"\0")
    return hashed.hexdigest()


def _source_place(module: ModuleType) -> Path:
    """Return the file of a module, or the folder of a package."""
    file = Path(module.__file__ or "")
    return file.parent if file.name == "__init__.py" else file


def _checked(module: ModuleType, origin: str, digest: str) -> ProtocolModule:
    spec = getattr(module, "PROTOCOL", None)
    if not isinstance(spec, ProtocolSpec):
        raise ConfigError(f"protocol.module: {origin} has no PROTOCOL = ProtocolSpec(...)")
    _check_spec(spec, origin)
    _external.add(_source_place(module))
    return ProtocolModule(spec, dict(getattr(module, "CONTRACT", {})), digest)


def _check_spec(spec: ProtocolSpec, origin: str) -> None:
    """ConfigError for a name of mcastlab's own, parts of a wrong kind, and a config without the settings of scenarios."""
    if not isinstance(spec.name, str) or not spec.name:
        raise ConfigError(f"protocol.module: {origin} calls its protocol {spec.name!r}; a text that is not empty")
    check_parts(spec, origin)
    if spec.name in registry.names():
        raise ConfigError(f"protocol.module: {origin} calls its protocol {spec.name!r}, as one of mcastlab's own is called")
    if not is_dataclass(spec.config):
        raise ConfigError(f"protocol.module: {origin}: config {spec.config!r} is no dataclass")
    plain = [item.name for item in fields(spec.config) if not isinstance(item.metadata.get("setting"), Setting)]
    if plain:
        raise ConfigError(f"protocol.module: {origin}: config field {plain[0]!r} was not made by setting(...)")
    lacking = {"rate", "segment"} - {item.name for item in fields(spec.config)}
    if lacking:
        raise ConfigError(f"protocol.module: {origin}: config has no {min(lacking)!r}; every protocol has rate and segment")


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _load_entry_point(point: EntryPoint) -> ProtocolModule:
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"protocol {point.name!r}: {point.value} can't be imported; {reason}") from error
    if isinstance(found, ModuleType):
        return _checked(found, point.value, _digest_of(found))
    if not isinstance(found, ProtocolSpec):
        raise ConfigError(f"protocol {point.name!r}: {point.value} is neither a ProtocolSpec nor a module with PROTOCOL")
    _check_spec(found, point.value)
    module = import_module(point.module)
    _external.add(_source_place(module))
    return ProtocolModule(found, digest=_digest_of(module))
