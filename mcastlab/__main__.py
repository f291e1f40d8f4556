"""Run the command `mcastlab`, also by `python -m mcastlab`."""

import gc
import os
import signal
import sys
from threading import Timer, main_thread
from time import monotonic
from types import FrameType
from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 130
_AGAIN = 0.02
"""Seconds until an interrupt that could not be raised is raised again."""
_LONGEST = 3.0
"""Seconds for which an interrupt waits for the end of an import, as of a protocol of the user's that never ends."""
_YOUNG_OBJECTS = 200_000
"""Number of new objects at which Python searches them for cycles of garbage (threshold 0 of the module gc).

More than a command imports, which stays until its end: searching it takes a twentieth of the time of a short run.
"""
_HANDLER = signal.getsignal(signal.SIGINT)
"""The handler of Python, or none where a shell has started the command in the background."""


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process without a traceback."""
    os._exit(_INTERRUPTED)


class _Interrupt:
    """A handler that raises KeyboardInterrupt, but not while a module is imported, whose code in C may discard it."""

    def __init__(self) -> None:
        self.deferred_at: float | None = None
        """When an interrupt came that is still to be raised."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt now, or `_AGAIN` seconds later; after `_LONGEST` seconds within an import, too."""
        if _is_importing(frame) and (self.deferred_at is None or monotonic() < self.deferred_at + _LONGEST):
            self.defer()
            return
        self.deferred_at = None
        raise KeyboardInterrupt

    def defer(self) -> None:
        """Raise it later."""
        self.deferred_at = self.deferred_at or monotonic()
        # Only a signal to this very thread ends what waits in it.
        timer = Timer(_AGAIN, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
        timer.daemon = True
        timer.start()

    def note_lost(self, lost: "sys.UnraisableHookArgs") -> None:
        """Raise an interrupt again that was lost, as in a callback when an object is freed; print other errors."""
        if lost.exc_type is KeyboardInterrupt:
            self.defer()
        else:
            sys.__unraisablehook__(lost)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether the command is importing a module."""
    while frame is not None and frame.f_code is not main.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_INTERRUPT = _Interrupt()


def _interrupts_end_it(at_once: bool) -> None:
    """Let Ctrl-C end the process at once, or raise KeyboardInterrupt."""
    if _HANDLER is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once if at_once else _INTERRUPT)
        sys.unraisablehook = _INTERRUPT.note_lost


# While the command is imported, and when it has ended, nothing has to be tidied up.
_interrupts_end_it(at_once=True)


def main() -> None:
    """Run the command line of this process and exit with its code; that of Ctrl-C is 130, however early or late it comes."""
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    from experiments.cli import main as run

    try:
        _interrupts_end_it(at_once=False)
        run()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    finally:
        _interrupts_end_it(at_once=True)
        if _INTERRUPT.deferred_at is not None:
            raise SystemExit(_INTERRUPTED)


if __name__ == "__main__":
    main()
