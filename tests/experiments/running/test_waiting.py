"""After a transfer the command waits for what is not done yet, but not for long after a signal."""

import os
import signal
import time
from typing import Any, cast

import pytest

from emu.loop import new_loop
from experiments.running.live import FINISHED, Live


class Host:
    """A host that only knows the time."""

    now = 1.0

    def stop(self) -> None:
        """Do nothing."""


class Player:
    """A program that ends at once, by itself or by a signal."""

    def __init__(self, number: signal.Signals | None) -> None:
        self.number = number
        self.session: Live | None = None

    def start(self, host: object) -> None:
        """End."""
        assert self.session is not None
        if self.number is None:
            self.session.stop()
        else:
            os.kill(os.getpid(), self.number)

    def finished(self) -> bool:
        """Whether the program has finished."""
        return True


def played(number: signal.Signals | None) -> tuple[Live, str]:
    program, session = Player(number), Live(new_loop(), cast(Any, Host()))
    program.session = session
    return session, session.play(cast(Any, program), 5.0).word


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_interrupts_and_cuts_the_wait_short(number: signal.Signals) -> None:
    session, word = played(number)
    begin = time.monotonic()
    session.wait(lambda: False)
    session.loop.close()
    assert word == "interrupted"
    assert time.monotonic() - begin < 2


def test_a_hang_up_is_ignored_by_a_program_that_was_started_to_survive_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        program, session = Player(signal.SIGHUP), Live(new_loop(), cast(Any, Host()))
        program.session = session
        assert session.play(cast(Any, program), 0.1).word == "timeout"
        session.loop.close()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_finished_program_waits_until_all_is_done_or_a_signal_comes() -> None:
    session, word = played(None)
    looks = iter([False, False, True])
    session.wait(lambda: next(looks))
    assert (word, list(looks)) == (FINISHED, [])
    session.loop.call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
    begin = time.monotonic()
    session.wait(lambda: False)
    session.loop.close()
    assert time.monotonic() - begin < 2
