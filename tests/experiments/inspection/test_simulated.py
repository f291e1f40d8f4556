"""Captures of simulated runs are inspected, and compared with the complete record of the simulator."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.inspection.inspection import inspect_capture

SHARED = """
name: shared
topology:
  {kind: star, receivers: 6, trunk: {delay: 5ms, down: {loss: 2%}}, link: {rate: 100Mbit, delay: 5ms, down: {loss: LOSS}}}
protocol: {name: norm, rate: 10Mbit, grtt: 50ms, robust: 5}
workload: {kind: file, size: 1MB}
"""


def run(folder: Path, loss: str, point: str, capsys: pytest.CaptureFixture[str]) -> tuple[Any, Any, list[Any]]:
    """Run a scenario captured at a point and return (metrics, inspection, trace)."""
    (folder / "shared.yaml").write_text(SHARED.replace("LOSS", loss), encoding="utf-8")
    options = ["--json", "--out", str(folder / "run"), "--set", "trace=true", "--capture", point]
    assert invoke(["run", str(folder / "shared.yaml"), *options]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    found = inspect_capture(folder / "run" / "captures" / f"{point}.pcapng").plain()
    trace = [json.loads(line) for line in (folder / "run" / "trace.jsonl").read_text().splitlines()[1:]]
    return metrics, found, trace


@pytest.mark.parametrize("point", ["sender", "s1", "s1-r1"])
def test_counts_equal_those_of_the_run(point: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics, found, _ = run(tmp_path, "1%", point, capsys)
    [sender] = found["senders"]
    assert found["violations"] == []
    assert sum(row["nacks"] for row in found["receivers"]) == metrics["nacks_sent"] > 0
    assert sender["repairs"]["packets"] == sender["repairs"]["flagged"]
    if point == "sender":
        # The sender's own link drops packets after this point.
        assert found["messages"] == metrics["packets"]["total"]
        assert sender["repairs"]["packets"] == metrics["repairs_sent"] > 0
        assert sender["missing"] == 0
    assert sender["repairs"]["unneeded"] == 0


def test_every_inferred_suppression_is_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics, found, trace = run(tmp_path, "0%", "s1-r1", capsys)
    assert metrics["nacks_suppressed"] > 0
    rounds = found["senders"][0]["rounds"]
    begins = [row["time"] for row in rounds] + [float("inf")]
    # Capture times start at its first packet, trace times at the start of the run.
    count = 0
    for place, row in enumerate(rounds):
        within = [each for each in trace if begins[place] <= each["time"] - found["start"] < begins[place + 1]]
        silenced = {each["node"] for each in within if each["name"] == "nack_suppressed"}
        assert row["silent"] == []
        for node in row["suppressed"]:
            assert f"r{node - 1}" in silenced
            count += 1
    assert count > 0
