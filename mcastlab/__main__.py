"""Run the command `mcastlab`, also by `python -m mcastlab`."""

import os
import signal
from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 130
_HANDLER = signal.getsignal(signal.SIGINT)
"""The handler of Python, or none where a shell has started the command in the background."""


def _end_at_once(number: int, frame: object) -> NoReturn:
    """End the process without a traceback."""
    os._exit(_INTERRUPTED)


def _interrupts_end_it(at_once: bool) -> None:
    """Let Ctrl-C end the process at once, or raise KeyboardInterrupt."""
    if _HANDLER is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once if at_once else _HANDLER)


# While the command is imported, and when it has ended, nothing has to be tidied up.
_interrupts_end_it(at_once=True)


def main() -> None:
    """Run the command line of this process and exit with its code; that of Ctrl-C is 130, however early or late it comes."""
    from experiments.cli import main as run

    try:
        _interrupts_end_it(at_once=False)
        run()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    finally:
        _interrupts_end_it(at_once=True)


if __name__ == "__main__":
    main()
