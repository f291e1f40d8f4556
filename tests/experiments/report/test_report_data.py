"""What a report tells of the theory in a sweep file, and the commands that repeat its runs and numbers."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.point_scenarios import PointScenarios
from experiments.report.provenance import rerun
from experiments.report.report_data import collect
from protocols.errors import UsageError
from tests.experiments.sweep.synthetic import BASE, BOTH, SEEDS, synthetic_rows, write_synthetic
from tests.support.sweep_store import grid, write_runs, write_series


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


def test_commands_of_figures_quote_names_and_leave_out_empty_options(spark: Any, tmp_path: Path) -> None:
    rows = grid({"the protocol": BOTH}, SEEDS, lambda seed, **named: {"completion_time": seed + BOTH.index(*named.values())})
    folder = write_series(
        write_runs(tmp_path, rows),
        [{"run_id": row["run_id"], "name": "queue", "t": t / 10, "value": float(t)} for row in rows for t in range(5)],
    )
    axes = "axes: {the protocol: {key: protocol.name, values: [norm, srm]}}"
    (folder / "sweep.yaml").write_text(f"name: one-axis\nscenario: base.yaml\n{axes}\nreplications: 8\n")
    (folder / "base.yaml").write_text(BASE)
    commands = {figure.name: shlex.split(figure.command)[3:] for figure in collect(spark, folder, []).figures}
    assert commands["series-queue"] == ["--series", "all"]
    assert commands["pairs-completion_time"] == ["--compare", "the protocol", "--metric", "completion_time"]
