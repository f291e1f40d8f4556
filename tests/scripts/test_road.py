"""The call paths of a datagram and of a NACK stay short, and docs/design.md states their length."""

import json
import re
import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

LIMITS = {"datagram": 9, "nack": 15}
"""Maximum number of project files on each call path."""


@pytest.fixture(scope="module")
def roads() -> dict[str, dict[str, list[str]]]:
    """Run `scripts/road.py` in a separate process, since a profile function disturbs other tests."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.road", "--json"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", LIMITS)
def test_a_call_path_visits_few_files(name: str, roads: dict[str, dict[str, list[str]]]) -> None:
    files = roads[name]["files"]
    assert len(files) <= LIMITS[name], "\n".join(files)


def test_a_datagram_passes_from_the_socket_through_the_codec_to_the_receiver(roads: dict[str, dict[str, list[str]]]) -> None:
    files = roads["datagram"]["files"]
    assert files[0] == "emu/host.py"
    assert {"protocols/norm/receiver.py", "protocols/norm/sender_state.py"} <= set(files)


def test_a_nack_passes_from_the_receivers_wake_up_to_a_link(roads: dict[str, dict[str, list[str]]]) -> None:
    files = roads["nack"]["files"]
    assert files[0] == "protocols/norm/receiver.py"
    assert "protocols/norm/nack_process.py" in files
    assert files[-1].startswith("sim/")


def test_the_strict_engine_and_the_network_run_plain_classes(roads: dict[str, dict[str, list[str]]]) -> None:
    visited = {file for road in roads.values() for file in road["files"]}
    assert not {file for file in visited if "/fast/" in file}


@pytest.mark.parametrize("name", LIMITS)
def test_the_design_page_states_the_length_of_each_call_path(name: str, roads: dict[str, dict[str, list[str]]]) -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    stated = re.search(rf"^\| {name} \|[^|]*\| (\d+) \|$", page, re.M)
    assert stated is not None
    assert len(roads[name]["files"]) <= int(stated[1]) <= LIMITS[name]
