"""An honest `recv` and `send` in namespaces complete a transfer beside each attack, at small scale.

`make test-hostile` does the same at full rate and measures the goodput. Here programs are forked, and need no time to import.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import attacks
from benchmarks.attacks import KINDS, flood
from benchmarks.hostile_transfer import GROUP, MARKS, Honest, Outcome, Transfer, table, write
from emu.namespaces import enter_network_namespace, run_isolated
from experiments.cli import main
from tests.emu.lab import MCASTLAB, Lab

pytestmark = [pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(120)]

HONEST = Honest(size=400_000, timeout=20.0)
SHARE = 0.1
"""Share of the full rate of each attack."""
RESISTED = [kind for kind, attack in KINDS.items() if not attack.hopeless]
MOST_GROWTH = 80_000_000
"""Bytes by which the resident memory of `recv` or `send` may exceed that of the process they are forked from."""
FORK = multiprocessing.get_context("fork")


class Forked:
    """A forked process with the methods of `subprocess.Popen` that a transfer uses."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._process = FORK.Process(target=work)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> None:
        self._process.join(timeout)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


class SmallTransfer(Transfer):
    """A transfer whose programs are forked; `logs` is what both of them printed."""

    logs = ""

    def _start(self, host: str, command: list[str]) -> Any:
        log = self.log if host == "r1" else self.folder / "send.log"
        pid = self.lab.network.pid(host)
        log.touch()

        def work() -> None:
            enter_network_namespace(pid)
            sys.stdout = sys.stderr = open(log, "w", buffering=1)  # noqa: SIM115 it is open until the process ends
            sys.argv = ["mcastlab", *command[len(MCASTLAB) :]]
            main()

        return Forked(work)

    def _start_flood(self, host: str) -> Any:
        pid, device = self.lab.network.pid(host), self.lab.device(host)

        def work() -> None:
            enter_network_namespace(pid)
            assert self.kind is not None
            attacks.MAKING = 0.05
            flood(self.kind, GROUP, device, self.honest.timeout, self.rate)

        return Forked(work)

    def _end_flood(self, attack: Any) -> float:
        attack.send_signal(signal.SIGINT)
        attack.wait()
        return self.rate


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def small_transfers(kinds: list[str]) -> dict[str, Any]:
    """Run a transfer beside each attack, in one lab; return the result of each."""
    lab = Lab(HONEST.network.build())
    found, inherited = {}, resident()
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            transfer = SmallTransfer(lab, HONEST, Path(folder), kind, SHARE * KINDS[kind].rate)
            begin = time.monotonic()
            outcome = transfer.run()
            logs = transfer.log.read_text() + (transfer.folder / "send.log").read_text()
            found[kind] = {
                "complete": outcome.is_complete,
                "seconds": time.monotonic() - begin,
                "growth": outcome.memory - inherited,
                "stopped": outcome.stopped,
                "traceback": "Traceback" in logs,
            }
    return found


def test_a_new_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{MARKS[0]}\n\nold\n\n{MARKS[1]}\n\nbehind\n")
    rows = [Outcome("undisturbed", 0, True, 5e6, 1.0, 70_000_000, 12), Outcome("flood", 2e4, False)]
    write(page, table(rows))
    text = page.read_text()
    assert text.startswith("before\n\n<!--")
    assert text.endswith("-->\n\nbehind\n")
    assert "old" not in text
    assert "| undisturbed | 0 | 40.0 Mbit/s | 100 % | 70 MB | 12 |" in text
    assert "| flood | 20,000 | not complete | 0 % | 0 MB | 0 |" in text


@pytest.fixture(scope="module")
def outcomes() -> Any:
    """Return the result of the transfer beside each attack that must be resisted."""
    return run_isolated(lambda: small_transfers(RESISTED))


@pytest.mark.parametrize("kind", RESISTED)
def test_an_honest_transfer_completes_beside_an_attack(kind: str, outcomes: Any) -> None:
    found = outcomes[kind]
    assert found["complete"]
    assert not found["traceback"]
    assert found["growth"] < MOST_GROWTH
    assert found["stopped"] < 3.0, "Ctrl-C ends recv at once"
