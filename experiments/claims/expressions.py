"""Formulas over the results of runs, as claims are measured with.

A formula has numbers, names, `.name` and `[index]` for what is in a result, `+ - * / ** ()`, comparisons (1 or 0), and the
functions of `FUNCTIONS`. Nothing else can be called, and no attribute of a Python object can be read.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from protocols.errors import ConfigError

__all__ = ["FUNCTIONS", "Formula"]

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return one value of each row."""
    return [row[name] for row in rows]


def _row(rows: Sequence[Mapping[str, Any]], name: str, value: object) -> Mapping[str, Any]:
    """Return the row in which `name` has a value; KeyError if there is none."""
    for row in rows:
        if row.get(name) == value:
            return row
    raise KeyError(f"row with {name} = {value!r}")


def _statistic(result: Mapping[str, Any], host: str, name: str) -> float:
    """Return the sum of a number in the last statistics of a host (`Snapshot`), over the uppermost parts that have it."""
    rows = [row for row in result["statistics"] if row["host"] == host]
    return _sum_of(rows[-1]["statistics"], name)


def _per_second(result: Mapping[str, Any]) -> float:
    """Return the messages per second that a subscription got between its first and its last one, in the mean."""
    rows = result["messages"]["subscriptions"]
    return float(sum((row["delivered"] - 1) / (row["last_at"] - row["first_at"]) for row in rows) / len(rows))


def _sum_of(snapshot: Mapping[str, Any], name: str) -> float:
    values = snapshot.get("values", {})
    return float(values[name]) if name in values else sum(_sum_of(part, name) for part in snapshot.get("parts", ()))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "column": _column,
    "exp": math.exp,
    "len": len,
    "log": math.log,
    "max": max,
    "min": min,
    "per_second": _per_second,
    "row": _row,
    "sqrt": math.sqrt,
    "statistic": _statistic,
    "sum": sum,
}


class Formula:
    """A formula; ConfigError if it has anything that is not allowed."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ConfigError(f"formula {text!r} can't be read; {error.msg}") from error
        self._check(self._tree)

    def value(self, names: Mapping[str, Any]) -> float:
        """Return its value; `names` are the results. ConfigError if a name or a value is missing, or it has no value."""
        try:
            found = self._value(self._tree, names)
            return float(found)
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            raise ConfigError(f"formula {self.text!r} has no value; {type(error).__name__}: {error}") from error

    def _check(self, node: ast.expr) -> None:
        """Raise ConfigError if a part is not allowed."""
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, ast.Call):
            allowed = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
            parts = node.args
        elif isinstance(node, ast.BinOp):
            allowed = type(node.op) in _BINARY
        elif isinstance(node, ast.Compare):
            allowed = len(node.ops) == 1 and type(node.ops[0]) in _COMPARED
        elif isinstance(node, ast.UnaryOp):
            allowed = isinstance(node.op, ast.USub)
        elif isinstance(node, ast.Constant):
            allowed = isinstance(node.value, (int, float, str))
        else:
            allowed = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        if not allowed:
            raise ConfigError(f"formula {self.text!r}: {ast.unparse(node)!r} is not allowed")
        for part in parts:
            self._check(part)

    def _value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.Attribute):
            return self._value(node.value, names)[node.attr]
        if isinstance(node, ast.Subscript):
            return self._value(node.value, names)[self._value(node.slice, names)]
        if isinstance(node, ast.UnaryOp):
            return -self._value(node.operand, names)
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](self._value(node.left, names), self._value(node.right, names))
        if isinstance(node, ast.Compare):
            compared = _COMPARED[type(node.ops[0])](self._value(node.left, names), self._value(node.comparators[0], names))
            return float(compared)
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id](*(self._value(argument, names) for argument in node.args))
