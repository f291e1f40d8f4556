"""The report of a run in Mininet, from captures of its hosts."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from tests.experiments.report.runs import SHARED, data_of, record

pytestmark = pytest.mark.emu


def first_losses(data: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the first transmissions that were lost, each with the node at the end of the link that lost it."""
    replay = data["replay"]
    names, kinds = [node["name"] for node in replay["nodes"]], [kind["name"] for kind in replay["kinds"]]
    return {
        (label, names[node])
        for _, _, kind, _, label, _, lost in replay["packets"]
        for node in lost[::2]
        if kinds[kind] == "data"
    }


def test_captures_in_mininet_show_the_losses_that_the_simulator_traced(tmp_path: Path) -> None:
    keyed = ("--set", "emu.losses=keyed")
    emulated = record(tmp_path / "emulated", SHARED, "--on", "emu", *keyed, "--capture", "hosts")
    simulated = record(tmp_path / "simulated", SHARED, *keyed, "--set", "trace=true")
    for folder in (emulated, simulated):
        assert invoke(["report", str(folder)]) == 0
    data = data_of(emulated / "report.html")
    lost = first_losses(data)
    assert len(lost) > 10
    assert lost == first_losses(data_of(simulated / "report.html"))
    metrics = json.loads((emulated / "result.json").read_text())["metrics"]
    kinds = {kind["name"]: kind["count"] for kind in data["replay"]["kinds"]}
    assert (sum(kinds.values()), kinds["nack"]) == (metrics["packets"]["total"], metrics["nacks_sent"])
