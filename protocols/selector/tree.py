"""Selectors as trees; `str` of a tree is a selector whose tree is equal."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

__all__ = [
    "All",
    "Any",
    "Arithmetic",
    "Between",
    "Comparison",
    "Contained",
    "Like",
    "Literal",
    "Negated",
    "Negative",
    "Node",
    "Null",
    "Property",
    "quoted",
]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Whole numbers have 64 bits."""

    value: bool | int | float | str

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).upper()
        return quoted(self.value) if isinstance(self.value, str) else repr(self.value)


@dataclass(frozen=True, slots=True)
class Property:
    """The value of a header field or property; null if the message has none of this name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Negative:
    """A number with the other sign."""

    operand: "Node"

    def __str__(self) -> str:
        return f"(-{self.operand})"


@dataclass(frozen=True, slots=True)
class _Pair:
    left: "Node"
    operator: str
    right: "Node"

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


class Arithmetic(_Pair):
    """Two numbers joined by +, -, * or /."""

    __slots__ = ()


class Comparison(_Pair):
    """Two values compared by =, <>, <, <=, > or >=."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Between:
    """Whether a number lies between two others, or is one of them."""

    operand: "Node"
    least: "Node"
    most: "Node"

    def __str__(self) -> str:
        return f"({self.operand} BETWEEN {self.least} AND {self.most})"


@dataclass(frozen=True, slots=True)
class Contained:
    """Whether a text is one of a list."""

    operand: Property
    texts: tuple[str, ...]

    def __str__(self) -> str:
        return f"({self.operand} IN ({', '.join(map(quoted, self.texts))}))"


@dataclass(frozen=True, slots=True)
class Like:
    """Whether a text fits a pattern: `_` stands for one character, `%` for any number, `escape` takes their meaning away."""

    operand: Property
    pattern: str
    escape: str = ""

    def __str__(self) -> str:
        escape = f" ESCAPE {quoted(self.escape)}" if self.escape else ""
        return f"({self.operand} LIKE {quoted(self.pattern)}{escape})"


@dataclass(frozen=True, slots=True)
class Null:
    """Whether the message has no such property."""

    operand: Property

    def __str__(self) -> str:
        return f"({self.operand} IS NULL)"


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite; unknown stays unknown."""

    term: "Node"

    def __str__(self) -> str:
        return f"(NOT {self.term})"


@dataclass(frozen=True, slots=True)
class _Terms:
    terms: tuple["Node", ...]
    word: ClassVar[str]

    def __str__(self) -> str:
        return f"({f' {self.word} '.join(map(str, self.terms))})"


class All(_Terms):
    """Whether all of two or more terms are true."""

    __slots__ = ()
    word = "AND"


class Any(_Terms):
    """Whether one of two or more terms is true."""

    __slots__ = ()
    word = "OR"


Node: TypeAlias = (
    Literal | Property | Negative | Arithmetic | Comparison | Between | Contained | Like | Null | Negated | All | Any
)


def quoted(text: str) -> str:
    """Return a text as it is written in a selector."""
    return "'" + text.replace("'", "''") + "'"
