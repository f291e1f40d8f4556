"""Where Spark has no space for its temporary files, one line names their folder."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from experiments.sweep.run import spark_job, spark_session
from experiments.sweep.run.progress import Progress
from experiments.sweep.run.spark_job import SweepError, run_job, todo_table
from protocols.errors import UnsupportedError
from tests.experiments.conftest import need_spark

TOLD = "Job aborted due to stage failure: Lost task 0.3: java.io.IOException: No space left on device\n\tat org.apache"
FULL = r"^Spark has no space left for its temporary files in {}; SPARK_LOCAL_DIRS or TMPDIR names another one, after: .*$"


class Spark:
    """A session whose temporary files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.sparkContext = SimpleNamespace(_temp_dir=str(folder / "spark-1" / "pyspark-2"))

    def createDataFrame(self, table: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_folder_of_temporary_files_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_spark()
    from pyspark.errors import PySparkException

    monkeypatch.setattr(spark_session, "session", lambda *arguments: Spark(tmp_path))
    monkeypatch.setattr(spark_session, "stop", lambda spark: None)
    expected = FULL.format(tmp_path)
    with pytest.raises(UnsupportedError, match=expected), spark_session.opened("local", tmp_path / "log"):
        raise PySparkException(TOLD)


def test_a_sweep_names_the_full_folder_when_it_hands_its_runs_to_java(tmp_path: Path) -> None:
    need_spark()
    spark, task, todo = Spark(tmp_path), SimpleNamespace(), todo_table([], [], {}, "1")
    todo = todo.from_pylist([{"task": 0}], todo.schema)
    with pytest.raises(UnsupportedError, match=FULL.format(tmp_path)):
        run_job(cast(Any, spark), todo, cast(Any, task), tmp_path, cast(Any, None))


@pytest.mark.parametrize("is_here", [True, False])
def test_a_job_that_failed_names_the_fuller_of_the_folders_it_writes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    need_spark()
    from pyspark.errors import PySparkException

    def write() -> None:
        raise PySparkException(TOLD)

    (results := tmp_path / "results").mkdir()
    monkeypatch.setattr(spark_job, "loss_of", lambda error, spark: None)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=4096 * ((path == results) != is_here)))
    expected = f"there is no space left in {results}$" if is_here else f"temporary files in {tmp_path}; SPARK"
    progress = Progress(results, 1, 0, quiet=True, reports=results)
    with pytest.raises(SweepError, match=expected):
        spark_job._in_background(cast(Any, Spark(tmp_path)), write, progress, results / ".stop-1")
