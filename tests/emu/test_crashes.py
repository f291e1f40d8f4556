"""Crashes of emulated hosts: the process is killed at once, and its counters until then are reported nevertheless."""

import time
from typing import Any

import pytest

from emu.fault_injection import HostCrash
from emu.launch import emulate
from protocols.hosting import PortsHost
from protocols.machine import Address, Machine, Message
from tests.emu.number_protocol import PORT, NumberCodec
from topologies.generators import Star

pytestmark = pytest.mark.emu
LONG = 1.0
"""Seconds of an input."""


class _Busy(Machine):
    """Counts for a second in one input, a millisecond each."""

    def __init__(self, host: PortsHost) -> None:
        super().__init__(host)
        self.counted = self.ended = 0

    def start(self, now: float) -> None:
        """Begin soon."""
        self._due(now + 0.2)

    def wake(self, now: float) -> None:
        """Count."""
        del now
        self.deadline = float("inf")
        begin = time.monotonic()
        while time.monotonic() < begin + LONG:
            time.sleep(0.001)
            self.counted += 1
        self.ended = 1

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nobody sends."""

    def counts(self) -> dict[str, int]:
        """What was counted, and whether the input ended."""
        return {"counted": self.counted, "ended": self.ended}


class _BusyProgram:
    """Runs a busy machine; it never finishes."""

    def __init__(self) -> None:
        self._machine: _Busy | None = None

    def start(self, host: PortsHost) -> None:
        """Run it."""
        self._machine = _Busy(host)
        host.run(self._machine, lambda event: None)

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Its counters."""
        assert self._machine is not None
        return self._machine.counts()


def test_a_crash_at_a_time_stops_the_process_amid_an_input() -> None:
    run = emulate(
        Star.model_validate({"receivers": 1}).build(),
        {"r1": _BusyProgram(), "sender": _BusyProgram()},
        codec=NumberCodec,
        port=PORT,
        duration=2.2,
        over=lambda finished: False,
        seed=1,
        faults=[HostCrash("r1 crashes", 0.6, 0.2, ["r1"])],
        respawn=lambda name, life: _BusyProgram(),
    )
    (first,) = run.nodes["r1"].earlier
    second, other = run.nodes["r1"].result, run.nodes["sender"].result
    assert second is not None
    assert other is not None
    assert first["ended"] == 0
    assert 0 < first["counted"] < 0.8 * other["counted"]
    assert second["ended"] == other["ended"] == 1
    assert run.nodes["r1"].error is None
    assert run.nodes["r1"].cpu > 0
    assert run.nodes["r1"].memory > 1e6


def test_a_crash_that_is_shorter_than_the_report_of_the_process_loses_no_counters() -> None:
    run = emulate(
        Star.model_validate({"receivers": 1}).build(),
        {"r1": _BusyProgram(), "sender": _BusyProgram()},
        codec=NumberCodec,
        port=PORT,
        duration=0.8,
        over=lambda finished: False,
        seed=1,
        faults=[HostCrash("r1 crashes", 0.5, 1e-4, ["r1"])],
        respawn=lambda name, life: _BusyProgram(),
    )
    (first,) = run.nodes["r1"].earlier
    assert first["counted"] > 0
    assert run.nodes["r1"].result is not None
    assert run.nodes["r1"].error is None
    (row,) = run.fault_log
    assert row["ended"] > row["until"]
