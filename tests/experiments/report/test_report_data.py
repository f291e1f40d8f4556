"""What a report tells of the theory in a sweep file, and how it repeats a run of one of two worlds."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.point_scenarios import PointScenarios
from experiments.report.provenance import rerun
from experiments.report.report_data import collect
from protocols.errors import UsageError
from tests.experiments.sweep.synthetic import synthetic_rows, write_synthetic


def test_formulas_of_the_sweep_file_that_predict_nothing_are_named_and_left_out(spark: Any, tmp_path: Path) -> None:
    folder = write_synthetic(tmp_path, synthetic_rows())
    with (folder / "sweep.yaml").open("a") as file:
        file.write("theory: [n2-throughput, arq]\n")
    data = collect(spark, folder, ["transmissions"])
    why = "it predicts processing_throughput, which no run here has"
    assert {row.formula for row in data.theory} == {"arq"}
    assert dict(data.provenance)["theory left out"] == f"n2-throughput: {why}"
    with pytest.raises(UsageError, match=f"--theory: value 'n2-throughput' is not allowed; {why}"):
        collect(spark, folder, ["transmissions"], ["n2-throughput"])


def test_a_run_of_an_axis_of_worlds_is_repeated_in_its_own(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("duration: 1s\n")
    (tmp_path / "sweep.yaml").write_text("name: worlds\nscenario: base.yaml\naxes: {backend: [sim, emu]}\n")
    points = PointScenarios(tmp_path)
    assert "--on emu" in rerun(tmp_path, points, {"backend": "emu"}, 1)
    assert "--on" not in rerun(tmp_path, points, {"backend": "sim"}, 1)
