"""Strict YAML: plain values and text keys, each key once, within bounds that keep a hostile file from using much memory.

Dates, octal and sexagesimal numbers are read as text, since scenarios have none: `010` is not eight, and `1:30` not ninety. An
alias counts as many values as its anchor, so that a few lines can't expand to millions.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

__all__ = ["DEPTH_LIMIT", "VALUE_LIMIT", "parse_yaml"]

VALUE_LIMIT = 200_000
DEPTH_LIMIT = 64
_DIGITS = 100
_LONGEST_SHOWN = 40
_INT_TAG, _FLOAT_TAG, _DATE_TAG = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))
_NUMBERS = {
    _INT_TAG: re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z"),
    _FLOAT_TAG: re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
"""Tag -> texts that are such a number without quotes: those of PyYAML without octal and sexagesimal ones."""
# The parser in C is ten times faster, and a part of PyYAML's wheels.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, _NUMBERS.get(tag, shape)) for tag, shape in resolvers if tag != _DATE_TAG]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key is a list or a mapping; keys are text", key.start_mark)
            if key.value in seen:
                raise ConstructorError(None, None, f"key {_short(key.value)!r} appears twice", key.start_mark)
            seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value; ConstructorError for a text that its tag does not allow, like `!!int x`."""
        kind = node.tag.rpartition(":")[2]
        if kind == "int" and isinstance(node, yaml.ScalarNode) and len(node.value) > _DIGITS:
            what = f"{_short(node.value)} has {len(node.value)} digits, at most {_DIGITS} are allowed"
            raise ConstructorError(None, None, what, node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            what = f"{_short(str(node.value))} is not allowed; it is no {kind}"
            raise ConstructorError(None, None, what, node.start_mark) from error


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _refused(mark: Any, problem: str) -> ComposerError:
    return ComposerError(None, None, problem, mark)


def _too_deep(mark: Any) -> ComposerError:
    return _refused(mark, f"nested more than {DEPTH_LIMIT} deep")


def _events(text: str) -> Iterator[yaml.Event]:
    """Parse a text. libyaml has a limit of depth from 0.2.6 on, and reads some 1,000 characters ahead of its first event."""
    try:
        yield from yaml.parse(text, _Base)
    except yaml.MarkedYAMLError as error:
        problem, mark = error.problem or "", error.problem_mark
        if "nesting depth" in problem:
            raise _too_deep(mark) from error
        character = "" if mark is None else text[mark.index : mark.index + 1]
        if "tab character" in problem or character == "\t":
            error.problem = "a tab; YAML is indented by spaces"
        elif "cannot start any token" in problem:
            error.problem = f"a value can't begin with {character!r}; in quotes it can"
        elif problem == "mapping values are not allowed in this context":
            error.problem = "a key can't stand here: the line is indented too far, or a text with ': ' needs quotes"
        raise


class _Bounds:
    """Counts the values and the depth of a YAML text from its events, before anything is built."""

    def __init__(self) -> None:
        self._values = 0
        self._open: list[tuple[str | None, int]] = []
        """Anchors of the lists and mappings begun, and the values counted before each."""
        self._sizes: dict[str, int] = {}

    def check(self, text: str) -> None:
        """Raise ComposerError at the first event that exceeds a limit."""
        for event in _events(text):
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, before = self._open.pop()
                self._size(anchor, before)
            elif isinstance(event, yaml.NodeEvent):
                self._count(event)

    def _count(self, event: yaml.NodeEvent) -> None:
        before = self._values
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in self._open):
                raise _refused(event.start_mark, f"alias {event.anchor!r} stands for a value it is part of")
            self._values += self._sizes.get(event.anchor or "", 1)
        else:
            self._values += 1
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, before))
        elif isinstance(event, yaml.ScalarEvent):
            self._size(event.anchor, before)
        if len(self._open) > DEPTH_LIMIT:
            raise _too_deep(event.start_mark)
        if self._values > VALUE_LIMIT:
            raise _refused(event.start_mark, f"more than {VALUE_LIMIT:,} values, aliases included")

    def _size(self, anchor: str | None, before: int) -> None:
        if anchor is not None:
            self._sizes[anchor] = self._values - before


def parse_yaml(text: str) -> Any:
    """Return the value in a YAML text. Raises `yaml.YAMLError`."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        # Of a command line whose bytes are not UTF-8.
        raise yaml.YAMLError("a text that UTF-8 can't hold")
    _Bounds().check(text)
    # Safe: the loader derives from SafeLoader and constructs plain values only.
    return yaml.load(text, _Loader)
