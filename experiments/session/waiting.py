"""Wait for a condition that callbacks of an event loop change, by any number of tasks."""

import asyncio
from collections.abc import Callable

__all__ = ["Changes"]


class Changes:
    """A condition variable: `changed()` makes waiting tasks test their conditions, `fail` raises an error in them and later."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None
        self.failure: Exception | None = None

    def changed(self) -> None:
        """Make the tasks that wait test their conditions again."""
        if self._next is not None:
            self._next.set_result(None)
            self._next = None

    def fail(self, error: Exception) -> None:
        """Raise an error in all tasks that wait; the first one counts."""
        if self.failure is None:
            self.failure = error
            self.changed()

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds. Raises the error given to `fail`."""
        while not condition():
            self.check()
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            # A task that is cancelled must not cancel what the others wait for.
            await asyncio.shield(self._next)
