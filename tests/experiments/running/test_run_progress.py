"""The line that shows how far a simulation is, and what Ctrl-C leaves."""

import gc
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.running.run_progress import RunProgress
from experiments.running.simulate import simulate
from experiments.scenario.scenario import Scenario, parse
from tests.sim.stored import ROOT

COMMAND = [sys.executable, "-c", "from experiments.cli import main; main()", "run"]


def scenario_of(receivers: int, size: str = "140kB") -> Scenario:
    data = {
        "name": "large",
        "topology": {"kind": "lan", "receivers": receivers, "link": {"delay": "5ms", "down": {"loss": "1%"}}},
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "50ms"},
        "workload": {"size": size},
    }
    return parse(data, "large")


def test_progress_changes_no_run_and_ends_with_its_packets() -> None:
    scenario = scenario_of(20)
    progress = RunProgress(scenario)
    assert progress.line() == "large"
    result = simulate(scenario, progress=progress)
    assert result.fingerprint == simulate(scenario).fingerprint
    assert f" {result.metrics['packets']['total']} packets, " in progress.line()
    assert progress.line().endswith(", all content sent once")


def test_the_time_left_is_extrapolated_from_the_content_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, progress = [50.0], RunProgress(scenario_of(20))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    network: Any = SimpleNamespace(env=SimpleNamespace(now=0.25), fabric=SimpleNamespace(packets={"data": 1200, "nack": 34}))
    counters: Any = SimpleNamespace(content=0)
    progress.begin(network, counters)
    clock[0], counters.content = 80.0, 20
    # 20 of 100 packets of content in 30 s.
    assert progress.line() == "large: 1,234 packets, 0.250 s simulated in 0:30, about 2:00 to go"
    # The limit of the scenario is a minute, and comes first.
    network.env.now = 30.0
    assert progress.line() == "large: 1,234 packets, 30.000 s simulated in 0:30, about 0:30 to go"


def test_a_run_shows_its_progress_on_a_terminal_and_nothing_in_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps({**scenario_of(100, "6MB").plain(), "twin": None}))
    outer, inner = pty.openpty()
    with subprocess.Popen([*COMMAND, str(file), "--brief"], stdout=subprocess.PIPE, stderr=inner, cwd=ROOT) as shown:
        os.close(inner)
        text = b""
        try:
            while chunk := os.read(outer, 4096):
                text += chunk
        except OSError:
            pass  # The other end of a terminal is closed: Linux says EIO.
        out = shown.stdout.read() if shown.stdout else b""
    os.close(outer)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    assert re.search(r"large: [\d,]+ packets, [\d.]+ s simulated in \d:\d\d", plain)
    assert b"100 of 100" in out
    piped = subprocess.run([*COMMAND, str(file), "--brief"], capture_output=True, cwd=ROOT, check=True)
    assert (piped.stdout, piped.stderr) == (out, b"")


def test_a_run_makes_no_full_garbage_collection() -> None:
    """One takes seconds with a million receivers, and no signal is handled meanwhile."""
    generations: list[int] = []
    gc.callbacks.append(lambda phase, info: generations.append(info["generation"]) if phase == "start" else None)
    before = gc.get_threshold()
    try:
        simulate(scenario_of(10_000, "28kB"))
    finally:
        gc.callbacks.pop()
    assert 2 not in generations
    assert generations
    assert gc.get_threshold() == before


def test_an_interrupted_run_ends_at_once_and_leaves_whole_lines(tmp_path: Path) -> None:
    file, trace = tmp_path / "large.json", tmp_path / "trace.jsonl"
    file.write_text(json.dumps({**scenario_of(30_000, "100MB").plain(), "twin": None}))
    arguments = [str(file), "--yes", "--out", str(tmp_path / "out"), "--trace", str(trace)]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as run:
        while run.poll() is None and not (trace.exists() and trace.stat().st_size > 100_000):
            time.sleep(0.02)
        spent = cpu_of(run.pid)
        run.send_signal(signal.SIGINT)
        # In CPU time, since the machine may be busy with other tests.
        while run.poll() is None:
            assert cpu_of(run.pid) - spent < 1
            time.sleep(0.01)
        out, err = run.communicate()
    assert (run.returncode, out, err) == (130, b"", b"")
    assert [json.loads(line) for line in trace.read_text().splitlines()]
    assert not (tmp_path / "out" / "result.json").exists()


def cpu_of(process: int) -> float:
    """The CPU seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
