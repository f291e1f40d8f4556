"""The version of the code that makes results: equal versions mean equal source."""

import ast
import subprocess
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code_version", "commit", "sources"]

WHOLE = ("protocols", "topologies", "sim", "emu")
ENTRY = "experiments.sweep.run.single_run"
"""Of `experiments` only what a run imports counts, so that another report does not make results old."""


@cache
def code_version(entry: str = ENTRY) -> str:
    """The package's version and a digest of the source that runs by this module depend on, like 0.1.0+1f2e3d4c5b6a."""
    hashed = sha256()
    for name, path in sorted(sources(entry).items()):
        hashed.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return f"{version('mcastlab')}+{hashed.hexdigest()[:12]}"


def sources(entry: str = ENTRY) -> dict[str, Path]:
    """The files that runs by this module depend on, by the name of the module."""
    found = {}
    for package in WHOLE:
        top = _file(package).parent
        for path in top.rglob("*.py"):
            found[".".join((package, *path.relative_to(top).with_suffix("").parts))] = path
    left = [entry]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = _file(name)
            left += _imports(found[name])
    return found


def _file(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None, f"{name} is not there"
    assert spec.origin is not None, f"{name} has no file"
    path = Path(spec.origin)
    # A compiled module lies beside its source.
    return path if path.suffix == ".py" else path.parent / f"{name.rpartition('.')[2]}.py"


def _imports(path: Path) -> list[str]:
    """The modules of `experiments` that a file imports, wherever in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found += [name for name in names if name.startswith("experiments.") and _is_module(name)]
    return found


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def commit() -> str | None:
    """The git commit of the source, with + when it was changed since; None where there is no repository."""
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            cwd=_file("protocols").parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() or None
