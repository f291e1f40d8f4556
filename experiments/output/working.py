"""Show that a command is at work."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["working"]


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner on stderr if it is a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        yield
