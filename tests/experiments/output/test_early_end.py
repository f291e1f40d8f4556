"""A run whose `linger` ends it while messages are still delivered says so."""

import pytest

from experiments.cli import invoke
from tests.tidy.tree import ROOT

NOTE = "the run ended 500ms after the last publisher was done, while messages were still delivered"
CHANGES = ("topology.nodes.r.count=4", "workload.0.count=40", "compare={}", "protocol.queue=40")
BROKER = ("run", "broker-fanout", "--on", "sim", *(word for change in CHANGES for word in ("--set", change)))


@pytest.mark.parametrize(("linger", "is_early"), [("500ms", True), ("5s", False)])
def test_messages_that_are_still_delivered_at_the_end_are_told_with_the_linger(
    linger: str, is_early: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*BROKER, "--set", f"workload.0.linger={linger}"]) == int(is_early)
    assert (NOTE in " ".join(capsys.readouterr().out.split())) == is_early


def test_messages_that_nobody_delivers_any_more_are_no_early_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", str(ROOT / "experiments" / "claims" / "000" / "flush.yaml"), "--wide"]) == 1
    assert "still delivered" not in capsys.readouterr().out
