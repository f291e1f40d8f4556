"""After a transfer the command waits for what is not done yet, but not for long after a signal."""

import asyncio
import os
import signal
import time

import pytest

from experiments.running.live import FINISHED, Live


async def ending(number: signal.Signals | None) -> None:
    """End at once, by itself or by a signal."""
    if number is not None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()


def played(number: signal.Signals | None) -> tuple[Live, str]:
    session = Live()
    return session, session.play(ending(number), 5.0).word


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
        session = Live()
        assert session.play(ending(signal.SIGHUP), 0.1).word == "timeout"
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


def test_what_is_cancelled_cleans_up_even_if_a_second_signal_comes() -> None:
    cleaned = []

    async def stubborn() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.02)
            cleaned.append(True)

    session = Live()
    assert session.play(stubborn()).interrupted
    session.loop.close()
    assert cleaned == [True]


def test_an_exception_of_the_coroutine_is_raised() -> None:
    async def wrong() -> None:
        raise KeyError("x")

    session = Live()
    with pytest.raises(KeyError):
        session.play(wrong())
    session.loop.close()
