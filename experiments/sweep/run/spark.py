"""A Spark session that starts quickly and quietly: its noise goes to a log file, which is quoted when it fails."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.output.extras import need
from protocols.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_java", "check_pyspark", "cores_of", "session", "stop"]

JAVA_PACKAGE = "openjdk-17-jre-headless"
MASTERS = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")
ATTEMPTS = 4
"""How often Spark tries a task in local mode; its own default is once, and then one dead worker ends the sweep."""

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # A tiny shuffle put together to one task would leave all processors but one without work.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.log.level": "WARN",
    # Rows go to Java when they are given back and not at the end of the task, so that the file is open by then.
    "spark.python.udf.pipelined.enabled": "true",
}


def session(
    master: str = "local[*]", log: Path | None = None, remote: str | None = None, many_rows: bool = False
) -> "SparkSession":
    """The session of this process, made when there is none; the caller stops it.

    `remote` (sc://HOST:PORT) uses a Spark Connect server instead of a master. `log` gets what Spark and Java say (default: a
    temporary file). `many_rows` lets Java optimise fully, which pays above some five million rows and starts slower.
    UnsupportedError when Java or PySpark is missing or Spark does not start.
    """
    check_pyspark()
    _hush()
    log = log or Path(tempfile.gettempdir()) / f"mcastlab-spark-{os.getpid()}.log"
    if remote is not None:
        return _connect(remote)
    if MASTERS.fullmatch(master) is None:
        raise UsageError(f"--master: value {master!r} is not allowed; local[N], local[*], spark://HOST:PORT, yarn or k8s://...")
    check_java()
    _environment(master)
    with _noise_to(log):
        return _start(master, many_rows, log)


def stop(spark: "SparkSession") -> None:
    """Stop a session, also one whose Java has died already."""
    from py4j.protocol import Py4JError

    # ConnectionError is what a dead Java answers with; nothing is left to stop then.
    with suppress(Py4JError, ConnectionError):
        spark.stop()


def cores_of(spark: "SparkSession") -> int:
    """How many tasks run at the same time, as far as Spark says; at least 1."""
    if ".connect." in type(spark).__module__:
        return os.cpu_count() or 1
    return max(1, spark.sparkContext.defaultParallelism)


def check_pyspark() -> None:
    """UnsupportedError when the Python packages are missing."""
    need("a sweep", "pyspark", "pandas", "pyarrow")


def check_java() -> None:
    """UnsupportedError when there is no Java to run Spark with."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home, "bin"))) is None:
        raise UnsupportedError(f"sweeps need Java, and JAVA_HOME ({home}) has none; unset it or install Java 17 there")
    if not home and shutil.which("java") is None:
        raise UnsupportedError(f"sweeps need Java 17; get it: sudo apt-get install --no-install-recommends {JAVA_PACKAGE}")


def _hush() -> None:
    """PySpark prints what it raises as well: the Java stack of every SQL mistake, and a stack when Java is gone."""
    from pyspark import accumulators
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    for name in ("AccumulatorTCPServer", "AccumulatorUnixServer"):
        setattr(getattr(accumulators, name), "handle_error", lambda self, request, address: None)  # noqa: B010


def _environment(master: str) -> None:
    # Without this the workers would be whatever python3 is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        # The name of this machine may not resolve, and nobody outside has to reach it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")


@contextmanager
def _noise_to(log: Path) -> Iterator[None]:
    """File descriptor 2 leads to the log meanwhile: a Java process started now keeps it for life."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(file, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def _start(master: str, many_rows: bool, log: Path) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    jit = "" if many_rows else "-XX:TieredStopAtLevel=1"
    builder = SparkSession.builder.appName("mcastlab").master(_with_attempts(master))
    for key, value in OPTIONS.items():
        builder = builder.config(key, value)
    try:
        return builder.config("spark.driver.extraJavaOptions", f"{jit} -Xshare:auto".strip()).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise UnsupportedError(f"Spark does not start on {master}: {_last_words(log, error)} (all of it: {log})") from error


def _connect(remote: str) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if not remote.startswith("sc://"):
        raise UsageError(f"--remote: value {remote!r} is not allowed; it reads sc://HOST:PORT")
    try:
        return SparkSession.builder.remote(remote).getOrCreate()
    except ImportError as error:
        raise UnsupportedError(f"--remote needs {error.name}; get it: pip install 'pyspark[connect]'") from error
    except PySparkException as error:
        raise UnsupportedError(f"Spark Connect at {remote}: {str(error).splitlines()[0]}") from error


def _with_attempts(master: str) -> str:
    match = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{match[1] or '1'},{ATTEMPTS}]" if match else master


def _last_words(log: Path, error: Exception) -> str:
    """The line of the log that says most, or else the error's first."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    telling = [line.strip() for line in lines if re.search(r"Exception|Error|error:", line)]
    return telling[-1][:200] if telling else (str(error).splitlines() or [type(error).__name__])[0][:200]
