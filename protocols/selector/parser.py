"""From the text of a selector to its tree."""

import re
from functools import lru_cache
from importlib.resources import files
from math import isinf
from typing import Final, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedInput, v_args

from protocols.errors import ConfigError
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

__all__ = ["MOST_CHARACTERS", "MOST_DEPTH", "SelectorError", "parse"]

MOST_CHARACTERS: Final = 65_536
MOST_DEPTH: Final = 200
"""Conditions and operands within each other at the most."""
LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 63) - 1

EXPECTED: Final = {
    "operator": {"COMPARISON", "OPERATOR", "_BETWEEN", "_IN", "_LIKE", "_IS"},
    "value": {"NAME", "STRING", "EXACT", "APPROXIMATE", "TRUE", "FALSE"},
    "')'": {"RPAR"},
    "'('": {"LPAR"},
    "','": {"COMMA"},
    "AND": {"_AND"},
    "OR": {"_OR"},
    "NOT": {"_NOT"},
    "NULL": {"_NULL"},
    "the end": {"$END"},
}
"""Terminals of the grammar in the words of a user."""


class SelectorError(ConfigError):
    """A selector that can't be used; `column` counts from 1."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        super().__init__(f"selector: {problem} (column {column})")
        self.text = text
        self.column = column

    @property
    def place(self) -> str:
        """The selector, at most 60 characters of it around the place, and a caret below the place."""
        shown = re.sub(r"\s", " ", self.text)
        first = max(0, min(self.column - 30, len(shown) - 60))
        return f"{shown[first : first + 60]}\n{' ' * (self.column - 1 - first)}^"


class _Part(NamedTuple):
    """A part of a selector: what kind its value is of ("number", "text", "truth value", "any"), its depth and its place."""

    node: Node
    kind: str
    depth: int
    start: int


class _Problem(Exception):
    """An error in a selector, at a position that counts from 0."""

    def __init__(self, start: int, problem: str) -> None:
        super().__init__(problem)
        self.start = start


def parse(text: str) -> Node:
    """Return the tree of a selector. SelectorError for a text that is none."""
    if len(text) > MOST_CHARACTERS:
        raise SelectorError(text, MOST_CHARACTERS + 1, f"{len(text)} characters are not allowed; at most {MOST_CHARACTERS}")
    try:
        part: _Part = _parser().parse(text)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    except _Problem as problem:
        raise SelectorError(text, problem.start + 1, str(problem)) from None
    return part.node


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = files("protocols.selector").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", transformer=_Builder())


def _syntax_error(text: str, error: UnexpectedInput) -> SelectorError:
    accepted = set(getattr(error, "accepts", None) or getattr(error, "allowed", None) or ())
    expected = [name for name, terminals in EXPECTED.items() if accepted & terminals]
    terminal = getattr(error, "token", None)
    end = len(text.rstrip())
    start = end if error.pos_in_stream is None or (terminal is not None and terminal.type == "$END") else error.pos_in_stream
    if terminal is None and text[start] == "'":
        return SelectorError(text, start + 1, "the text that begins here has no end")
    found = "the end" if start >= end else repr(str(terminal) if terminal is not None else text[start])
    return SelectorError(text, start + 1, f"{found} is not allowed here; {' or '.join(expected)} is")


def _deeper(start: int, *parts: _Part) -> int:
    """Return the depth of what has these parts."""
    depth = 1 + max(part.depth for part in parts)
    if depth > MOST_DEPTH:
        raise _Problem(start, f"more than {MOST_DEPTH} conditions and operands within each other are not allowed")
    return depth


def _expect(part: _Part, kind: str, what: str) -> Node:
    """Return the node of a part whose value may be of this kind."""
    node = part.node
    if part.kind not in (kind, "any"):
        raise _Problem(part.start, f"{what} has to be a {kind} here")
    if isinstance(node, Literal) and type(node.value) is int and not LEAST_WHOLE <= node.value <= MOST_WHOLE:
        raise _Problem(part.start, f"{node} is not allowed; whole numbers have 64 bits")
    return node


@v_args(inline=True)
class _Builder(Transformer[Token, _Part]):
    """Makes the tree while the text is parsed, from its leaves up."""

    def start(self, condition: _Part) -> _Part:
        _expect(condition, "truth value", "a selector")
        return condition

    def disjunction(self, *terms: _Part) -> _Part:
        return self._joined(Any, terms)

    def conjunction(self, *terms: _Part) -> _Part:
        return self._joined(All, terms)

    def _joined(self, make: type[All] | type[Any], terms: tuple[_Part, ...]) -> _Part:
        start = terms[0].start
        nodes = tuple(_expect(term, "truth value", "an operand of AND, OR and NOT") for term in terms)
        return _Part(make(nodes), "truth value", _deeper(start, *terms), start)

    def negated(self, term: _Part) -> _Part:
        return _Part(
            Negated(_expect(term, "truth value", "an operand of AND, OR and NOT")),
            "truth value",
            _deeper(term.start, term),
            term.start,
        )

    def comparison(self, left: _Part, operator: Token, right: _Part) -> _Part:
        start, kinds = left.start, {left.kind, right.kind} - {"any"}
        if len(kinds) > 1:
            raise _Problem(start, f"a {left.kind} can't be compared with a {right.kind}")
        if operator not in ("=", "<>") and kinds and kinds != {"number"}:
            raise _Problem(start, f"a {kinds.pop()} can't be compared by {operator}; by = and <> it can")
        nodes = [_expect(part, part.kind, "") for part in (left, right)]
        return _Part(Comparison(nodes[0], str(operator), nodes[1]), "truth value", _deeper(start, left, right), start)

    def between(self, operand: _Part, least: _Part, most: _Part) -> _Part:
        parts = (operand, least, most)
        nodes = [_expect(part, "number", "an operand of BETWEEN") for part in parts]
        return _Part(Between(*nodes), "truth value", _deeper(operand.start, *parts), operand.start)

    def not_between(self, operand: _Part, least: _Part, most: _Part) -> _Part:
        return self.negated(self.between(operand, least, most))

    def contained(self, operand: _Part, *texts: Token) -> _Part:
        return self._test(operand, Contained(_property(operand, "IN"), tuple(map(_unquoted, texts))))

    def not_contained(self, operand: _Part, *texts: Token) -> _Part:
        return self.negated(self.contained(operand, *texts))

    def like(self, operand: _Part, pattern: Token, escape: Token | None) -> _Part:
        character = "" if escape is None else _unquoted(escape)
        if escape is not None and len(character) != 1:
            raise _Problem(escape.start_pos or 0, f"{escape} is not allowed; ESCAPE takes one character")
        text = _unquoted(pattern)
        try:
            like(text, character)
        except ValueError as error:
            raise _Problem(pattern.start_pos or 0, str(error)) from error
        return self._test(operand, Like(_property(operand, "LIKE"), text, character))

    def not_like(self, operand: _Part, pattern: Token, escape: Token | None) -> _Part:
        return self.negated(self.like(operand, pattern, escape))

    def null(self, operand: _Part) -> _Part:
        return self._test(operand, Null(_property(operand, "IS NULL")))

    def not_null(self, operand: _Part) -> _Part:
        return self.negated(self.null(operand))

    def _test(self, operand: _Part, node: Node) -> _Part:
        return _Part(node, "truth value", _deeper(operand.start, operand), operand.start)

    def arithmetic(self, left: _Part, operator: Token, right: _Part) -> _Part:
        nodes = [_expect(part, "number", f"an operand of {operator}") for part in (left, right)]
        node = Arithmetic(nodes[0], str(operator), nodes[1])
        return _Part(node, "number", _deeper(left.start, left, right), left.start)

    def signed(self, sign: Token, operand: _Part) -> _Part:
        start, node = sign.start_pos or 0, operand.node
        if operand.kind not in ("number", "any"):
            raise _Problem(start, f"an operand of {sign} has to be a number here")
        if sign == "-" and isinstance(node, Literal) and not isinstance(node.value, str):
            return _Part(Literal(-node.value), "number", operand.depth, start)
        depth = _deeper(start, operand)
        return _Part(Negative(node) if sign == "-" else node, "number", depth, start)

    def property(self, name: Token) -> _Part:
        return _Part(Property(str(name)), "any", 1, name.start_pos or 0)

    def text(self, string: Token) -> _Part:
        return _Part(Literal(_unquoted(string)), "text", 1, string.start_pos or 0)

    def exact(self, digits: Token) -> _Part:
        text = digits.rstrip("lL").lower()
        start = digits.start_pos or 0
        if len(text) > 40:
            raise _Problem(start, "a number of more than 40 digits is not allowed; whole numbers have 64 bits")
        number = int(text, 16) if text.startswith("0x") else int(text, 8 if re.fullmatch("0[0-7]+", text) else 10)
        if number > MOST_WHOLE + 1:
            raise _Problem(start, f"{digits} is not allowed; whole numbers have 64 bits")
        return _Part(Literal(number), "number", 1, start)

    def approximate(self, digits: Token) -> _Part:
        number = float(digits.rstrip("fFdD"))
        if isinf(number):
            raise _Problem(digits.start_pos or 0, f"{digits} is not allowed; it is no finite number of 64 bits")
        return _Part(Literal(number), "number", 1, digits.start_pos or 0)

    def true(self, word: Token) -> _Part:
        return _Part(Literal(True), "truth value", 1, word.start_pos or 0)

    def false(self, word: Token) -> _Part:
        return _Part(Literal(False), "truth value", 1, word.start_pos or 0)


def _property(part: _Part, operator: str) -> Property:
    if not isinstance(part.node, Property) or part.kind != "any":
        raise _Problem(part.start, f"{part.node} is not allowed before {operator}; a property is")
    return part.node


def _unquoted(string: Token) -> str:
    """Return what is between the quotes."""
    return string[1:-1].replace("''", "'")
