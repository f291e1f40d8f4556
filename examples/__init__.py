"""Programs to read, run and change."""

from argparse import ArgumentTypeError

__all__ = ["at_least_one"]


def at_least_one(text: str) -> int:
    """Return the whole number of an option, from 1 on. ArgumentTypeError for anything else, which argparse shows."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not allowed; a whole number from 1 on")
    return int(text)
