"""Turn file names from the network into names that are safe in a folder."""

import re
import unicodedata

__all__ = ["LONGEST", "safe_name"]

LONGEST = 200
"""Bytes of UTF-8 in a name: file systems allow 255, and a number may be appended."""


def _harmless(letter: str) -> str:
    # Categories C* are control, format (which reorder text on a terminal), surrogate and unassigned characters;
    # Zl and Zp break lines.
    category = unicodedata.category(letter)
    return "_" if category[0] == "C" or category in ("Zl", "Zp") else letter


def _shorten(name: str) -> str:
    """Truncate the stem of a name to `LONGEST` bytes and keep a short extension."""
    raw = name.encode()
    if len(raw) <= LONGEST:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if stem and len(extension.encode()) <= 16 else ""
    return raw[: LONGEST - len(tail.encode())].decode(errors="ignore") + tail


def safe_name(info: bytes, fallback: str) -> str:
    """Return a file name that stays inside its folder: the last component of `info`, or `fallback` when nothing safe is left.

    The name has no separators, no control characters, no leading dot (a hidden file, `..`), no leading dash (an option to a
    command that reads the folder), and at most `LONGEST` bytes.
    """
    text = unicodedata.normalize("NFC", info.rstrip(b"\0").decode(errors="replace").replace("\ufffd", "_"))
    last = text.replace("\\", "/").rpartition("/")[2]
    name = re.sub(r"^[\s.]+", "", "".join(map(_harmless, last)).strip())
    if name.startswith("-"):
        name = "_" + name[1:]
    name = _shorten(name).rstrip()
    return name if name.strip("._ ") else fallback
