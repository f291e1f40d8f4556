"""Names from the network, made safe for a folder."""

import re
import unicodedata

__all__ = ["LONGEST", "safe_name"]

LONGEST = 200
"""Bytes of UTF-8 kept of a name: file systems take 255, and room is left for a number behind it."""


def _harmless(letter: str) -> str:
    # Categories C* are control, format (which reorder text on a terminal), surrogate and unassigned characters;
    # Zl and Zp break lines.
    category = unicodedata.category(letter)
    return "_" if category[0] == "C" or category in ("Zl", "Zp") else letter


def _shorten(name: str) -> str:
    """Cut the stem and keep a short extension."""
    raw = name.encode()
    if len(raw) <= LONGEST:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if stem and len(extension.encode()) <= 16 else ""
    return raw[: LONGEST - len(tail.encode())].decode(errors="ignore") + tail


def safe_name(info: bytes, fallback: str) -> str:
    """A file name that stays inside its folder: the last component of `info`, or `fallback` when nothing safe is left.

    Neither separators nor control characters come through, no leading dot (a hidden file, `..`) and no leading dash (an option
    to the next command that reads the folder); at most `LONGEST` bytes.
    """
    text = unicodedata.normalize("NFC", info.rstrip(b"\0").decode(errors="replace").replace("\ufffd", "_"))
    last = text.replace("\\", "/").rpartition("/")[2]
    name = re.sub(r"^[\s.]+", "", "".join(map(_harmless, last)).strip())
    if name.startswith("-"):
        name = "_" + name[1:]
    name = _shorten(name).rstrip()
    return name if name.strip("._ ") else fallback
