"""Show that a command is at work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["working"]


class _Line:
    """A text that is asked for anew whenever it is drawn."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def __rich__(self) -> str:
        return self._text()


@contextmanager
def working(text: str | Callable[[], str]) -> Iterator[None]:
    """Show a spinner and a text on stderr if it is a terminal; a function is called twice a second, in another thread."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
    elif isinstance(text, str):
        with console.status(text):
            yield
    else:
        with console.status(_Line(text), refresh_per_second=2):
            yield
