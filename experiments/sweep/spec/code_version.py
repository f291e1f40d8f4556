"""Identify the version of the code that produces results: equal versions mean equal source."""

import ast
import subprocess
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code_version", "commit", "sources"]

WHOLE = ("protocols", "topologies", "sim", "emu")
"""Packages hashed as a whole."""
ENTRY = "experiments.sweep.run.single_run"
"""Module that executes one run.

Of `experiments` only what it imports is hashed, so that changes elsewhere keep results valid.
"""


@cache
def code_version(entry: str = ENTRY) -> str:
    """Return the package version and a digest of the source imported by `entry`, like 0.1.0+1f2e3d4c5b6a."""
    hashed = sha256()
    for name, path in sorted(sources(entry).items()):
        hashed.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return f"{version('mcastlab')}+{hashed.hexdigest()[:12]}"


def sources(entry: str = ENTRY) -> dict[str, Path]:
    """Return the source files that runs executed by `entry` depend on, by module name."""
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
    # A compiled module is in the folder of its source.
    return path if path.suffix == ".py" else path.parent / f"{name.rpartition('.')[2]}.py"


def _imports(path: Path) -> list[str]:
    """Return the modules of `experiments` that a file imports at any nesting level."""
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
    """Return the git commit of the source, with + if the tree is dirty; None outside a repository."""
    try:
        completed = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            cwd=_file("protocols").parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() or None
