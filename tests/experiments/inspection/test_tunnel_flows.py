"""Captures with datagrams of tunnels: what they hold, and between sites the session in them."""

import json
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.inspection.inspection import inspect_capture


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of captures of a run with tunnels."""
    folder = tmp_path_factory.mktemp("run")
    sets = ("wire=bytes", "workload.0.count=200", "topology.links.3.loss=5%", "capture=[g2-w, g2.host]")
    values = [word for value in sets for word in ("--set", value)]
    assert invoke(["run", "fjm2-wan-single", *values, "--out", str(folder), "--brief"]) == 0
    return folder / "captures"


def test_a_capture_between_sites_shows_the_session_in_the_datagrams(captures: Path) -> None:
    found = inspect_capture(captures / "g2-w.pcapng").plain()
    there, back = found["tunnels"]
    assert (there["datagrams"], there["keyed"]) == (sum(there["packets"].values()), 0)
    assert there["packets"]["data"] >= 600
    assert set(back["packets"]) <= {"nack", "ack"}
    assert (there["from"], there["to"]) == (back["to"], back["from"])
    (sender,) = found["senders"]
    assert sender["packets"]["data"] + sender["repairs"]["packets"] >= 600


def test_a_capture_with_the_group_itself_counts_the_datagrams_beside_it(captures: Path) -> None:
    found = inspect_capture(captures / "g2.host.pcapng").plain()
    assert len(found["tunnels"]) == 2
    assert found["other_datagrams"] >= found["tunnels"][0]["datagrams"]


def test_the_command_tells_of_tunnels(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(captures / "g2-w.pcapng")]) in (0, 1)
    assert "tunnel 10." in capsys.readouterr().out
    assert invoke(["inspect", str(captures / "g2-w.pcapng"), "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["tunnels"][0]["missing"] >= 0
