"""Drawings of topologies: every node and link is drawn, losses are coloured, and the output is deterministic."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from experiments.cli import invoke
from experiments.drawing.topology_drawing import MeasuredTraffic, draw_topology
from tests.experiments.drawing.test_ladder import shapes, words
from topologies.generators import AnyTopology
from topologies.spec import Topology

TREE: dict[str, Any] = {"kind": "tree", "depth": 3, "fanout": 3, "receivers": 20, "link": {"down": {"loss": "3%"}}}
SMALL = """
name: small
topology: {kind: star, receivers: 3, trunk: {rate: 10Mbit, delay: 5ms}, link: {rate: 100Mbit, down: {loss: 30%}}}
protocol: {name: norm, rate: 10Mbit, grtt: 50ms, robust: 5}
workload: {size: 60kB}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def topology(written: dict[str, Any]) -> Topology:
    """Build a topology from plain values."""
    built: Topology = TypeAdapter[Any](AnyTopology).validate_python(written).build()
    return built


def colours(svg: str) -> list[str]:
    """Return the loss colours of the lines, without those of the legend."""
    lines = [element.get("class") or "" for element in shapes(svg) if element.tag.endswith("path")]
    return [name.removeprefix("s-") for name in lines if name.startswith("s-loss")][:-6]


def test_nodes_and_both_directions_of_links_are_drawn() -> None:
    built = topology(TREE)
    svg = draw_topology(built, "tree").svg()
    assert {*built.switches, "sender", "r1_1 to r1_20 (20 hosts)"} <= words(svg)
    assert len(colours(svg)) == len(built.links)


def test_without_a_run_colours_show_the_configured_loss() -> None:
    built = topology({"kind": "star", "receivers": 2, "trunk": {"down": {"loss": "0.4%"}}, "link": {"loss": "7%"}})
    # Sender to s1, back, s1 to the receivers, back.
    assert colours(draw_topology(built, "star").svg()) == ["loss1", "loss0", "loss4", "loss4"]


def test_with_a_run_colours_and_widths_show_measured_values() -> None:
    built = topology({"kind": "star", "receivers": 2, "link": {"loss": "7%"}})
    links = {("sender", "s1"): (1000, 0), ("s1", "r"): (2000, 300), ("r", "s1"): (20, 0)}
    svg = draw_topology(built, "star", MeasuredTraffic(links, {"r1": 0.2, "r2": 0.0})).svg()
    assert colours(svg) == ["loss0", "loss0", "loss5", "loss0"]
    widths = re.findall(r'class="s-loss\d" fill="none"[^>]*stroke-width="([\d.]+)"', svg)[:4]
    assert [float(width) for width in widths] == [8.0, 1.0, 8.0, 1.7]
    assert {"15.00% lost of 2,000 packets"} <= words(svg)
    assert "r1: lost 20.00%" in svg


def test_the_command_draws_a_scenario_and_its_run(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "topo.svg"
    assert invoke(["topo", scenario, "--svg", str(svg)]) == 0
    assert {"sender", "s1", "r1 to r3", "10Mbit, 5ms", "100Mbit, 30% loss"} <= words(svg.read_text())
    invoke(["run", scenario, "--json", "--out", str(tmp_path / "run")])
    assert invoke(["topo", scenario, "--svg", str(svg), "--run", str(tmp_path / "run")]) == 0
    assert "loss5" in colours(svg.read_text())


def test_the_drawing_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from tests.experiments.drawing.test_topology_drawing import TREE, topology\n"
        "from experiments.drawing.topology_drawing import draw_topology\n"
        "print(draw_topology(topology(TREE), 'tree').svg())"
    )
    pictures = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("other", ["topology={kind: chain, switches: 2}", "topology.link.rate=7Mbit"])
def test_a_run_of_another_topology_is_refused(
    other: str, scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    invoke(["run", scenario, "--json", "--out", str(tmp_path / "run")])
    command = ["topo", scenario, "--set", other, "--svg", str(tmp_path / "t.svg"), "--run", str(tmp_path / "run")]
    assert invoke(command) == 2
    assert "belongs to another topology" in capsys.readouterr().err
    if "chain" in other:
        (tmp_path / "run" / "scenario.json").unlink()
        assert invoke(command) == 2
        assert "belongs to another topology; it has a link s1-r" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--run", "nowhere"], "--run: nowhere can't be read"),
        (["--run", "{scenario}"], "is not a result of a run"),
        (["--set", "topology={kind: chain, switches: 300}"], "601 nodes exceed the limit of a drawing, 400"),
    ],
)
def test_input_that_cannot_be_drawn_is_refused(
    options: list[str], line: str, scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option.replace("{scenario}", scenario) for option in options]
    assert invoke(["topo", scenario, "--svg", str(tmp_path / "t.svg"), *given]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert line in err
