"""Add type declarations to a module's source for mypyc: `Final` for module names, and variable-length tuples for positions.

`declare(source)` returns the source with the declarations; line numbers stay the same.
"""

import ast
import re
from collections.abc import Iterator

__all__ = ["declare"]

IMPORT = "; from typing import Final as _Final"
VALUES = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Call, ast.Tuple, ast.List, ast.Dict)
KINDS = ("NamedTuple", "NewType", "ParamSpec", "TypeVar", "namedtuple")
"""Functions that make types."""
PLACE = re.compile(r"(?<!list\[)tuple\[int, int, int\]")
"""Type of transmit positions. mypyc stores a tuple of fixed length unboxed, and boxes it at every comparison."""
_Edit = tuple[int, int, int, bytes]
"""Line from 0, first column, column after the last, replacement."""


def declare(source: str) -> str:
    """Return the source with `Final` names, which mypyc does not look up in the module, and variable-length tuples."""
    tree, lines = ast.parse(source), source.encode().split(b"\n")
    reassigned = _set_again(tree)
    edits = [edit for node in tree.body for edit in _final(node, reassigned)]
    imports = next((node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)), None)
    if edits and imports is not None:
        end = imports.end_col_offset or 0
        edits.append(((imports.end_lineno or 1) - 1, end, end, IMPORT.encode()))
        for line, begin, behind, text in sorted(edits, reverse=True):
            lines[line] = lines[line][:begin] + text + lines[line][behind:]
    return PLACE.sub("tuple[int, ...]", b"\n".join(lines).decode())


def _set_again(tree: ast.Module) -> set[str]:
    """Return the names a module sets more than once."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    shared = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    return {name for name in names if names.count(name) > 1 or name in shared or name.startswith("__")}


def _final(node: ast.stmt, reassigned: set[str]) -> Iterator[_Edit]:
    """Yield the edits that declare the names a statement sets, if they are values."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_value(node.value):
        kind = node.annotation
        known = ast.unparse(kind).startswith(("Final", "TypeAlias", "type["))
        if not known and node.target.id not in reassigned and kind.end_lineno == kind.lineno:
            yield kind.lineno - 1, kind.col_offset, kind.col_offset, b"_Final["
            yield kind.lineno - 1, kind.end_col_offset or 0, kind.end_col_offset or 0, b"]"
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value, line = node.targets[0], node.value, node.lineno - 1
        if isinstance(target, ast.Name) and target.id not in reassigned and _is_value(value):
            yield line, target.end_col_offset or 0, target.end_col_offset or 0, b": _Final"
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and node.end_lineno == node.lineno:
            pairs = [(ast.unparse(name), entry) for name, entry in zip(target.elts, value.elts, strict=True)]
            if all(name not in reassigned and _is_value(entry) for name, entry in pairs):
                text = "; ".join(f"{name}: _Final = {ast.unparse(entry)}" for name, entry in pairs)
                yield line, node.col_offset, node.end_col_offset or 0, text.encode()


def _is_value(node: ast.expr | None) -> bool:
    """Whether the expression is a value and not a type."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return False
    return isinstance(node, VALUES) and not (isinstance(node, ast.Call) and ast.unparse(node.func) in KINDS)
