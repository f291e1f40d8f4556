"""Headers of STOMP 1.2: lines of a name and a value, with four characters written as two."""

import re
from typing import Final

from protocols.errors import WireError

__all__ = ["MOST_HEADERS", "escaped", "number_of", "read_headers", "split_line"]

MOST_HEADERS: Final = 1000
"""Headers of one frame."""

LONGEST_NUMBER: Final = 19
_WRITTEN: Final = {"\\": "\\\\", "\r": "\\r", "\n": "\\n", ":": "\\c"}
_SPECIAL: Final = re.compile(r"[\\\r\n:]")
_READ: Final = {"\\\\": "\\", "\\r": "\r", "\\n": "\n", "\\c": ":"}
_ESCAPE: Final = re.compile(r"\\.?", re.DOTALL)


def number_of(text: str) -> int:
    """Return the number of up to 64 bits that a value spells in digits; -1 if it spells none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else -1


def escaped(text: str) -> str:
    """Return a name or a value as it is written."""
    return _SPECIAL.sub(lambda found: _WRITTEN[found[0]], text)


def _unescaped(text: str) -> str:
    """Return a name or a value that was written. WireError for an escape that STOMP does not have."""
    try:
        return _ESCAPE.sub(lambda found: _READ[found[0]], text)
    except KeyError as error:
        raise WireError(f"{error} is no escape of STOMP 1.2") from error


def split_line(line: str, is_escaped: bool = True) -> tuple[str, str]:
    """Return name and value of a header. WireError for a line that is none."""
    name, colon, value = line.partition(":")
    if not colon or not name:
        raise WireError(f"a line of a head that is no header: {line[:60]!r}")
    return (_unescaped(name), _unescaped(value)) if is_escaped and "\\" in line else (name, value)


def read_headers(head: bytes, is_escaped: bool = True) -> dict[str, str]:
    """Return the headers of encoded lines; of those with one name the first counts. WireError for lines that are none."""
    try:
        lines = head.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise WireError(f"a head that is not UTF-8: {error}") from error
    if len(lines) > MOST_HEADERS:
        raise WireError(f"{len(lines)} headers; {MOST_HEADERS} are allowed")
    found: dict[str, str] = {}
    for line in lines:
        if line:
            name, value = split_line(line, is_escaped)
            found.setdefault(name, value)
    return found
