"""Attach this process to the warm Spark server of its user, and detach it; the server keeps Java and the workers running.

The session is an ordinary one: PySpark talks to Java over the gateway of the server instead of to one it started.
"""

import os
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.sweep.run.spark_servers import MASTER, Line, gateway, open_line
from experiments.sweep.run.worker_code import worker_environment
from protocols.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["attach", "detach", "fits", "prepare"]


@dataclass
class _Attached:
    """The session of this process on a server, and the gateway PySpark had before."""

    spark: Any
    line: Line
    before: tuple[Any, Any]


_attached: _Attached | None = None
_prepared: Line | None = None


def fits(master: str) -> bool:
    """Return whether a session for this master belongs on the server: not if this process has a session with its own Java."""
    from pyspark import SparkContext

    return master == MASTER and (_attached is not None or SparkContext._active_spark_context is None)


def prepare() -> None:
    """Connect to the server, and start it if there is none, without waiting for its Spark; `attach` waits."""
    global _prepared  # noqa: PLW0603
    if _prepared is None and _attached is None:
        _prepared = open_line()


def attach() -> "SparkSession":
    """Return the session of this process on the server; a second call returns the same.

    Raises UnsupportedError if Spark does not start there.
    """
    global _attached, _prepared  # noqa: PLW0603
    if _attached is not None:
        return _attached.spark  # type: ignore[no-any-return]
    prepared, _prepared = _prepared, None
    line, port, secret = gateway(prepared)
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    before = (SparkContext._gateway, SparkContext._jvm)
    try:
        spark = _session(_gateway(port, secret))
    except (Py4JError, OSError) as error:
        SparkContext._gateway, SparkContext._jvm = before
        line.close()
        raise UnsupportedError("the Spark server of this user has just ended; run the command again") from error
    line.tell(do="tag", tag=spark._jsparkSession.sessionJobTag())
    _attached = _Attached(spark, line, before)
    return spark  # type: ignore[no-any-return]


def detach(spark: Any) -> bool:
    """Leave the server if this session is on it, and restore PySpark's state; return whether it was."""
    global _attached
    if _attached is None or _attached.spark is not spark:
        return False
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    mine, _attached = _attached, None
    context: Any = spark.sparkContext
    gateway = context._gateway
    # Without its Java object, `stop` ends only what is of this process.
    context._jsc = None
    # Its shutdown waits for up to half a second.
    threading.Thread(target=context._accumulatorServer.shutdown, daemon=True).start()
    context._accumulatorServer = None
    context.stop()
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SparkContext._gateway, SparkContext._jvm = mine.before
    mine.line.close()
    try:
        gateway.shutdown_callback_server()
        gateway.close()
    except (Py4JError, OSError):
        # Java has died; nothing is left to close.
        pass
    return True


def _gateway(port: int, secret: str) -> Any:
    """Connect to Java as PySpark does when Java starts it: it takes port and secret from the environment."""
    from pyspark import java_gateway

    names = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(names)
    try:
        launch: Any = java_gateway.launch_gateway
        return launch()
    finally:
        for name in names:
            del os.environ[name]


def _session(gateway: Any) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = None
    java = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    conf = SparkConf(_jconf=java.sparkContext().conf().clone())
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    context = SparkContext(
        gateway=gateway, conf=conf, jsc=gateway.jvm.JavaSparkContext(java.sparkContext()), environment=worker_environment()
    )
    if main:
        # PySpark's handler would cancel the jobs of all clients.
        signal.signal(signal.SIGINT, handler)
    # A session of its own, so that options and interrupts concern no other client.
    return SparkSession(context, java.newSession())
