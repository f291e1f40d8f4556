"""The files of the repository, and its Python code parsed once."""

import ast
import os
from functools import cache
from pathlib import Path

__all__ = ["PACKAGES", "ROOT", "files", "functions", "label", "modules", "parsed"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocols", "topologies", "sim", "emu", "experiments", "mcastlab")
_MADE = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__", "out", "dist", "build"}


@cache
def files() -> tuple[Path, ...]:
    """Return every file of the repository except files made by tools."""
    found: list[Path] = []
    for folder, names, entries in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in _MADE and not name.endswith(".egg-info"))
        found += [Path(folder, entry) for entry in sorted(entries)]
    return tuple(path for path in found if path.is_file())


def modules(*folders: str) -> list[Path]:
    """Return the Python files below these top-level folders."""
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(), str(path))


def label(path: Path) -> str:
    """Return the path relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function and method, including nested ones."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
