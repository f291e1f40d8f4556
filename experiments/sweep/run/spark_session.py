"""Open a Spark session: on the warm server of this user, in a Java process of its own, or at a Spark Connect server."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.output.extras import need
from experiments.sweep.run.pyspark_adjustments import adjust_pyspark
from protocols.errors import McastlabError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "JAVA_PACKAGE",
    "check_java",
    "check_pyspark",
    "cores_of",
    "is_full",
    "loss_of",
    "no_space",
    "opened",
    "own_session",
    "session",
    "stop",
    "temporary_folder",
]

JAVA_PACKAGE = "openjdk-17-jre-headless"
MASTERS = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")
ATTEMPTS = 4
"""Attempts per task in local mode; Spark's default of one lets a single dead worker end the sweep."""

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # Coalescing a tiny shuffle into one task would leave all cores but one idle.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.log.level": "WARN",
    # To note the line of the caller at every call costs a client half a second: it imports IPython where that is installed.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Stream rows to Java as they are yielded, not at the end of the task, so that the file is open by then.
    "spark.python.udf.pipelined.enabled": "true",
}

LOCAL_OPTIONS = {
    # Other users of this machine can reach Java's ports on loopback; Spark makes a secret for them.
    "spark.authenticate": "true",
    "spark.python.daemon.module": "experiments.sweep.run.worker_daemon",
    # More partitions than cores only cost time.
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)),
}
"""Options of Spark on this machine alone; workers of a cluster find mcastlab only after they have started."""

FAST_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java options for the first JIT compiler only. Java would then reserve 48 MB for compiled code instead of its usual 240 MB; a
long-lived server fills them, and Spark stops with "Out of space in CodeCache"."""


def session(
    master: str = "local[*]", log: Path | None = None, remote: str | None = None, many_rows: bool = False
) -> "SparkSession":
    """Return a Spark session, which the caller ends by `stop`.

    That of this process if it has one; else for `local[*]` one on the warm server of this user, for another master one of this
    process. `remote` (sc://HOST:PORT) selects a Spark Connect server instead. `log` receives the output of Spark and Java
    (default, and where its folder can't be written to: a temporary file), except for the warm server, which has its own.
    `many_rows` enables full JIT compilation, which pays off above about five million rows and starts slower. Raises
    UnsupportedError if Java or PySpark is missing or Spark does not start.
    """
    check_pyspark()
    if remote is not None:
        return _connect(remote)
    from experiments.sweep.run import warm_session

    if MASTERS.fullmatch(master) is None:
        raise UsageError(f"--master: value {master!r} is not allowed; local[N], local[*], spark://HOST:PORT, yarn or k8s://...")
    check_java()
    adjust_pyspark()
    _environment(master)
    if warm_session.fits(master) and not many_rows:
        return warm_session.attach()
    if log is None or (log.parent.is_dir() and not os.access(log.parent, os.W_OK)):
        # Results can be read from a folder that can't be written to.
        log = Path(tempfile.gettempdir()) / f"mcastlab-spark-{os.getpid()}.log"
    return own_session(master, log, {}, many_rows)


def own_session(master: str, log: Path, options: Mapping[str, str], many_rows: bool = False) -> "SparkSession":
    """Return the session of this process, created with these further options if there is none."""
    adjust_pyspark()
    _environment(master)
    with _stderr_to(log):
        return _start(master, many_rows, log, options)


def stop(spark: "SparkSession") -> None:
    """Stop a session, even if its Java process has died; one on a warm server is detached."""
    from py4j.protocol import Py4JError

    from experiments.sweep.run import warm_session

    if warm_session.detach(spark):
        return
    # A dead Java process raises ConnectionError; there is nothing left to stop.
    with suppress(Py4JError, ConnectionError):
        spark.stop()


@contextmanager
def opened(master: str, log: Path, remote: str | None = None) -> "Iterator[SparkSession]":
    """Open a session for a block, as `session` does, and stop it at the end.

    Raises UnsupportedError in place of an error that the block raises because Java has died or Spark in it has stopped, or
    because there is no space for its temporary files.
    """
    spark = session(master, log, remote)
    try:
        yield spark
    except McastlabError:
        raise
    except Exception as error:
        if is_full(error):
            raise UnsupportedError(no_space(spark)) from error
        if (loss := loss_of(error, spark)) is None:
            raise
        raise UnsupportedError(f"the Spark session of this command has ended: {loss}; run the command again") from error
    finally:
        stop(spark)


def is_full(error: Exception) -> bool:
    """Return whether Spark found no space for a file; where results are read it writes none but temporary ones."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, (Py4JError, PySparkException)):
        return False
    try:
        return "No space left on device" in str(error)
    except (Py4JError, OSError):
        # The text of a Java exception is in the Java process, which may have died.
        return False


def temporary_folder(spark: "SparkSession") -> Path | None:
    """Return the folder of Spark's temporary files; None for a Spark Connect server, which does not tell it."""
    if ".connect." in type(spark).__module__:
        return None
    # PySpark's own folder is two levels below.
    return Path(spark.sparkContext._temp_dir).parents[1]


def no_space(spark: "SparkSession") -> str:
    """Return that the folder of Spark's temporary files is full, and how to name another one."""
    folder = temporary_folder(spark) or "its own folder"
    another = "SPARK_LOCAL_DIRS or TMPDIR names another one, after: mcastlab spark stop"
    return f"Spark has no space left for its temporary files in {folder}; {another}"


def loss_of(error: Exception, spark: "SparkSession") -> str | None:
    """Return what has ended if an error came because Java has died, or because Spark in it has stopped; else None."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    if isinstance(error, (ConnectionError, Py4JNetworkError)):
        return "its Java process has died"
    # What a Spark that has stopped answers depends on what it is asked, down to null pointers.
    if ".connect." in type(spark).__module__ or not isinstance(error, (Py4JError, PySparkException)):
        return None
    try:
        return "its Spark has stopped" if spark.sparkContext._jsc.sc().isStopped() else None
    except (Py4JError, OSError):
        return "its Java process has died"


def cores_of(spark: "SparkSession") -> int:
    """Return how many tasks run concurrently, as far as Spark reports it; at least 1."""
    if ".connect." in type(spark).__module__:
        return os.cpu_count() or 1
    return max(1, spark.sparkContext.defaultParallelism)


def check_pyspark() -> None:
    """Raise UnsupportedError if the Python packages are missing."""
    need("a sweep", "pyspark", "pandas", "pyarrow")


def check_java() -> None:
    """Raise UnsupportedError if there is no Java to run Spark with."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home, "bin"))) is None:
        raise UnsupportedError(f"sweeps need Java, and JAVA_HOME ({home}) has none; unset it or install Java 17 there")
    if not home and shutil.which("java") is None:
        raise UnsupportedError(f"sweeps need Java 17; get it: sudo apt-get install --no-install-recommends {JAVA_PACKAGE}")


def _environment(master: str) -> None:
    # Otherwise workers run the first python3 on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        # The host name may not resolve, and local mode needs no external address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect file descriptor 2 to the log; a Java process started meanwhile inherits it for its lifetime."""
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


def _start(master: str, many_rows: bool, log: Path, options: Mapping[str, str]) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    jit = "" if many_rows else FAST_START
    builder = SparkSession.builder.appName("mcastlab").master(_with_attempts(master))
    local = LOCAL_OPTIONS if re.fullmatch(r"local(\[.*\])?", master) else {}
    for key, value in {**OPTIONS, **local, **options}.items():
        builder = builder.config(key, value)
    try:
        return builder.config("spark.driver.extraJavaOptions", f"{jit} -Xshare:auto".strip()).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise UnsupportedError(f"Spark does not start on {master}: {_last_error(log, error)} (all of it: {log})") from error


def _connect(remote: str) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if not remote.startswith("sc://"):
        raise UsageError(f"--remote: value {remote!r} is not allowed; it reads sc://HOST:PORT")
    try:
        return SparkSession.builder.remote(remote).getOrCreate()
    except ImportError as error:
        # PySpark's own error has no name; the one it comes from has.
        name = error.name or getattr(error.__cause__, "name", None) or "the client of Spark Connect"
        raise UnsupportedError(f"--remote needs {name}; get it: pip install 'pyspark[connect]'") from error
    except PySparkException as error:
        raise UnsupportedError(f"Spark Connect at {remote}: {str(error).splitlines()[0]}") from error


def _with_attempts(master: str) -> str:
    match = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{match[1] or '1'},{ATTEMPTS}]" if match else master


def _last_error(log: Path, error: Exception) -> str:
    """Return the last error line of the log, or else the first line of the error."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    errors = [line.strip() for line in lines if re.search(r"Exception|Error|error:", line)]
    return errors[-1][:200] if errors else (str(error).splitlines() or [type(error).__name__])[0][:200]
