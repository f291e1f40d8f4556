"""Whole sweeps on Spark: every run is one row, failed or not, and rows do not depend on the schedule."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcastlab
from experiments.cli import invoke
from experiments.commands.sweep import summary_text
from experiments.output.folder_lock import claim
from experiments.sweep.run.driver import SweepOptions, SweepSummary, run_sweep
from experiments.sweep.run.spark_session import session
from experiments.sweep.spec import grid
from experiments.sweep.spec.code_version import code_version
from experiments.sweep.store.compaction import compact
from experiments.sweep.store.datasets import receivers, runs, series, table
from experiments.sweep.store.invocations import chosen_version
from experiments.sweep.store.parts import parts
from experiments.sweep.store.query import rows
from experiments.sweep.store.schema import PROVENANCE
from protocols.errors import UnsupportedError, UsageError
from tests.experiments.conftest import need_spark
from tests.experiments.sweep.failing_runs import perform_or_fail
from tests.experiments.sweep.files import plan_of, write_sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The start of Spark takes long on a loaded machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

LOSS = "topology.link.down.loss"
KEYS: dict[str, Any] = {
    "axes": {"loss": {"key": LOSS, "values": ["1%", "10%"]}},
    "cases": {"arq": {"protocol.parity": 0}, "fec": {"protocol.parity": 16}},
    "replications": 3,
    "keep": {"series": "500ms"},
}
TEMPER: dict[str, Any] = {"replications": 7, "time_limit": 8.0, "memory": "500MB"}


def comparable(folder: Path) -> list[str]:
    """Return the rows without provenance, sorted, as text."""
    found = [{key: value for key, value in row.items() if key not in PROVENANCE} for row in table(folder)]
    return [json.dumps(row, sort_keys=True) for row in found]


def make(spark: "SparkSession", folder: Path, keys: dict[str, Any], **options: Any) -> SweepSummary:
    folder.mkdir(parents=True, exist_ok=True)
    return run_sweep(plan_of(folder, **keys), folder / "out", SweepOptions(quiet=True, **options), spark)


@pytest.fixture(scope="module")
def done(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a sweep to its end and return its folder."""
    folder = tmp_path_factory.mktemp("done")
    summary = make(spark, folder, KEYS)
    assert (summary.total, summary.status, summary.left) == (12, {"ok": 12}, 0)
    return folder / "out"


def test_every_run_is_one_row_with_its_parameters(done: Path) -> None:
    found = table(done)
    assert [(row["point"], row["case"], row["p_loss"], row["seed"]) for row in found] == [
        (point, case, loss, seed)
        for point, (case, loss) in enumerate([("arq", 0.01), ("arq", 0.1), ("fec", 0.01), ("fec", 0.1)])
        for seed in (1, 2, 3)
    ]
    assert all(row["status"] == "ok" and row["fingerprint"] and row["m_completed"] == 1.0 for row in found)
    assert dict(found[0]["params"]) == {"loss": "1%"}
    assert {row["version"] for row in found} == {chosen_version(done)}


def test_receivers_and_series_are_separate_datasets(spark: "SparkSession", done: Path) -> None:
    assert receivers(spark, done).count() == 24
    assert receivers(spark, done).select("receiver").distinct().count() == 2
    names = {row["name"] for row in series(spark, done).select("name").distinct().collect()}
    assert {"packets_sent data", "receivers_complete"} <= names


def test_results_can_be_queried_in_sql(spark: "SparkSession", done: Path) -> None:
    version = chosen_version(done)
    few = rows(spark, done, "runs", version, "case = 'fec' and p_loss > 0.05", "seed, round(m_overhead, 1) as o")
    assert [row["seed"] for row in few.collect()] == [1, 2, 3]
    assert few.columns == ["seed", "o"]
    assert rows(spark, done, "receivers", version, "p_loss > 0.05 and receiver = 'r2'").count() == 6
    with pytest.raises(UsageError, match=r"--where: value 'nonsense' is not allowed; one of run_id, version, .*, overhead, "):
        rows(spark, done, "runs", version, "nonsense > 1")
    with pytest.raises(UsageError, match=r"--select: .*foo.*; columns: run_id, version"):
        rows(spark, done, "runs", version, None, "foo(seed)")


def test_sql_takes_the_names_that_tables_show(spark: "SparkSession", done: Path) -> None:
    version = chosen_version(done)
    # The axis and a metric have the same last name; the table shows the axis as `loss` and the metric as `m_loss`.
    few = rows(spark, done, "runs", version, "loss > 0.05 and overhead > 0", "case, loss, m_loss, overhead")
    assert {row["loss"] for row in few.collect()} == {0.1}
    assert few.columns == ["case", "loss", "m_loss", "overhead"]
    assert "overhead" not in rows(spark, done, "runs", version, "overhead > 0").columns


def test_receivers_of_an_interrupted_sweep_are_read_from_its_runs(spark: "SparkSession", done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    whole = mcastlab.open_sweep(out, "receivers")
    assert (len(whole), whole["m_equal"].tolist()) == (24, [1.0] * 24)
    # An invocation that is interrupted writes none; one that is killed while it writes leaves some and no mark of success.
    next((out / "receivers").glob("job=*/_SUCCESS")).unlink()
    assert receivers(spark, out).count() == 24
    shutil.rmtree(out / "receivers")
    assert receivers(spark, out).count() == 24
    assert mcastlab.open_sweep(out, "receivers").equals(whole)
    assert sorted(mcastlab.open_sweep(out, "series")["name"].unique()) == sorted(
        mcastlab.open_sweep(done, "series")["name"].unique()
    )


def test_a_frame_has_missing_numbers_where_no_run_has_a_metric(done: Path) -> None:
    found = mcastlab.open_sweep(done)
    assert found["m_share"].isna().all()
    assert found["m_share"].dtype == float
    assert found["params"][0] == {"loss": "1%"}


def test_a_second_invocation_has_nothing_to_do_and_does_not_start_spark(done: Path, tmp_path: Path) -> None:
    before = comparable(done)
    summary = run_sweep(plan_of(tmp_path, **KEYS), done, SweepOptions(resume=True, quiet=True))
    assert (summary.known, summary.made, summary.failed, summary.left) == (12, 0, 0, 0)
    assert comparable(done) == before


def test_what_a_killed_sweep_and_its_tasks_told_each_other_is_removed(done: Path, tmp_path: Path) -> None:
    (done / ".progress-one").mkdir()
    (done / ".progress-one" / "0.0").touch()
    (done / ".stop-one").touch()
    run_sweep(plan_of(tmp_path, **KEYS), done, SweepOptions(resume=True, quiet=True))
    assert not [path.name for path in done.iterdir() if path.name.startswith((".progress", ".stop"))]


def test_a_limited_and_resumed_sweep_has_the_same_results(spark: "SparkSession", done: Path, tmp_path: Path) -> None:
    first = make(spark, tmp_path, KEYS, limit=5)
    assert (first.made, first.left) == (5, 7)
    second = make(spark, tmp_path, KEYS, resume=True)
    assert (second.known, second.made, second.left) == (5, 7, 0)
    assert comparable(tmp_path / "out") == comparable(done)
    assert len(list((tmp_path / "out" / "runs").glob("job=*"))) == 2
    assert receivers(spark, tmp_path / "out").count() == 24


def test_the_runs_of_a_truncated_file_are_repeated(spark: "SparkSession", done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path / "out")
    broken = parts(tmp_path / "out")[0]
    broken.write_bytes(broken.read_bytes()[:1000])
    summary = make(spark, tmp_path, KEYS, resume=True)
    assert summary.unreadable == 1
    assert summary.made >= 1
    assert summary.left == 0
    assert comparable(tmp_path / "out") == comparable(done)
    assert runs(spark, tmp_path / "out").count() == 12


def test_more_replications_are_added_to_existing_rows(spark: "SparkSession", done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path / "out")
    summary = make(spark, tmp_path, KEYS | {"replications": 4}, resume=True)
    assert (summary.known, summary.made) == (12, 4)
    assert runs(spark, tmp_path / "out").count() == 16


def test_runs_that_end_before_every_receiver_has_everything_are_told(spark: "SparkSession", tmp_path: Path) -> None:
    keys = {"axes": {"duration": ["10ms", "20s"]}, "keep": {"receivers": False}}
    summary = make(spark, tmp_path, keys)
    assert (summary.status, summary.incomplete, summary.plain()["incomplete"]) == ({"ok": 2}, 1, 1)
    assert "incomplete: 1 of those that are ok" in summary_text(summary, Path("s.yaml"))


def test_compaction_leaves_one_file_per_dataset_and_every_row(spark: "SparkSession", done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    shutil.copytree(next((out / "runs").glob("job=*")), out / "runs" / "job=copy")
    before, after = compact(spark, out)
    assert before > after == 3
    assert comparable(out) == comparable(done)
    assert (runs(spark, out).count(), receivers(spark, out).count()) == (12, 24)
    assert make(spark, tmp_path, KEYS, resume=True).made == 0


def test_failures_are_rows_and_do_not_affect_other_runs(spark: "SparkSession", tmp_path: Path) -> None:
    summary = make(spark, tmp_path / "bad", TEMPER, perform=perform_or_fail)
    assert summary.status == {"ok": 2, "error": 2, "timeout": 1, "crashed": 2}
    found = table(tmp_path / "bad" / "out")
    assert [row["status"] for row in found] == ["ok", "error", "timeout", "crashed", "crashed", "error", "ok"]
    assert [row["m_completed"] for row in found] == [1.0, None, None, None, None, None, 1.0]
    # Failed runs are results, too, until they are requested again.
    assert make(spark, tmp_path / "bad", TEMPER, resume=True).made == 0
    again = make(spark, tmp_path / "bad", TEMPER, retry=True)
    assert (again.made, again.status) == (5, {"ok": 7})
    make(spark, tmp_path / "good", TEMPER)
    assert comparable(tmp_path / "bad" / "out") == comparable(tmp_path / "good" / "out")


def test_a_long_lived_session_has_memory_for_its_compiled_code(spark: "SparkSession") -> None:
    # 400 queries, each with code of its own, take 63 MB before Java discards any; Spark stops at the limit.
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()  # type: ignore[union-attr]
    assert sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName()) >= 200 << 20


def test_results_of_another_code_version_are_kept_apart(
    spark: "SparkSession", done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(done, tmp_path / "out")
    monkeypatch.setattr(grid, "code_version", lambda: "9.9+other")
    summary = make(spark, tmp_path, KEYS | {"replications": 1}, resume=True)
    assert (summary.made, summary.other_versions) == (4, 12)
    assert chosen_version(tmp_path / "out") == "9.9+other"
    assert runs(spark, tmp_path / "out").count() == 4
    assert runs(spark, tmp_path / "out", chosen_version(done)).count() == 12
    monkeypatch.undo()
    back = run_sweep(plan_of(tmp_path, **KEYS), tmp_path / "out", SweepOptions(resume=True, quiet=True))
    assert (back.known, back.made) == (12, 0)
    assert chosen_version(tmp_path / "out") == chosen_version(done)


def test_a_folder_with_results_of_another_sweep_is_refused(done: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it holds results \(--resume continues them\)"):
        run_sweep(plan_of(tmp_path, **KEYS), done, SweepOptions())
    with pytest.raises(UsageError, match=r"it holds another sweep than .*small\.yaml"):
        run_sweep(plan_of(tmp_path, **KEYS, seed=5), done, SweepOptions(resume=True))


def test_two_sweeps_cannot_write_to_one_folder(done: Path, tmp_path: Path) -> None:
    with claim(done, "sweep"), pytest.raises(UsageError, match="another sweep is writing to it"):
        run_sweep(plan_of(tmp_path, **KEYS), done, SweepOptions(resume=True))


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from experiments.cli import main; main()", *map(str, arguments)]


def test_the_command_writes_results_as_csv(
    commands: Any, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands("results", done, "--where", "seed = 2", "--csv", tmp_path / "r.csv") == 0
    assert capsys.readouterr() == ("", f"{tmp_path / 'r.csv'}: 4 rows\n")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 5


def test_the_command_shows_the_metrics_that_the_sweep_names(
    spark: "SparkSession", commands: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(spark, tmp_path / "run", {"axes": KEYS["axes"], "metrics": ["transmissions", "goodput_mbit_s"]})
    capsys.readouterr()
    assert commands("results", tmp_path / "run" / "out") == 0
    out = capsys.readouterr().out
    assert "transmissions" in out
    assert "overhead" not in out


def test_one_core_and_another_process_give_the_same_rows(done: Path, tmp_path: Path) -> None:
    path, out = write_sweep(tmp_path, **KEYS), tmp_path / "one"
    output = subprocess.run(
        command("sweep", path, "--out", out, "--master", "local[1]", "--json"), capture_output=True, text=True, check=False
    )
    assert (output.returncode, output.stderr) == (0, "")
    assert json.loads(output.stdout)["status"] == {"ok": 12}
    assert comparable(out) == comparable(done)


def interrupted(
    path: Path, out: Path, is_due: Callable[[], object], *options: str, by: signal.Signals = signal.SIGINT
) -> tuple[str, str, float]:
    """Interrupt a sweep of 8000 runs by a signal when `is_due`; return what it printed, and how long it took to end."""
    arguments = command("sweep", path, "--out", out, *options)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not is_due() and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, by)
        began = time.monotonic()
        stdout, stderr = process.communicate(timeout=60)
        spent = time.monotonic() - began
    assert process.returncode == 130
    return stdout, stderr, spent


def test_an_interrupted_sweep_stops_within_seconds_and_prints_how_to_resume(tmp_path: Path) -> None:
    need_spark()
    path, out = write_sweep(tmp_path, **KEYS | {"replications": 2000}), tmp_path / "out"
    stdout, stderr, spent = interrupted(path, out, lambda: parts(out))
    assert spent < 10.0
    assert "Traceback" not in stderr
    assert f"interrupted; go on with: mcastlab sweep {path} --out {out} --resume" in stdout
    assert 0 < len(table(out)) < 8000


@pytest.mark.parametrize(
    ("by", "options"),
    [(signal.SIGINT, ()), (signal.SIGINT, ("--json",)), (signal.SIGTERM, ()), (signal.SIGHUP, ())],
    ids=["shown", "quiet", "terminated", "hung up"],
)
def test_an_interrupt_before_the_first_task_has_ended_keeps_the_finished_runs(
    by: signal.Signals, options: tuple[str, ...], tmp_path: Path
) -> None:
    need_spark()
    path, out = write_sweep(tmp_path, **KEYS | {"replications": 2000}), tmp_path / "out"
    told = 0

    def is_due() -> bool:
        nonlocal told
        told = sum(len(file.read_bytes()) for file in out.glob(".progress-*/*"))
        return told > 0 and not parts(out)

    stdout, _, _ = interrupted(path, out, is_due, *options, by=by)
    kept = len(table(out))
    assert 0 < told <= kept < 8000
    # Its lines are filled to the width of a terminal.
    assert (f'"ok": {kept}' if options else f"{kept} ok") in " ".join(stdout.split())
    assert not list(out.glob(".stop-*"))


def test_without_java_one_line_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert invoke(["sweep", str(write_sweep(tmp_path)), "--out", str(tmp_path / "out")]) == 3
    assert capsys.readouterr().err == (
        "mcastlab: sweeps need Java 17; get it: sudo apt-get install --no-install-recommends openjdk-17-jre-headless\n"
    )


def test_without_the_client_of_spark_connect_one_line_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(builder: object) -> None:
        raise ImportError("[PACKAGE_NOT_INSTALLED] grpcio must be installed") from ModuleNotFoundError(name="grpc")

    monkeypatch.setattr("pyspark.sql.session.SparkSession.Builder.getOrCreate", lacking)
    with pytest.raises(UnsupportedError, match=r"^--remote needs grpc; get it: pip install 'pyspark\[connect\]'$"):
        session(remote="sc://localhost:1")


def test_a_dry_run_estimates_the_cost_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["sweep", str(write_sweep(tmp_path, **KEYS)), "--dry-run", "--json", "--out", str(tmp_path / "out")]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["points"], output["runs"], output["missing"], output["tried"]) == (4, 12, 12, 3)
    assert 0.001 < output["cpu_s"] < 60
    # More than the share of the runs: Spark starts or is joined, counts and writes.
    assert output["spark_s"] > 2.0
    assert output["wall_s"] >= output["spark_s"] + output["cpu_s"] / (os.cpu_count() or 1) - 0.01
    assert output["disk_bytes"] > 0
    assert output["first"][0] == "point 0 (case=arq, loss=1%), seed 1"
    assert not (tmp_path / "out").exists()


def test_results_of_an_empty_folder_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["results", str(tmp_path)]) == 2
    assert f"{tmp_path}: holds no results of a sweep; mcastlab sweep SWEEP.yaml --out" in capsys.readouterr().err


def test_a_job_is_recorded_with_its_provenance(done: Path) -> None:
    (job,) = [json.loads(path.read_text()) for path in (done / "jobs").glob("*.json")]
    assert job["runs"] == 12
    assert job["version"] == code_version()
    assert job["packages"].keys() == {"pyspark", "pyarrow", "numpy", "simpy"}
