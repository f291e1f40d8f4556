"""The scenarios of a sweep's points, from the files of its folder."""

import shutil
from pathlib import Path

import pytest

from experiments.analysis.point_scenarios import PointScenarios
from protocols.errors import UsageError


@pytest.mark.parametrize("name", ["sweep.yaml", "base.yaml"])
def test_a_file_that_is_missing_is_named_with_the_command_that_writes_it(name: str, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a copy"
    shutil.copytree(folder, copy)
    (copy / name).unlink()
    with pytest.raises(UsageError) as error:
        PointScenarios(copy)
    assert str(error.value) == (
        f"{copy / name}: is missing, which theory and a report need; put it back, or write it: "
        f"mcastlab sweep SWEEP.yaml --out '{copy}' --resume --limit 0"
    )
