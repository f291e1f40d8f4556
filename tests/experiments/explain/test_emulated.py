"""A run in Mininet with keyed losses is explained by its captures as the simulator's run is by its trace."""

from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.explain.analysis import explain
from experiments.explain.explanation import Explanation
from experiments.explain.history import read_history
from experiments.report.run_report_folder import open_run

SCENARIO = """
name: keyed
seed: 5
topology: {kind: star, receivers: 3, trunk: {rate: 100Mbit}, link: {rate: 100Mbit, delay: 2ms, down: {loss: 3%}}}
protocol: {name: norm, rate: 5Mbit, grtt: 20ms}
workload: {kind: file, from: sender, size: 200kB}
duration: 20s
emu: {losses: keyed}
"""


LOSSY_KERNEL = """
name: kernel
seed: 5
topology: {kind: star, receivers: 2, trunk: {rate: 100Mbit}, link: {rate: 100Mbit, down: {loss: 6%}}}
protocol: {name: norm, rate: 5Mbit, grtt: 50ms, parity: 0}
workload: {kind: file, from: sender, size: 200kB}
duration: 20s
"""


def _lost(found: Explanation) -> list[tuple[str, str]]:
    """Return which packets of content were lost on which link, by the chain."""
    return [(step.node, step.text.split(":")[0]) for step in found.chain if step.what == "lost"]


@pytest.mark.emu
@pytest.mark.timed
def test_mininet_is_explained_by_the_losses_of_the_simulator(tmp_path: Path) -> None:
    (tmp_path / "keyed.yaml").write_text(SCENARIO)
    run = ["run", str(tmp_path / "keyed.yaml"), "--brief", "--out"]
    assert invoke([*run, str(tmp_path / "emu"), "--on", "emu", "--capture", "hosts"]) == 0
    assert invoke([*run, str(tmp_path / "sim"), "--set", "trace=true"]) == 0
    for receiver in ("r1", "r2", "r3"):
        emulated, simulated = (explain(read_history(open_run(tmp_path / world), 0, receiver, None)) for world in ("emu", "sim"))
        assert emulated.cause.name == simulated.cause.name == "drop"
        assert _lost(emulated) == _lost(simulated)
        assert emulated.unknown
        assert not simulated.unknown


@pytest.mark.emu
def test_losses_behind_a_capture_leave_the_cause_unknown(tmp_path: Path) -> None:
    (tmp_path / "kernel.yaml").write_text(LOSSY_KERNEL)
    assert (
        invoke(["run", str(tmp_path / "kernel.yaml"), "--brief", "--out", str(tmp_path), "--on", "emu", "--capture", "hosts"])
        == 0
    )
    folder = open_run(tmp_path)
    assert "cbpf" in {row.get("loss_by") for row in folder.result.metrics["impairments"]}
    (completed,) = [row.completed_at for row in folder.result.receivers if row.name == "r1"]
    found = explain(read_history(folder, 0, "r1", None))
    assert (found.outcome.state, found.cause.name) == ("unknown", "unknown")
    assert found.outcome.time == completed is not None
    # The repairs came long after all packets had passed the capture for the first time.
    captured = float(found.outcome.text.partition(" at ")[2].partition(" s")[0])
    assert completed > captured + 0.02
