"""Find, start and stop the warm Spark server of this user: one process that keeps Java, a Spark session and workers running.

Its address is a Unix socket in a folder that only the user may enter, and the server checks who connects. What a client gets
there is the port and the secret of Java's gateway on loopback; they are written nowhere. While a client holds its connection
the server stays; when the connection ends, for whatever reason, the server cancels what that client left running.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from protocols.errors import UnsupportedError, UsageError

__all__ = [
    "DIRECTORY",
    "IDLE",
    "MASTER",
    "Line",
    "address",
    "folder",
    "gateway",
    "idle_seconds",
    "locked",
    "open_line",
    "servers",
    "status_of",
    "stop_server",
]

MASTER = "local[*]"
"""The master of warm servers; a session on any other has a Java process of its own."""
DIRECTORY, IDLE = "MCASTLAB_SPARK_DIR", "MCASTLAB_SPARK_IDLE"
"""Environment variables: the folder of the sockets, and the seconds without a client after which a server ends."""
DEFAULT_IDLE = 600.0
DEPENDS_ON = ("JAVA_HOME", "SPARK_LOCAL_DIRS", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
"""Environment variables that Java reads when it starts; servers with different ones are different servers."""
LONGEST_PATH = 100
"""Bytes of the path of a Unix socket; Linux allows 107."""
ATTEMPTS = 3
"""Servers that a command tries, one after another, if they end before they answer."""
ANSWER_WITHIN, END_WITHIN = 20.0, 40.0
"""Seconds a server has to answer what needs no waiting, and to end; one that was stopped by a signal does neither."""
BIND_WITHIN = 60.0
"""Seconds a new server has to open its socket; Spark starts after that."""


def folder() -> Path:
    """Return the folder of the servers' sockets and logs, made if missing: MCASTLAB_SPARK_DIR, or one of the user's own.

    Raises UsageError for a folder that another user owns or may enter.
    """
    given = os.environ.get(DIRECTORY)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(given) if given else (Path(runtime) if runtime and Path(runtime).is_dir() else cache) / "mcastlab"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = path.stat()
    except OSError as error:
        raise UsageError(
            f"{path}: can't hold the socket of Spark ({error.strerror}); {DIRECTORY} names another folder"
        ) from error
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise UsageError(f"{path}: must belong to this user and be closed to others (chmod 700 {path}), or set {DIRECTORY}")
    return path.absolute()


def idle_seconds() -> float:
    """Return after how many seconds without a client a server ends; UsageError if the variable is not a positive number."""
    text = os.environ.get(IDLE, "")
    try:
        value = float(text or DEFAULT_IDLE)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"{IDLE}: value {text!r} is not allowed; seconds above 0")
    return value


def address() -> Path:
    """Return the socket of the server that fits this process: its Python, PySpark, Java and version of mcastlab's server.

    A server in other namespaces, as on an emulated host or in a container, would see other files or another loopback device.
    """
    about = [sys.executable, *_namespaces(), version("pyspark"), *(f"{name}={os.environ.get(name, '')}" for name in DEPENDS_ON)]
    hashed = sha256("\0".join(about).encode())
    for name in ("spark_servers.py", "spark_server.py", "spark_session.py"):
        hashed.update(Path(__file__).with_name(name).read_bytes())
    path = folder() / f"spark-{hashed.hexdigest()[:12]}.sock"
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UsageError(f"{path}: is too long for a Unix socket; {DIRECTORY} names another folder")
    return path


def _namespaces() -> list[str]:
    """Return the names of this process's namespaces of mounts and networks, as far as the system tells them."""
    found = []
    for name in ("mnt", "net"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/ns/{name}"))
    return found


@dataclass
class Line:
    """A client's connection to a server; the server takes the client for gone when it closes."""

    end: socket.socket

    @property
    def server(self) -> int:
        """The process of the server."""
        process, _, _ = struct.unpack("3i", self.end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(process)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer; ConnectionError if the server has gone.

        Raises UnsupportedError if it does not answer. Only the answer to `use` may take longer, since Spark may be starting.
        """
        self.end.settimeout(None if request["do"] == "use" else ANSWER_WITHIN)
        text = b""
        try:
            self.tell(**request)
            while not text.endswith(b"\n"):
                some = self.end.recv(65536)
                if not some:
                    raise ConnectionResetError("the Spark server has ended")
                text += some
        except TimeoutError as error:
            hangs = f"the Spark server of this user, process {self.server}, does not answer within {ANSWER_WITHIN:g} s"
            raise UnsupportedError(f"{hangs}; mcastlab spark stop ends it") from error
        finally:
            self.end.settimeout(None)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def gateway(self) -> tuple[int, str]:
        """Wait for Spark, become a user of the server, and return port and secret of its Java.

        Raises ConnectionError if the server ends meanwhile, UnsupportedError if Spark does not start there.
        """
        try:
            self.ask(do="status")
            answer = self.ask(do="use")
        except OSError as error:
            self.close()
            raise ConnectionResetError("the Spark server has ended") from error
        if "error" in answer:
            self.close()
            raise UnsupportedError(answer["error"])
        return answer["port"], answer["secret"]

    def tell(self, **request: Any) -> None:
        """Send a request that has no answer."""
        self.end.sendall(json.dumps(request).encode() + b"\n")

    def close(self) -> None:
        """End the connection."""
        self.end.close()


def open_line() -> Line:
    """Connect to the server that fits this process; start it if there is none. Its Spark may still be starting.

    Several processes that do so at once get the same server. Raises UnsupportedError if the server does not start.
    """
    path = address()
    with locked(path.parent):
        line = _connected(path)
        if line is None:
            path.unlink(missing_ok=True)
            line = _started(path)
    return line


def gateway(line: Line | None = None) -> tuple[Line, int, str]:
    """Become a user of a server by this connection, or by a new one; return the connection, port and secret of its Java.

    A server that ends meanwhile, because it was unused or its Spark has stopped, is replaced by another. Raises
    UnsupportedError if Spark does not start.
    """
    for _ in range(ATTEMPTS):
        line = line or open_line()
        try:
            return line, *line.gateway()
        except ConnectionError:
            line = None
    raise UnsupportedError(
        f"the Spark server of this user ends as soon as it has started (see {address().with_suffix('.log')})"
    )


def servers() -> Iterator[Path]:
    """Yield the sockets of all running servers of this user; sockets of dead ones are removed."""
    for path in sorted(folder().glob("spark-*.sock")):
        with locked(path.parent):
            line = _connected(path)
            if line is None:
                path.unlink(missing_ok=True)
                path.with_suffix(".log").unlink(missing_ok=True)
                continue
        line.close()
        yield path


def stop_server(path: Path) -> int | None:
    """End a server with all its processes, whoever uses it; return its process when they are gone, None if there is none.

    One that does not answer, or does not end, is killed.
    """
    line = _connected(path)
    if line is None:
        return None
    server = line.server
    try:
        line.ask(do="stop")
        line.end.settimeout(END_WITHIN)
        # The end of the connection says that the process is about to end.
        while line.end.recv(65536):
            pass
    except (UnsupportedError, TimeoutError):
        # It leads the process group of itself and Java.
        with suppress(OSError):
            os.killpg(server, signal.SIGKILL)
            while line.end.recv(65536):
                pass
    except OSError:
        pass
    line.close()
    with locked(path.parent):
        # Another command may have started the next server.
        if (line := _connected(path)) is not None:
            line.close()
            return server
        for suffix in (".sock", ".log"):
            path.with_suffix(suffix).unlink(missing_ok=True)
    return server


def status_of(path: Path) -> dict[str, Any] | None:
    """Return the status of a server; None if it has gone. UnsupportedError if it does not answer."""
    line = _connected(path)
    if line is None:
        return None
    try:
        return line.ask(do="status")
    except OSError:
        return None
    finally:
        line.close()


def _connected(path: Path) -> Line | None:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.connect(str(path))
    except OSError:
        end.close()
        return None
    return Line(end)


def _started(path: Path) -> Line:
    """Start a server as a process that outlives this one, and connect to it."""
    log = path.with_suffix(".log")
    command = [sys.executable, "-m", "experiments.sweep.run.spark_server", str(path), str(idle_seconds())]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=environment,
            cwd=path.parent,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    until = time.monotonic() + BIND_WITHIN
    while time.monotonic() < until and process.poll() is None:
        line = _connected(path)
        if line is not None:
            # It is not ours to wait for.
            process.returncode = 0
            return line
        time.sleep(0.02)
    process.kill()
    raise UnsupportedError(f"the Spark server of this user does not start (see {log})")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock under which servers start and end: on their folder, so that no file is left behind."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
