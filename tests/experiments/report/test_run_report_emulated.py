"""The report of a run in Mininet, from captures of its hosts."""

import json
from collections import Counter
from pathlib import Path

import pytest

from experiments.cli import invoke
from tests.experiments.report.runs import SHARED, data_of, record

pytestmark = pytest.mark.emu


def test_the_losses_in_captures_are_those_that_the_receivers_counted(tmp_path: Path) -> None:
    folder = record(tmp_path, SHARED, "--on", "emu", "--capture", "hosts")
    assert invoke(["report", str(folder)]) == 0
    data = data_of(folder / "report.html")
    result = json.loads((folder / "result.json").read_text())
    kinds = {kind["name"]: kind["count"] for kind in data["replay"]["kinds"]}
    assert (sum(kinds.values()), kinds["nack"]) == (result["metrics"]["packets"]["total"], result["metrics"]["nacks_sent"])
    names = [node["name"] for node in data["replay"]["nodes"]]
    lost = Counter(
        names[node]
        for _, _, _, _, label, _, missed in data["replay"]["packets"]
        for node in missed[::2]
        if label.startswith("data ")
    )
    shared = lost.pop("s1", 0)
    for row in result["receivers"]:
        counted = row["loss"] * result["metrics"]["packets"]["data"]
        assert lost[row["name"]] + shared == pytest.approx(counted, abs=0.5)
    assert sum(lost.values()) > 10
