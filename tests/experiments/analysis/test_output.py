"""What `analyse`, `results` and `report` print of the synthetic sweep: golden files at 80 and 120 columns, and one line."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import mcastlab
from experiments.analysis import analysis_request
from experiments.sweep.spec.metrics import RECEIVER_METRICS
from experiments.sweep.store.schema import receivers_schema
from tests.support.golden import WIDTHS, check_golden, recorded

COMMANDS = {
    "analyse": ("analyse", "--by", "receivers,loss", "--metric", "completion_time,transmissions"),
    "analyse-effects": ("analyse", "--effects", "--metric", "completion_time"),
    "results": ("results",),
    "results-columns": ("results", "--columns", "loss,completion_time,nacks_sent"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_printed_is_in_the_golden_files(
    name: str, commands: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, *options = COMMANDS[name]
    compute, answers, codes = analysis_request.analyse, list[Any](), list[int]()

    def once(*question: Any) -> Any:
        if not answers:
            answers.append(compute(*question))
        return answers[0]

    monkeypatch.setattr(analysis_request, "analyse", once)
    for width in WIDTHS:
        text = recorded(lambda: codes.append(commands(command, folder, *options)), width, capsys)
        check_golden(f"{name}.{width}", text)
    assert codes == [0] * len(WIDTHS)


@pytest.mark.parametrize(
    ("options", "heads"),
    [
        (("--compare", "name", "--by", "receivers,loss"), "receivers loss metric variant"),
        (("--by", "receivers,loss"), "receivers loss metric"),
    ],
)
def test_a_narrow_table_keeps_what_tells_its_rows_apart_and_leaves_out_the_rest(
    options: tuple[str, ...],
    heads: str,
    commands: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "54")
    assert commands("analyse", *options, "--metric", "completion_time", folder) == 0
    assert capsys.readouterr().out.splitlines()[1].replace("[s]", "").split()[: len(heads.split())] == heads.split()


def test_brief_is_one_line(commands: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("analyse", "--by", "loss", "--metric", "nacks_sent"), ("results",)):
        assert commands(*command, folder, "--brief") == 0
        assert capsys.readouterr().out.count("\n") == 1


def test_receivers_are_shown_with_their_own_metrics_as_far_as_these_fit_beside_the_axes(
    commands: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "out")
    run_id = mcastlab.open_sweep(folder)["run_id"][0]
    row = {"run_id": run_id, "receiver": "r1", **{f"m_{name}": 0.5 for name in RECEIVER_METRICS}}
    (tmp_path / "out" / "receivers" / "job=1").mkdir(parents=True)
    part = tmp_path / "out" / "receivers" / "job=1" / "part-0.parquet"
    parquet.write_table(pa.Table.from_pylist([row], receivers_schema()), part)
    assert commands("results", tmp_path / "out", "--dataset", "receivers", "--wide") == 0
    head = capsys.readouterr().out.splitlines()[0].split()
    assert {"receiver", "equal", "completed_at", "m_loss", "nacks_sent"} <= set(head)
    monkeypatch.setenv("COLUMNS", "90")
    assert commands("results", tmp_path / "out", "--dataset", "receivers") == 0
    head = capsys.readouterr().out.splitlines()[0].split()
    assert {"receivers", "loss", "receiver", "equal", "completed_at"} <= set(head)


@pytest.mark.parametrize("command", ["analyse", "results"])
def test_an_unknown_column_is_one_line(command: str, commands: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands(command, folder, "--columns", "receiverz") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--columns: value 'receiverz' is not allowed; one of " in err
    assert err.endswith("did you mean 'receivers'?\n")


def test_effects_are_in_the_columns_that_name_them(commands: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--effects", "--metric", "completion_time")
    assert commands("analyse", folder, *options, "--json") == 0
    rows = {row["axis"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert commands("analyse", folder, *options, "--columns", "axis,share") == 0
    shown = dict(line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] and line.split()[0] in rows)
    assert {name: float(text) for name, text in shown.items()} == {
        name: pytest.approx(row["share"], rel=1e-3) for name, row in rows.items()
    }


def test_a_report_prints_what_it_wrote(commands: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (folder, "--no-figures", "--out", tmp_path / "page.html")
    assert commands("report", *options, "--brief") == 0
    assert re.fullmatch(rf"{tmp_path}/page\.html \(\d+\.\d MB\)\n", capsys.readouterr().out)
