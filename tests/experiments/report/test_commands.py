"""`mcastlab analyse` and `mcastlab report` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

PNG = b"\x89PNG"


def test_analyse_prints_rows_as_json(commands: Any, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands("analyse", swept, "--by", "receivers", "--metric", "nacks_sent", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert [row["mean"] for row in output["rows"]] == [10.0, 20.0, 50.0]
    assert (output["runs"], output["failed"]) == (96, 1)


def test_analyse_prints_a_table_and_writes_csv(
    commands: Any, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands("analyse", swept, "--compare", "name", "--metric", "completion_time", "--csv", tmp_path / "gaps.csv") == 0
    assert "96 runs, 1 failed" in capsys.readouterr().out
    head, row = (tmp_path / "gaps.csv").read_text().splitlines()
    assert head.startswith("metric,axis,variant,base,pairs,left_out,mean")
    assert row.startswith("completion_time,protocol.name,srm,norm,46,1,2.0")


def test_series_have_bands(commands: Any, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands("analyse", swept, "--series", "queue s1-r", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["name"] for row in rows} == {"queue s1-r"}
    assert rows[-1]["p95"] == 32.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "nothing"], "--by: value 'nothing' is not allowed; one of topology.receivers, protocol.name, loss"),
        (["--metric", "nothing"], "--metric: value 'nothing' is not allowed; one of"),
        (["--effects", "--compare", "name"], "--effects: is not allowed beside --compare"),
    ],
)
def test_bad_input_is_a_one_line_error(
    commands: Any, swept: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert commands("analyse", swept, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["analyse", "report"])
def test_a_folder_without_results_is_refused_before_spark_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from experiments.cli import invoke

    monkeypatch.setattr("experiments.sweep.run.spark_session.session", None)
    assert invoke([command, str(tmp_path)]) == 2
    assert "holds no results of a sweep" in capsys.readouterr().err


def test_every_figure_is_written_as_png_and_svg(report: Path) -> None:
    folder = report.parent / "figures"
    names = {path.stem for path in folder.iterdir()}
    assert {"lines-completion_time", "pareto", "effects", "theory", "series-queue-s1-r"} <= names
    for name in names:
        assert (folder / f"{name}.png").read_bytes().startswith(PNG)
        assert "<svg" in (folder / f"{name}.svg").read_text()[:1000]


def test_the_page_is_named_whatever_its_name_ends_with(
    commands: Any, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.htm"
    assert commands("report", swept, "--out", page, "--no-figures") == 0
    assert capsys.readouterr().out == f"{page} ({page.stat().st_size / 1e6:.1f} MB)\n"


def test_a_single_figure_has_the_same_bytes(commands: Any, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {kind: (report.parent / "figures" / f"effects.{kind}").read_bytes() for kind in ("png", "svg")}
    page = report.read_bytes()
    assert commands("report", report.parent, "--only", "effects", "--json") == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert [Path(path).name for path in written] == ["effects.png", "effects.svg"]
    assert {kind: (report.parent / "figures" / f"effects.{kind}").read_bytes() for kind in before} == before
    assert report.read_bytes() == page


def test_an_unknown_figure_is_refused(commands: Any, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands("report", report.parent, "--only", "nothing") == 2
    assert "--only: value 'nothing' is not allowed; one of lines-" in capsys.readouterr().err
