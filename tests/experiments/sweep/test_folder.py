"""The folder of a sweep: it belongs to one sweep."""

from pathlib import Path
from typing import Any

import pytest

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
