"""The busiest interval of a process, with a clock and a scheduler of the test's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emu import processor_load
from emu.processor_load import ProcessorLoad


class FakeLoop:
    """A clock that a test moves, and the call that is due next."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: tuple[float, Callable[[], object]] = (0.0, lambda: None)

    def time(self) -> float:
        """Return the time in seconds."""
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> None:
        """Remember a call."""
        self.due = (self.now + delay, callback)

    def go_on(self, late: float = 0.0) -> None:
        """Make the call that is due, so many seconds late."""
        when, callback = self.due
        self.now = when + late
        callback()


def test_the_busiest_interval_counts_with_the_time_of_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scheduler = tmp_path / "schedstat"
    monkeypatch.setattr(processor_load, "_SCHEDULER", scheduler)
    scheduler.write_text("7000000000 1000000000 12\n")
    loop: Any = FakeLoop()
    load = ProcessorLoad(loop)
    # Of half a second it runs 0.1 s and waits 0.05 s; then, in a second since the loop is late, 0.7 s and 0.25 s; then nothing.
    for ran, waited, late in ((7.1, 1.05, 0.0), (7.8, 1.3, 0.5), (7.8, 1.3, 0.0)):
        scheduler.write_text(f"{ran * 1e9:.0f} {waited * 1e9:.0f} 12\n")
        loop.go_on(late)
    assert load.largest == pytest.approx(0.95)


def test_nothing_is_said_where_the_kernel_has_no_such_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processor_load, "_SCHEDULER", tmp_path / "none")
    loop: Any = FakeLoop()
    load = ProcessorLoad(loop)
    loop.go_on()
    assert load.largest == 0.0
