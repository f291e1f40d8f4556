"""A Spark server that has stopped, hangs, was killed or lost its files: replaced or named, and nothing is left of it."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.sweep.run import spark_servers, spark_session
from experiments.sweep.run.spark_server import remove_abandoned
from experiments.sweep.run.spark_servers import address, gateway, status_of, stop_server
from protocols.errors import UnsupportedError
from tests.experiments.conftest import need_spark
from tests.experiments.sweep.processes import below, command_of
from tests.experiments.sweep.sparkless import Sparkless

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Ready(spark_servers.Line):
    """A connection to a server whose Spark has started."""

    def gateway(self) -> tuple[int, str]:
        return 7, "secret"


def test_a_server_that_ends_before_a_command_uses_it_is_replaced(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended() -> spark_servers.Line:
        near, far = socket.socketpair()
        far.close()
        return spark_servers.Line(near)

    monkeypatch.setattr(spark_servers, "open_line", lambda: Ready(ended().end))
    assert gateway(ended())[1:] == (7, "secret")
    monkeypatch.setattr(spark_servers, "open_line", ended)
    with pytest.raises(UnsupportedError, match="ends as soon as it has started"):
        gateway()


HANGING = """
import socket, sys, time
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(sys.argv[1])
    listening.listen()
    print(flush=True)
    time.sleep(300)
"""


def test_a_server_that_does_not_answer_is_named_and_can_be_stopped(
    private: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark_servers, "ANSWER_WITHIN", 0.2)
    program = [sys.executable, "-c", HANGING, str(address())]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True) as hanging:
        assert hanging.stdout is not None
        hanging.stdout.readline()
        words = f"process {hanging.pid}, does not answer within 0.2 s; mcastlab spark stop ends it"
        with pytest.raises(UnsupportedError, match=words):
            gateway()
        assert invoke(["spark", "status"]) == 3
        assert words in capsys.readouterr().err
        assert invoke(["spark", "stop"]) == 0
        assert capsys.readouterr().out == f"stopped process {hanging.pid}\n"
        assert hanging.wait(10) == -signal.SIGKILL
    assert list(private.iterdir()) == []


STOP_SPARK = """
from experiments.sweep.run.spark_session import session, stop
spark = session()
spark.sparkContext._jsc.sc().stop()
stop(spark)
"""


def test_a_server_whose_spark_has_stopped_itself_is_replaced(own: dict[str, Any]) -> None:
    subprocess.run([sys.executable, "-c", STOP_SPARK], check=True)
    line, _, _ = gateway()
    line.close()
    found = status_of(address())
    assert found is not None
    assert found["pid"] != own["pid"]


def test_a_server_whose_temporary_files_are_removed_is_replaced_and_removes_the_rest(
    own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    java = next(pid for pid in below(own["pid"]) if "java" in command_of(pid))
    option = next(word for word in command_of(java).split() if word.startswith("spark.local.dir="))
    files = Path(option.partition("=")[2])
    for place in files.glob("blockmgr-*"):
        shutil.rmtree(place)
    line, _, _ = gateway()
    line.close()
    found = status_of(address())
    assert found is not None
    assert found["pid"] != own["pid"]
    until = time.monotonic() + 30
    while files.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not files.exists()


def test_a_cleaner_leaves_the_temporary_files_of_a_server_alone(private: Path) -> None:
    server = Sparkless(address())
    place = os.open(server.files, os.O_RDONLY)
    # systemd-tmpfiles takes this lock of every folder before it looks for old files there.
    with pytest.raises(BlockingIOError):
        fcntl.flock(place, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(place)
    server.files.rmdir()


def test_a_server_removes_the_temporary_files_of_killed_ones(tmp_path: Path) -> None:
    killed, new, other = (tmp_path / f"mcastlab-blocks-{name}" for name in ("killed", "new", "other"))
    for path in (killed, new, other):
        (path / "blockmgr-1").mkdir(parents=True)
    used = os.open(other, os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    (tmp_path / "mcastlab-blocks-link").symlink_to(tmp_path / "kept")
    (tmp_path / "kept" / "file").mkdir(parents=True)
    for path in (killed, other, tmp_path / "kept"):
        os.utime(path, (0, 0))
    os.utime(tmp_path / "mcastlab-blocks-link", (0, 0), follow_symlinks=False)
    remove_abandoned(tmp_path)
    os.close(used)
    assert [path.exists() for path in (killed, new, other, tmp_path / "kept" / "file")] == [False, True, True, True]


def test_a_server_does_not_remove_the_socket_of_the_next_one(private: Path) -> None:
    first = Sparkless(address())
    address().unlink()
    second = Sparkless(address())
    first._withdraw()
    assert address().exists()
    second._withdraw()
    assert not address().exists()
    for server in (first, second):
        server.files.rmdir()


def test_a_command_that_stops_a_server_leaves_the_next_one_reachable(private: Path) -> None:
    """The next server starts while the first one ends."""
    path = address()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        stopping = threading.Thread(target=stop_server, args=(path,))
        stopping.start()
        client, _ = listening.accept()
        with client:
            assert b"stop" in client.recv(100)
            path.unlink()
            following = Sparkless(path)
        stopping.join()
    assert path.exists()
    following.files.rmdir()


ENDED = """
from pathlib import Path
from sys import argv
from experiments.sweep.run.spark_session import opened
with opened("local[1]", Path(argv[1])) as spark:
    {ends}
    spark.range(3).toPandas()
"""


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ("spark.sparkContext._jsc.sc().stop()", "its Spark has stopped"),
        ("spark.sparkContext._gateway.proc.kill()", "its Java process has died"),
    ],
)
def test_a_command_whose_spark_ends_says_so_in_one_line(ends: str, reason: str, tmp_path: Path) -> None:
    need_spark()
    program = [sys.executable, "-c", ENDED.format(ends=ends), str(tmp_path / "spark.log")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    _, _, last = done.stderr.splitlines()[-1].partition(": ")
    assert last == f"the Spark session of this command has ended: {reason}; run the command again"


def test_an_error_whose_text_is_in_a_dead_java_process_is_told_as_the_end_of_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    need_spark()
    from py4j.protocol import Py4JError, Py4JNetworkError

    class WithoutText(Py4JError):  # type: ignore[misc]
        def __str__(self) -> str:
            raise Py4JNetworkError("Error while sending or receiving")

    monkeypatch.setattr(spark_session, "session", lambda *_: None)
    monkeypatch.setattr(spark_session, "stop", lambda _: None)
    monkeypatch.setattr(spark_session, "loss_of", lambda *_: "its Java process has died")
    with pytest.raises(UnsupportedError, match="its Java process has died"), spark_session.opened("local[1]", tmp_path):
        raise WithoutText
