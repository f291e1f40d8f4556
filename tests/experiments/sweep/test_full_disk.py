"""Where Spark has no space for its temporary files, one line says so."""

from pathlib import Path

import pytest

from experiments.sweep.run import spark_session
from protocols.errors import UnsupportedError
from tests.experiments.conftest import need_spark


def test_a_full_folder_of_temporary_files_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_spark()
    from pyspark.errors import PySparkException

    monkeypatch.setattr(spark_session, "session", lambda *arguments: object())
    monkeypatch.setattr(spark_session, "stop", lambda spark: None)
    told = "Job aborted due to stage failure: Lost task 0.3: java.io.IOException: No space left on device\n\tat org.apache"
    expected = r"^Spark has no space left for its temporary files, in SPARK_LOCAL_DIRS .*$"
    with pytest.raises(UnsupportedError, match=expected), spark_session.opened("local", tmp_path / "log"):
        raise PySparkException(told)
