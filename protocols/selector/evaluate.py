"""Selectors compiled to functions: a value is that of Python, None stands for null and for unknown (JMS 1.1 3.8.1.2)."""

import operator
from collections.abc import Callable, Mapping, Sequence
from math import copysign, inf, nan
from typing import Final, TypeAlias

from protocols.selector.like import like
from protocols.selector.tree import (
    All,
    Any,
    Arithmetic,
    Between,
    Comparison,
    Contained,
    Like,
    Literal,
    Negated,
    Negative,
    Node,
    Null,
    Property,
)

__all__ = ["Evaluate", "Fields", "Value", "compiled"]

Value: TypeAlias = bool | int | float | str
Fields: TypeAlias = Mapping[str, Value]
"""Header fields and properties of a message by name; one that is missing is null."""
Evaluate: TypeAlias = Callable[[Fields], Value | None]

_TESTS: Final[Mapping[str, Callable[[Value, Value], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORD: Final = 1 << 64
_HALF: Final = 1 << 63


def compiled(node: Node) -> Evaluate:
    """Return the function that computes the value of a tree."""
    return _COMPILERS[type(node)](node)


def _literal(node: Literal) -> Evaluate:
    value = node.value
    return lambda fields: value


def _property(node: Property) -> Evaluate:
    name = node.name
    return lambda fields: fields.get(name)


def _comparison(node: Comparison) -> Evaluate:
    test, is_ordered = _TESTS[node.operator], node.operator not in ("=", "<>")
    if isinstance(node.left, Property) and isinstance(node.right, Literal):
        return _comparison_with(node.left.name, test, node.right.value, is_ordered)
    left, right = compiled(node.left), compiled(node.right)

    def compare(fields: Fields) -> bool | None:
        first, second = left(fields), right(fields)
        if first is None or second is None:
            return None
        return _are_alike(first, second, is_ordered) and _compared(test, first, second)

    return compare


def _comparison_with(name: str, test: Callable[[Value, Value], bool], value: Value, is_ordered: bool) -> Evaluate:
    """Return the comparison of a property with a constant, the usual one."""
    kind = type(value)

    def compare(fields: Fields) -> bool | None:
        found = fields.get(name)
        if found is None:
            return None
        if type(found) is kind:
            # What is ordered is a number: the parser takes no other constant.
            return test(found, value)
        return _are_alike(found, value, is_ordered) and _compared(test, found, value)

    return compare


def _are_alike(first: Value, second: Value, is_ordered: bool) -> bool:
    """Return whether two values can be compared: both numbers, or by = and <> two of one type."""
    if type(first) in (int, float):
        return type(second) in (int, float)
    return type(first) is type(second) and not is_ordered


def _compared(test: Callable[[Value, Value], bool], first: Value, second: Value) -> bool:
    """Compare values that are alike; a whole number with a fraction as a fraction, like Java."""
    if type(first) is not type(second):
        return test(float(first), float(second))
    return test(first, second)


def _between(node: Between) -> Evaluate:
    terms = [Comparison(node.operand, ">=", node.least), Comparison(node.operand, "<=", node.most)]
    return _all(All(tuple(terms)))


def _contained(node: Contained) -> Evaluate:
    name, texts = node.operand.name, frozenset(node.texts)

    def contained(fields: Fields) -> bool | None:
        found = fields.get(name)
        return found in texts if isinstance(found, str) else None

    return contained


def _like(node: Like) -> Evaluate:
    name, fits = node.operand.name, like(node.pattern, node.escape)

    def is_like(fields: Fields) -> bool | None:
        found = fields.get(name)
        return None if found is None else isinstance(found, str) and fits(found)

    return is_like


def _null(node: Null) -> Evaluate:
    name = node.operand.name
    return lambda fields: fields.get(name) is None


def _negated(node: Negated) -> Evaluate:
    term = compiled(node.term)

    def negate(fields: Fields) -> bool | None:
        value = term(fields)
        return not value if isinstance(value, bool) else None

    return negate


def _all(node: All) -> Evaluate:
    return _joined(node.terms, decisive=False)


def _any(node: Any) -> Evaluate:
    return _joined(node.terms, decisive=True)


def _joined(nodes: Sequence[Node], decisive: bool) -> Evaluate:
    """Return the function of terms joined by AND (`decisive` is false) or OR (true): a term of this value decides alone."""
    terms, other = tuple(map(compiled, nodes)), not decisive

    def join(fields: Fields) -> bool | None:
        result: bool | None = other
        for term in terms:
            value = term(fields)
            if value is decisive:
                return decisive
            if value is not other:
                result = None
        return result

    return join


def _negative(node: Negative) -> Evaluate:
    operand = compiled(node.operand)

    def negate(fields: Fields) -> int | float | None:
        value = operand(fields)
        if isinstance(value, float):
            return -value
        return _wrapped(-value) if type(value) is int else None

    return negate


def _arithmetic(node: Arithmetic) -> Evaluate:
    left, right, compute = compiled(node.left), compiled(node.right), _OPERATIONS[node.operator]

    def calculate(fields: Fields) -> int | float | None:
        first, second = left(fields), right(fields)
        if type(first) is int and type(second) is int:
            value = compute(first, second)
            return None if value is None else _wrapped(int(value))
        if type(first) in (int, float) and type(second) in (int, float):
            return compute(float(first), float(second))  # type: ignore[arg-type]
        return None

    return calculate


def _wrapped(number: int) -> int:
    """Return a whole number as it is after an overflow of 64 bits in Java."""
    return (number + _HALF) % _WORD - _HALF


def _divided(first: float, second: float) -> float | None:
    """Return the quotient as in Java; None for a whole number divided by zero."""
    if isinstance(first, int) and isinstance(second, int):
        if not second:
            return None
        quotient = abs(first) // abs(second)
        return quotient if (first < 0) == (second < 0) else -quotient
    if second:
        return first / second
    return copysign(inf, first) * copysign(1.0, second) if first and first == first else nan  # noqa: PLR0124 (not a number)


_OPERATIONS: Final[Mapping[str, Callable[[float, float], float | None]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
_COMPILERS: Final[Mapping[type, Callable[..., Evaluate]]] = {
    Literal: _literal,
    Property: _property,
    Comparison: _comparison,
    Between: _between,
    Contained: _contained,
    Like: _like,
    Null: _null,
    Negated: _negated,
    All: _all,
    Any: _any,
    Negative: _negative,
    Arithmetic: _arithmetic,
}
