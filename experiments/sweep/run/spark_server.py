"""The process of a warm Spark server: hold a Spark session for clients of the same user, and end some time after the last one.

Requests are lines of JSON: `use` gets Java's port and secret, `tag` names the client's jobs, `status` describes the server,
`stop` ends it. Run as `python -m experiments.sweep.run.spark_server SOCKET IDLE_SECONDS`.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from experiments.sweep.run.spark_servers import MASTER, locked
from experiments.sweep.run.spark_session import cores_of, own_session, stop
from protocols.errors import McastlabError

__all__ = ["Server", "main", "remove_abandoned"]

POLL = 1.0
BLOCKS = "mcastlab-blocks-"
"""Prefix of the names of folders of temporary files."""
ABANDONED = 60.0
"""Seconds without a change after which such a folder without a lock is that of a server that was killed."""
FULL = 0.7
"""Share of Java's heap in use, without a client, above which the server ends: what clients left behind has filled it."""


class Server:
    """State shared by the threads of the clients; the main thread decides when the process ends."""

    def __init__(self, path: Path, idle: float) -> None:
        self.path, self.idle = path, idle
        self.lock = threading.Lock()
        self.changed = threading.Event()
        self.ready = threading.Event()
        self.stopping = self.withdrawn = False
        self.users: set[socket.socket] = set()
        self.since = time.monotonic()
        self.last_use = time.monotonic()
        self.spark: Any = None
        self.java: Any = None
        self.failure = ""
        # Spark's temporary files; systemd-tmpfiles leaves alone what is locked exclusively, however old it is.
        remove_abandoned(Path(tempfile.gettempdir()))
        self.files = Path(tempfile.mkdtemp(prefix=BLOCKS))
        self.of_blocks: set[Path] = set()
        fcntl.flock(os.open(self.files, os.O_RDONLY), fcntl.LOCK_EX)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The files of sweeps keep the permissions that their user wants.
        umask = os.umask(0o077)
        self.listening.bind(str(path))
        os.umask(umask)
        self.socket_file = path.stat().st_ino
        self.listening.listen(64)

    def run(self) -> int:
        """Serve until the server is stopped, idle or without Java; return an exit code."""
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            self.spark = own_session(MASTER, self.path.with_suffix(".log"), self._options())
        except McastlabError as error:
            self.failure = str(error)
        else:
            self.java = self.spark.sparkContext._gateway.proc
        self.ready.set()
        if self.failure:
            # Clients that wait read the failure before their connections end.
            time.sleep(POLL)
            self._withdraw()
            shutil.rmtree(self.files, ignore_errors=True)
            return 1
        warm = False
        while not self._has_to_end():
            if not warm and not self.users:
                warm = True
                try:
                    _warm_up(self.spark)
                except Exception:  # noqa: BLE001  (a Spark that answers no question is of no use, whatever the reason)
                    traceback.print_exc()
                    break
            self.changed.wait(POLL)
            self.changed.clear()
        self._withdraw()
        stop(self.spark)
        # Java ends when its stdin does.
        self.java.stdin.close()
        with suppress(TimeoutExpired):
            self.java.wait(10)
        self.java.kill()
        self.java.wait()
        shutil.rmtree(self.files, ignore_errors=True)
        return 0

    def _options(self) -> dict[str, str]:
        return {"spark.scheduler.mode": "FAIR", "spark.local.dir": str(self.files)}

    def _has_to_end(self) -> bool:
        if self.stopping or self._is_broken():
            return True
        with self.lock:
            if self.users or (time.monotonic() - self.last_use < self.idle and self._is_usable()):
                return False
            if not self._is_reachable():
                return True
        # A client that is about to connect holds the lock.
        with locked(self.path.parent), self.lock:
            if not self.users:
                self._withdraw()
            return not self.users

    def _is_broken(self) -> bool:
        """Return whether Java has ended, or Spark in it has stopped itself, as after an error of one of its own threads."""
        from py4j.protocol import Py4JError

        try:
            return self.java.poll() is not None or bool(self.spark.sparkContext._jsc.sc().isStopped())
        except (Py4JError, OSError):
            return True

    def _is_reachable(self) -> bool:
        """Return whether the socket is still in its folder: somebody may have removed it, and another server made its own."""
        try:
            return self.path.stat().st_ino == self.socket_file
        except OSError:
            return False

    def _withdraw(self) -> None:
        """Remove the socket, so that whoever connects from now on starts another server, whose socket is not this one's."""
        if not self.withdrawn and self._is_reachable():
            self.path.unlink(missing_ok=True)
        self.withdrawn = True

    def _is_usable(self) -> bool:
        return self._is_reachable() and self._has_files() and not self._is_full()

    def _has_files(self) -> bool:
        """Return whether the folders in which Spark keeps blocks are all there; it does not make one twice."""
        before = self.of_blocks
        now = {*self.files.glob("blockmgr-*"), *self.files.glob("blockmgr-*/*/")}
        self.of_blocks = before | now
        return before <= now

    def _is_full(self) -> bool:
        heap = self.spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
        if heap.totalMemory() - heap.freeMemory() < FULL * heap.maxMemory():
            return False
        heap.gc()
        return bool(heap.totalMemory() - heap.freeMemory() > FULL * heap.maxMemory())

    def _accept(self) -> None:
        while True:
            client, _ = self.listening.accept()
            _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user != os.getuid():
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        from py4j.protocol import Py4JError

        tags: list[str] = []
        with suppress(OSError, ValueError, KeyError), client, client.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                self._answer(client, json.loads(line), tags)
        with self.lock:
            self.users.discard(client)
            self.last_use = time.monotonic()
        for tag in tags:
            # The client may have died in the middle of a job; in a Spark that has stopped, no job is left.
            with suppress(Py4JError, OSError):
                self.spark.sparkContext._jsc.sc().cancelJobsWithTag(tag)

    def _answer(self, client: socket.socket, request: dict[str, Any], tags: list[str]) -> None:
        if request["do"] == "tag":
            tags.append(request["tag"])
            return
        if request["do"] == "use":
            with self.lock:
                self.users.add(client)
            self.ready.wait()
            if not self.failure and (self._is_broken() or not self._has_files()):
                self._withdraw()
                # Without an answer the client connects to another server.
                raise ConnectionResetError("Spark has stopped, or its files were removed")
            answer = {"error": self.failure} if self.failure else self._gateway()
        elif request["do"] == "status":
            answer = self._status()
        else:
            self.stopping = True
            self.changed.set()
            answer = {}
        client.sendall(json.dumps(answer).encode() + b"\n")
        if request["do"] == "stop":
            # Keep the connection open until this process has ended.
            threading.Event().wait()

    def _gateway(self) -> dict[str, Any]:
        parameters = self.spark.sparkContext._gateway.gateway_parameters
        return {"port": parameters.port, "secret": parameters.auth_token}

    def _status(self) -> dict[str, Any]:
        with self.lock:
            count, unused = len(self.users), time.monotonic() - self.last_use
        spark = None if self.spark is None or self._is_broken() else self.spark
        return {
            "pid": os.getpid(),
            "pyspark": version("pyspark"),
            "python": sys.executable,
            "cores": cores_of(spark) if spark is not None else None,
            "clients": count,
            "waiting": 0 if spark is None else _waiting(spark),
            "up_s": round(time.monotonic() - self.since, 1),
            "ends_in_s": None if count else round(max(0.0, self.idle - unused), 1),
            "log": str(self.path.with_suffix(".log")),
        }


def remove_abandoned(temporary: Path) -> None:
    """Remove the temporary files of this user's servers that were killed: their locks are free.

    Folders that are new may be those of a server that has not locked its own yet.
    """
    for path in temporary.glob(f"{BLOCKS}*"):
        with suppress(OSError):
            about = path.lstat()
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < ABANDONED:
                continue
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(folder)


def _waiting(spark: Any) -> int:
    """Return how many stages of jobs have no running task while the tasks of others hold all cores."""
    from py4j.protocol import Py4JError

    tracker = spark.sparkContext.statusTracker()
    try:
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    except (Py4JError, OSError):
        # Spark has stopped, and the server is about to end.
        return 0
    busy = sum(stage.numActiveTasks for stage in stages) >= cores_of(spark)
    return sum(stage.numActiveTasks == 0 for stage in stages) if busy else 0


def _warm_up(spark: Any) -> None:
    """Run the queries of analyses on made-up rows, so that Java has loaded and compiled what the first real query needs."""
    from pyspark.sql import functions as f

    frame = spark.range(64).select((f.col("id") % 3).alias("key"), f.rand(1).alias("value"), f.col("id").cast("string"))
    for _ in range(3):
        whole = "percentile(value, array(0.05, 0.5))"
        frame.groupBy("key").agg(f.count("*"), f.avg("value"), f.stddev_samp("value"), f.expr(whole)).collect()
        pairs = frame.alias("a").join(frame.alias("b"), f.col("a.key").eqNullSafe(f.col("b.key")))
        pairs.where("a.id != b.id").select(f.col("a.value") - f.col("b.value")).distinct().orderBy(f.lit(1)).limit(3).collect()
        frame.select("value").toPandas()


def main() -> int:
    """Serve on the socket given on the command line."""
    server = Server(Path(sys.argv[1]), float(sys.argv[2]))

    def ask_to_end(number: int, frame: object) -> None:
        server.stopping = True
        server.changed.set()

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, ask_to_end)
    return server.run()


if __name__ == "__main__":
    # Not sys.exit: threads of clients may still wait.
    os._exit(main())
