"""Run a coroutine as a command does: on a loop with exact timers, until it ends, a signal comes or the time is over."""

import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

from emu.loop import new_loop
from experiments.running.garbage import frozen

__all__ = ["FINISHED", "Ending", "Live", "live"]

FINISHED, INTERRUPTED = "finished", "interrupted"
"""Words of an ending that the program itself decided, and of one by a signal."""
WAIT = 0.02
"""Seconds between two looks of `Live.wait`."""
YOUNG_OBJECTS = 50_000
"""New objects after which Python looks for cycles among them."""
LAST = 0.5
"""Seconds for what is not done when a signal comes."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why `play` ended ("finished", "interrupted", "timeout" or a word given to `stop`), and after how many seconds."""

    word: str
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a termination signal ended it."""
        return self.word == INTERRUPTED


class Live:
    """An event loop for one command; `live` makes and closes it."""

    def __init__(self) -> None:
        self.loop = new_loop()
        self._word = ""

    def stop(self, word: str = FINISHED) -> None:
        """End `play` with the reason `word`; the first call decides."""
        self._word = self._word or word
        self.loop.stop()

    def every(self, period: float, action: Callable[[], None]) -> None:
        """Call `action` now and every `period` seconds, until `play` ends."""

        def again() -> None:
            if not self._word:
                action()
                self.loop.call_later(period, again)

        again()

    def play(self, main: Coroutine[Any, Any, None], timeout: float = inf) -> Ending:
        """Run a coroutine until it ends, `stop`, SIGINT, SIGTERM, SIGHUP, or `timeout` seconds have passed.

        One that has not ended then is cancelled. What it raises is raised.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # A program started by nohup(1) goes on when its terminal is closed.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self.loop.add_signal_handler(number, self.stop, INTERRUPTED)
        begin, task = self.loop.time(), self.loop.create_task(main)
        task.add_done_callback(lambda _: self.stop())
        try:
            self.loop.run(timeout)
            self._word = self._word or "timeout"
        finally:
            seconds = self.loop.time() - begin
            task.cancel()
            while not task.done():
                # A signal that comes now stops the loop, and does not end the cleaning up.
                self.loop.run()
        if not task.cancelled():
            task.result()
        return Ending(self._word, seconds)

    def wait(self, done: Callable[[], bool], seconds: float = inf) -> None:
        """After `play`, wait until `done()`, but no longer than `seconds`, nor than a moment after a signal."""

        def look() -> None:
            if done():
                self.loop.stop()
            else:
                self.loop.call_later(WAIT, look)

        if self._word == INTERRUPTED:
            seconds = min(seconds, LAST)
        if seconds > 0:
            self.loop.call_soon(look)
            self.loop.run(seconds)


@contextmanager
def live() -> Iterator[Live]:
    """Make an event loop for a command, and close it at the end."""
    found = Live()
    # Whoever publishes keeps thousands of objects for repairs, and makes no cycles: looking for some took a fifth of its time.
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    try:
        # A search of all that is loaded would take 50 ms somewhere in the session, in which nothing is received or answered.
        with frozen():
            yield found
    finally:
        gc.set_threshold(*thresholds)
        found.loop.close()
