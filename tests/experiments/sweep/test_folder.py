"""The folder of a sweep: it belongs to one sweep."""

import json
import os
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.output.folder_lock import claim
from experiments.sweep.run.driver import SweepOptions, run_sweep
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep
from experiments.sweep.store.folder import check_folder, prepare
from protocols.errors import UsageError
from tests.experiments.sweep.files import BASE, plan_of

LOSS = "topology.link.down.loss"


def with_results(plan: SweepPlan, out: Path) -> Path:
    """Prepare the folder of a sweep, and put a file there as its results would be."""
    prepare(plan, out, resume=False)
    (out / "runs" / "job=1").mkdir(parents=True)
    (out / "runs" / "job=1" / "part-0.parquet").touch()
    return out


def raises_no_space(text: str) -> int:
    """Refuse to write, as a full disk does."""
    raise OSError(ENOSPC, os.strerror(ENOSPC))


@pytest.mark.parametrize(
    ("keys", "difference"),
    [
        ({"axes": {LOSS: ["1%", "3%"]}}, f"axes.{LOSS}.values was ['1%', '2%'] there and is ['1%', '3%'] here"),
        ({"seed": 5}, "seed was 1 there and is 5 here"),
        ({"cases": {"a": {}}}, "cases.a was not set there and is {} here"),
        ({"scenario": {**BASE, "duration": "9s"}}, "scenario.duration was '20s' there and is '9s' here"),
        ({"set": {"protocol.rate": "5Mbit"}}, "set.protocol.rate was not set there and is '5Mbit' here"),
        ({"axes": {LOSS: ["1%", "2%"], "n": [1]}}, "axes.n was not set there and is set here"),
        ({"axes": {}}, f"axes.{LOSS} was set there and is not set here"),
        ({"scenario": dict(reversed(BASE.items()))}, "the order of keys in its scenario differs"),
    ],
)
def test_the_first_difference_to_the_sweep_of_a_folder_is_named(keys: dict[str, Any], difference: str, tmp_path: Path) -> None:
    first: dict[str, Any] = {"axes": {LOSS: ["1%", "2%"]}}
    out = with_results(plan_of(tmp_path, **first), tmp_path / "out")
    prepare(plan_of(tmp_path, **first, replications=3), out, resume=True)
    with pytest.raises(UsageError) as caught:
        prepare(plan_of(tmp_path, **{**first, **keys}), out, resume=True)
    assert difference in str(caught.value)


@pytest.mark.parametrize("key", ["axes", "cases"])
def test_another_order_of_axes_or_cases_is_refused_since_it_numbers_the_points_otherwise(key: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"axes": {LOSS: ["1%", "2%"], "topology.receivers": [1, 2]}, "cases": {"b": {}, "a": {}}}
    out = with_results(plan_of(tmp_path, **values), tmp_path / "out")
    other = values | {key: dict(reversed(values[key].items()))}
    with pytest.raises(UsageError) as caught:
        prepare(plan_of(tmp_path, **other), out, resume=True)
    first, second = values[key]
    assert f"the order of {key} was {first}, {second} there and is {second}, {first} here" in str(caught.value)


def test_the_metrics_that_are_shown_may_change_also_in_a_folder_that_tells_them(tmp_path: Path) -> None:
    out = with_results(plan_of(tmp_path, metrics=["overhead"]), tmp_path / "out")
    identity = json.loads((out / "plan.json").read_text())
    identity["sweep"]["metrics"] = ["overhead"]
    (out / "plan.json").write_text(json.dumps(identity))
    prepare(plan_of(tmp_path, metrics=["nacks_sent"]), out, resume=True)
    assert load_sweep(out / "sweep.yaml").metrics == ("nacks_sent",)


@pytest.mark.parametrize("name", ["sweep.yaml", "base.yaml", "plan.json"])
def test_a_full_disk_leaves_the_files_of_a_sweep_as_they_were(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = with_results(plan_of(tmp_path), tmp_path / "out")
    before = {path: path.read_text() for path in out.iterdir() if path.is_file()}
    place = Path.open

    def full(self: Path, *arguments: Any, **options: Any) -> Any:
        file = place(self, *arguments, **options)
        if name in self.name and "w" in arguments:
            monkeypatch.setattr(file, "write", raises_no_space)
        return file

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UsageError, match=r"can't be written \(No space left on device\)"):
        prepare(plan_of(tmp_path, replications=2), out, resume=True)
    monkeypatch.undo()
    after = {path: path.read_text() for path in out.iterdir() if path.is_file()}
    assert after.keys() == before.keys()
    assert after[out / name] == before[out / name]
    prepare(plan_of(tmp_path, replications=2), out, resume=True)


def test_a_sweep_leaves_the_files_of_one_that_has_only_begun_in_the_same_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_of(tmp_path)
    with claim(out, "sweep"):
        prepare(plan, out, resume=False)
        with pytest.raises(UsageError, match="another sweep is writing to it"):
            run_sweep(plan_of(tmp_path, replications=7), out, SweepOptions())
    assert load_sweep(out / "sweep.yaml").replications == 1


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


def test_the_copy_of_a_sweep_file_stands_for_the_same_runs_where_its_scenario_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump({"name": "base", **BASE}, sort_keys=False))
    file = tmp_path / "sweeps" / "losses.yaml"
    file.parent.mkdir()
    sets = {"protocol.rate": "5Mbit"}
    axes = {LOSS: ["1%", "2%"]}
    file.write_text(yaml.safe_dump({"name": "s", "scenario": "../scenario.yaml", "set": sets, "axes": axes}))
    plan = SweepPlan(load_sweep(file), file)
    out = with_results(plan, tmp_path / "far" / "away")
    copy = SweepPlan(load_sweep(out / "sweep.yaml"), out / "sweep.yaml")
    check_folder(copy, out, resume=True)
    runs, again = ([run.run_id for point in each.points() for run in each.runs(point, 0, 2)] for each in (plan, copy))
    assert runs == again
