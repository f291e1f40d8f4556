"""Properties of a message, and the values of a map: by name, each of a type, with the conversions of JMS 1.1 3.5.4."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from protocols.errors import UsageError
from protocols.jms.conversions import ConversionError, converted
from protocols.jms.values import KINDS, Scalar, Typed, check_value, typed

__all__ = ["KINDS", "MOST_NAME", "NO_PROPERTIES", "Properties", "Typed", "check_name", "property_of"]

MOST_NAME: Final = 255
"""Bytes of UTF-8 of the name of a property."""
_RESERVED: Final = frozenset(("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"))
_NAME: Final = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def check_name(name: str) -> None:
    """Raise UsageError for a name that no selector could use (JMS 1.1 3.5.1), and for one of the header."""
    is_header = name.startswith("JMS") and not name.startswith(("JMSX", "JMS_"))
    if not _NAME.fullmatch(name) or name.upper() in _RESERVED or is_header or len(name.encode()) > MOST_NAME:
        allowed = "letters, digits, _ and $, no digit first, no word of selectors, and nothing that begins with JMS"
        raise UsageError(f"property {name!r} is not allowed; {allowed}")


def property_of(text: str) -> tuple[str, Typed]:
    """Return name and value of a property written as name=value or name:type=value. UsageError for another text.

    Without a type true and false are boolean, whole numbers long, other decimal numbers double, and the rest is a string.
    """
    left, equals, value = text.partition("=")
    name, colon, kind = left.partition(":")
    if not equals or (colon and kind not in KINDS):
        raise UsageError(f"property {text!r} is not allowed; name=value or name:type=value, type one of {', '.join(KINDS)}")
    check_name(name)
    if kind:
        try:
            return name, Typed(kind, converted("string", value, kind))
        except ConversionError as error:
            raise UsageError(f"property {text!r} is not allowed; {error}") from error
    if value in ("true", "false"):
        return name, Typed("boolean", value == "true")
    for guessed in ("long", "double") if _NUMBER.fullmatch(value) else ():
        with suppress(ConversionError):
            return name, Typed(guessed, converted("string", value, guessed))
    return name, Typed("string", value)


class Properties(dict[str, Any]):
    """Plain values by name; `types` has the type of those whose value does not show it.

    Read-only once it is part of a message. `get_int("price")` and the like convert as JMS does, and raise ConversionError; the
    value of a name that is not there is null.
    """

    __slots__ = ("types",)

    def __init__(self, values: Mapping[str, Scalar | Typed] | Iterable[tuple[str, Scalar | Typed]] = ()) -> None:
        super().__init__()
        self.types: dict[str, str] = {}
        for name, value in values.items() if isinstance(values, Mapping) else values:
            self.put(name, *typed(value, name))

    def put(self, name: str, kind: str, value: Scalar) -> None:
        """Set the value and the type of a name; while the message is made, and unchecked."""
        self[name] = value
        self.types.pop(name, None)
        if typed(value).kind != kind:
            self.types[name] = kind

    def type_of(self, name: str) -> str:
        """Return the type of a value that is there."""
        return self.types.get(name) or typed(self[name]).kind

    def typed_items(self) -> list[tuple[str, str, Scalar]]:
        """Return names, types and values."""
        return [(name, self.type_of(name), value) for name, value in self.items()]

    def checked(self, kinds: tuple[str, ...] = KINDS) -> "Properties":
        """Return the properties as a receiver gets them. UsageError for names and values that are not allowed."""
        found = Properties()
        for name, kind, value in self.typed_items():
            check_name(name)
            found.put(name, kind, check_value(f"property {name!r}", kind, value, kinds))
        return found

    def get_boolean(self, name: str) -> bool:
        """Return a value as a boolean."""
        return bool(self._get(name, "boolean"))

    def get_byte(self, name: str) -> int:
        """Return a value as a byte."""
        return int(self._get(name, "byte"))

    def get_short(self, name: str) -> int:
        """Return a value as a short."""
        return int(self._get(name, "short"))

    def get_int(self, name: str) -> int:
        """Return a value as an int."""
        return int(self._get(name, "int"))

    def get_long(self, name: str) -> int:
        """Return a value as a long."""
        return int(self._get(name, "long"))

    def get_float(self, name: str) -> float:
        """Return a value as a float."""
        return float(self._get(name, "float"))

    def get_double(self, name: str) -> float:
        """Return a value as a double."""
        return float(self._get(name, "double"))

    def get_string(self, name: str) -> str | None:
        """Return a value as a text; None for null."""
        if name not in self:
            return None
        found: str = self._get(name, "string")
        return found

    def _get(self, name: str, wanted: str) -> Any:
        kind, value = (self.type_of(name), self[name]) if name in self else ("null", None)
        try:
            return converted(kind, value, wanted)
        except ConversionError as error:
            raise ConversionError(f"{name}: {error}") from None


NO_PROPERTIES: Final = Properties()
"""Shared by messages without properties."""
