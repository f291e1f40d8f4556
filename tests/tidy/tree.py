"""The files of the repository, and the code among them parsed once."""

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
    """Every file that belongs to the repository: all but what tools make."""
    found: list[Path] = []
    for folder, names, entries in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in _MADE and not name.endswith(".egg-info"))
        found += [Path(folder, entry) for entry in sorted(entries)]
    return tuple(path for path in found if path.is_file())


def modules(*folders: str) -> list[Path]:
    """The Python files below these top-level folders."""
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(), str(path))


def label(path: Path) -> str:
    """The path as a person of this repository would say it."""
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones too."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
