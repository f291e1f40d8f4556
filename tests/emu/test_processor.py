"""Processor time in emulations: work takes real time, a quota limits a host, a busy core is reported."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from emu.cpu_quota import CpuQuotas
from emu.launch import Emulation, emulate
from protocols.errors import UnsupportedError
from protocols.hosting import PortsHost, Program
from protocols.machine import Address, Machine, Message, Packet
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, SendingProgram
from topologies.generators import Star

pytestmark = pytest.mark.emu


class _Worker(Machine):
    """Works for every packet, and multicasts the number again when it is done."""

    def __init__(self, host: PortsHost, seconds: float) -> None:
        super().__init__(host)
        self._seconds = seconds
        self.times: list[float] = []

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(GROUP)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Work."""
        self.times.append(now)
        self.ports.work(self._seconds)
        self.ports.send(Packet(message, 100, source))

    def wake(self, now: float) -> None:
        """There is nothing to do."""

    def counts(self) -> dict[str, int]:
        """Packets received."""
        return {"received": len(self.times)}


class WorkingProgram:
    """Runs a worker; its result is when it was given packets."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._machine: _Worker | None = None

    def start(self, host: PortsHost) -> None:
        """Run it."""
        self._machine = _Worker(host, self._seconds)
        host.run(self._machine, lambda event: None)

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Return the times."""
        assert self._machine is not None
        return {"times": self._machine.times}


class _Spinner(Machine):
    """Uses all the processor it can get, in turns of 5 ms."""

    turns = 0

    def start(self, now: float) -> None:
        """Begin."""
        self._due(now + 0.001)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nobody sends to it."""

    def wake(self, now: float) -> None:
        """Use 5 ms of processor time."""
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        self.turns += 1
        self._due(max(self.ports.now, now) + 1e-6)  # type: ignore[attr-defined]

    def counts(self) -> dict[str, int]:
        """Turns."""
        return {"turns": self.turns}


class SpinningProgram:
    """Keeps a core busy."""

    def start(self, host: PortsHost) -> None:
        """Run it."""
        host.run(_Spinner(host), lambda event: None)

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


def play(programs: dict[str, Program], nodes: dict[str, Any] | None = None, duration: float = 1.5) -> Emulation:
    """Emulate a star of one receiver."""
    return emulate(
        Star.model_validate({"receivers": 1, "nodes": nodes or {}}).build(),
        programs,
        codec=NumberCodec,
        port=PORT,
        duration=duration,
        over=lambda finished: False,
        seed=1,
    )


def test_inputs_wait_while_a_machine_works() -> None:
    run = play({"sender": SendingProgram(10, 1000.0), "r1": WorkingProgram(0.05)})
    result = run.nodes["r1"].result
    assert result is not None
    times = result["times"]
    assert len(times) == 10
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) > 0.0499
    assert sorted(gaps)[len(gaps) // 2] < 0.075
    assert run.nodes["r1"].worked == pytest.approx(0.5)
    assert run.nodes["r1"].cpu < 0.3, "waiting is not computing"


def share_of_a_core(nodes: dict[str, Any] | None) -> float:
    """Return the share of a core that a spinning host gets."""
    run = play({"r1": SpinningProgram()}, nodes)
    assert run.nodes["r1"].error is None
    return run.nodes["r1"].cpu / run.elapsed


def control_groups() -> set[Path]:
    """Return the control groups of emulations on this machine."""
    return set(Path("/sys/fs/cgroup").glob("**/mcastlab-*"))


def test_a_quota_that_no_period_of_the_kernel_allows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"nodes.r1.quota: 0.0005 can't be emulated; at least 0.001"):
        CpuQuotas({"r1": 0.0005})


def test_a_small_quota_is_not_rounded_up() -> None:
    assert share_of_a_core({"r": {"quota": 0.02}}) < 0.06


def test_a_quota_limits_the_processor_time_of_a_host() -> None:
    before = control_groups()
    limited = share_of_a_core({"r": {"quota": 0.08}})
    assert control_groups() <= before, "none is left behind"
    assert limited < 0.12
    assert share_of_a_core(None) > 1.5 * limited
