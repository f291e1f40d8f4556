"""Conditions over the axes of a sweep, like `receivers >= 1000 and loss > 5%`.

They are parsed once with the grammar of Python expressions, and interpreted, never evaluated as Python code.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from experiments.scenario.suggestion import one_of
from experiments.sweep.spec.quantities import Value, dimension_of, number_of
from protocols.errors import ConfigError, shown

__all__ = ["Condition"]

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, items: value in items,
    ast.NotIn: lambda value, items: value not in items,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
QUANTITY = re.compile(r"(?<![\w.'\"])(\d+(?:\.\d+)?)(%|[A-Za-z]+)(?![\w'\"])")


class Condition:
    """A parsed condition over `names`; ConfigError, without the key, if it is invalid.

    `dimensions` are those of the values of the names, as far as they have units; it compares no others with them.
    """

    def __init__(self, text: str, names: Sequence[str], dimensions: Mapping[str, str] = MappingProxyType({})) -> None:
        self.text = text
        self._names, self._dimensions = names, dimensions
        try:
            # Quantities like 5% and 10ms are not Python; as string literals they parse.
            self._tree = ast.parse(QUANTITY.sub(r"'\1\2'", text), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise self._wrong("it is not a comparison like receivers > 100 and loss <= 5%") from error
        self._check(self._tree)

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Return whether the condition is true at a point; ConfigError if the values cannot be compared."""
        try:
            return bool(self._evaluate(self._tree, values))
        except (TypeError, ZeroDivisionError) as error:
            raise self._wrong(str(error)) from error

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(f"value {shown(self.text)} is not allowed; {why}")

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)):
            if ast.unparse(node) not in self._names:
                raise self._wrong(f"{ast.unparse(node)!r} is not an axis; {one_of(ast.unparse(node), self._names)}")
            return
        if not self._known(node):
            raise self._wrong(f"{ast.unparse(node)!r} is not supported; comparisons, and, or, not, in, + - * / are")
        if isinstance(node, ast.Compare):
            self._check_dimensions(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._check(child)

    def _check_dimensions(self, node: ast.Compare) -> None:
        found: dict[str, str] = {}
        for operand in (node.left, *node.comparators):
            for item in operand.elts if isinstance(operand, (ast.List, ast.Tuple)) else (operand,):
                text = str(item.value) if isinstance(item, ast.Constant) else ast.unparse(item)
                found.setdefault(self._dimensions.get(text) or dimension_of([text]), text)
        found.pop("", None)
        if len(found) > 1:
            raise self._wrong(" and ".join(f"{text} is a {dimension}" for dimension, text in found.items()))

    @staticmethod
    def _known(node: ast.expr) -> bool:
        if isinstance(node, ast.Compare):
            return all(type(op) in COMPARE for op in node.ops)
        if isinstance(node, ast.BinOp):
            return type(node.op) in ARITHMETIC
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, (ast.Not, ast.USub))
        return isinstance(node, (ast.BoolOp, ast.Constant, ast.List, ast.Tuple))

    def _evaluate(self, node: ast.expr, values: Mapping[str, Value]) -> Any:
        if isinstance(node, ast.Constant):
            return number_of(node.value) if isinstance(node.value, str) else node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            return values[ast.unparse(node)]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._evaluate(item, values) for item in node.elts]
        if isinstance(node, ast.BoolOp):
            wanted = all if isinstance(node.op, ast.And) else any
            return wanted(self._evaluate(part, values) for part in node.values)
        if isinstance(node, ast.UnaryOp):
            inner = self._evaluate(node.operand, values)
            return not inner if isinstance(node.op, ast.Not) else -inner
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](self._evaluate(node.left, values), self._evaluate(node.right, values))
        assert isinstance(node, ast.Compare)
        left = self._evaluate(node.left, values)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._evaluate(part, values)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True
