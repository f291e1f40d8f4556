"""The folder of a sweep: it belongs to one sweep."""

from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.sweep.store.folder import prepare
from protocols.errors import UsageError
from tests.experiments.sweep.files import BASE, plan_of

LOSS = "topology.link.down.loss"


@pytest.mark.parametrize(
    ("keys", "difference"),
    [
        ({"axes": {LOSS: ["1%", "3%"]}}, f"axes.{LOSS}.values was ['1%', '2%'] there and is ['1%', '3%'] here"),
        ({"seed": 5}, "seed was 1 there and is 5 here"),
        ({"cases": {"a": {}}}, "cases.a was not set there and is {} here"),
        ({"scenario": {**BASE, "duration": "9s"}}, "scenario.duration was '20s' there and is '9s' here"),
        ({"set": {"protocol.rate": "5Mbit"}}, "set.protocol.rate was not set there and is '5Mbit' here"),
    ],
)
def test_the_first_difference_to_the_sweep_of_a_folder_is_named(keys: dict[str, Any], difference: str, tmp_path: Path) -> None:
    first: dict[str, Any] = {"axes": {LOSS: ["1%", "2%"]}}
    out = tmp_path / "out"
    prepare(plan_of(tmp_path, **first), out, resume=False)
    (out / "runs" / "job=1").mkdir(parents=True)
    (out / "runs" / "job=1" / "part-0.parquet").touch()
    prepare(plan_of(tmp_path, **first, replications=3), out, resume=True)
    with pytest.raises(UsageError) as caught:
        prepare(plan_of(tmp_path, **{**first, **keys}), out, resume=True)
    assert difference in str(caught.value)


def test_the_folder_of_a_run_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").touch()
    with pytest.raises(UsageError, match=r"^--out: value '.*' is not allowed; it is the folder of a run$"):
        prepare(plan_of(tmp_path), out, resume=False)
    assert not (out / "sweep.yaml").exists()


@pytest.mark.parametrize("command", ["explain", "report", "analyse", "results"])
def test_a_command_that_is_advised_can_be_copied_from_the_error(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    assert invoke([command, str(folder)]) == 2
    assert f"--out '{folder}'" in capsys.readouterr().err
