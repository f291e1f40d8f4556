"""Content of the report file, checked without a browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def text(report: Path) -> str:
    """Return the text of the file."""
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(text: str) -> Any:
    """Return the data of its scripts."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match is not None
    return json.loads(match[1])


def test_the_page_loads_nothing_from_the_network(text: str) -> None:
    assert not re.search(r"<(script|img|link|iframe)[^>]+(src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text


def test_the_page_states_its_runs_and_the_command_to_repeat_them(text: str, swept: Path) -> None:
    for phrase in (
        "made-up",
        "96 (95 ok, 1 failed)",
        "topology.receivers, protocol.name, loss",
        "0.1.0+abc",
        "replications: 8",
    ):
        assert phrase in text
    assert f"mcastlab sweep {swept}/sweep.yaml --out {swept} --resume" in text


def test_the_page_begins_with_what_was_varied(text: str) -> None:
    assert "96 runs at 12 points: receivers 10, 20, 50; name norm, srm; loss 1%, 10%. Code 0.1.0+abc" in text


def test_failed_runs_are_listed_with_reason_and_command(text: str, data: Any, swept: Path) -> None:
    (table,) = [table for table in data["tables"] if table["name"] == "failed"]
    status, reason, _, seed, command = table["rows"][0]
    assert (status, reason, seed) == ("error", "ValueError: <b>no</b>", 1)
    assert command.startswith(f"mcastlab run {swept}/base.yaml --seed 1 --set ")
    assert "topology.link.down.loss=0.01" in command
    assert "<b>no</b>" not in text.partition('id="data"')[0]


def test_every_figure_has_its_data_and_a_command(data: Any, text: str, swept: Path) -> None:
    names = {figure["name"] for figure in data["figures"]}
    assert {"lines-completion_time", "heat-completion_time", "spread-completion_time", "pareto", "effects", "theory"} <= names
    assert {"pairs-completion_time", "series-queue-s1-r"} <= names
    for figure in data["figures"]:
        assert figure["command"].startswith(f"mcastlab analyse {swept} --")
        assert any(panel["marks"] for panel in figure["panels"])
        assert f'id="plot-{figure["name"]}"' in text


def test_the_table_has_every_point_and_metric_in_units_of_the_sweep_file(data: Any) -> None:
    (table,) = [table for table in data["tables"] if table["name"] == "points"]
    assert table["columns"][:4] == ["receivers", "name", "loss [%]", "metric"]
    assert table["columns"][4] == "unit"
    assert {(row[3], row[4]) for row in table["rows"]} >= {("completion_time", "s"), ("transmissions", "per source packet")}
    assert len(table["rows"]) == 12 * len(data["metrics"])
    assert {row[2] for row in table["rows"]} == {1, 10}


def test_theory_is_drawn_over_its_measured_lines(data: Any) -> None:
    (figure,) = [figure for figure in data["figures"] if figure["name"] == "lines-transmissions"]
    labels = [mark["label"] for panel in figure["panels"] for mark in panel["marks"] if mark["theory"]]
    assert labels == ["norm, theory fec", "srm, theory arq"] * 2


def test_every_axis_of_a_figure_has_a_unit_or_names_what_it_counts(data: Any) -> None:
    labels = {axis["label"] for figure in data["figures"] for axis in (figure["x"], figure["y"]) if axis["label"]}
    without = {label for label in labels if not label.endswith("]")}
    # The synthetic series is none that a run has.
    assert without <= {"receivers", "name", "queue s1-r"}
