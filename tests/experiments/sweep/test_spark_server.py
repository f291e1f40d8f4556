"""The warm Spark server: shared, private, bound to the code of its clients, and gone when nobody uses it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.commands.new import TEMPLATE
from experiments.sweep.run import spark_servers
from experiments.sweep.run.spark_servers import (
    IDLE,
    address,
    folder,
    idle_seconds,
    open_line,
    servers,
    status_of,
)
from experiments.sweep.run.worker_code import CODE, worker_environment
from experiments.sweep.store.datasets import table
from experiments.sweep.store.parts import parts
from protocols.errors import UnsupportedError, UsageError
from tests.experiments.conftest import need_spark
from tests.experiments.sweep.files import BASE, write_sweep
from tests.experiments.sweep.processes import alive, below, command_of
from tests.experiments.sweep.sparkless import Sparkless

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def shared() -> dict[str, Any]:
    """Start the server of the tests if it does not run, and return its status."""
    need_spark()
    assert invoke(["spark", "start", "--json"]) == 0
    found = status_of(address())
    assert found is not None
    return found


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from experiments.cli import main; main()", *map(str, arguments)]


def made(*arguments: object, **environment: str) -> dict[str, Any]:
    """Run a command with --json in a process of its own and return what it printed."""
    done = subprocess.run(
        command(*arguments, "--json"), capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_folder_of_servers_is_closed_to_other_users(private: Path) -> None:
    assert folder() == private
    assert private.stat().st_mode & 0o777 == 0o700
    private.chmod(0o755)
    with pytest.raises(UsageError, match="must belong to this user and be closed to others"):
        folder()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "inf"])
def test_the_idle_time_is_a_positive_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IDLE, text)
    with pytest.raises(UsageError, match=r"MCASTLAB_SPARK_IDLE: value .* is not allowed"):
        idle_seconds()


def test_another_python_pyspark_java_or_namespace_is_another_server(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {address()}
    for name, value in (("JAVA_HOME", "/elsewhere"), ("SPARK_SUBMIT_OPTS", "-Xmx1g")):
        monkeypatch.setenv(name, value)
        found.add(address())
    monkeypatch.setattr(spark_servers, "version", lambda package: "9.9")
    found.add(address())
    # Another mount namespace may have other files below the same names, another network namespace another loopback device.
    monkeypatch.setattr(os, "readlink", lambda path: f"{Path(path).name}:[7]")
    found.add(address())
    assert len(found) == 5
    assert {path.parent for path in found} == {private}


def test_the_socket_of_a_dead_server_is_removed(private: Path) -> None:
    dead = address()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
    assert dead.exists()
    assert list(servers()) == []
    assert list(private.iterdir()) == []


def test_a_server_whose_spark_does_not_start_says_why(private: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_spark()
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho Error: this Java is broken >&2\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(UnsupportedError, match=r"Spark does not start on .*this Java is broken"):
        open_line().gateway()


def test_another_user_is_turned_away(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = address()
    server = Sparkless(path)
    monkeypatch.setattr(os, "getuid", lambda: private.stat().st_uid + 1)
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(str(path))
        # The end of the connection may be noticed by either call.
        with suppress(BrokenPipeError, ConnectionResetError):
            end.sendall(b'{"do": "use"}\n')
            assert end.recv(100) == b""
    server.files.rmdir()


@pytest.mark.serial
def test_commands_share_one_server_and_leave_it_running(shared: dict[str, Any], tmp_path: Path) -> None:
    path = write_sweep(tmp_path, replications=2)
    assert made("sweep", path, "--out", tmp_path / "out")["status"] == {"ok": 2}
    assert made("analyse", tmp_path / "out")["runs"] == 2
    until = time.monotonic() + 60
    while (found := made("spark", "status")["servers"])[0]["clients"] and time.monotonic() < until:
        # The server notices a moment later that a client has gone.
        time.sleep(0.2)
    assert [one["pid"] for one in found] == [shared["pid"]]
    assert found[0]["clients"] == 0
    assert not list((tmp_path / "out").glob(".progress*"))


def test_changed_code_of_a_protocol_is_never_run_by_a_worker_that_imported_the_old(
    shared: dict[str, Any], tmp_path: Path
) -> None:
    module = tmp_path / "code" / "gossiping.py"
    module.parent.mkdir()
    source = TEMPLATE.read_text().replace("@name@", "gossiping")
    module.write_text(source)
    scenario = BASE | {"protocol": {"name": "gossiping", "module": "gossiping", "rate": "10Mbit"}}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"name": "own", "scenario": scenario, "replications": 2}))
    environment = {"PYTHONPATH": os.pathsep.join([str(module.parent), *sys.path])}
    before = made("sweep", path, "--out", tmp_path / "before", **environment)
    assert before["status"] == {"ok": 2}
    edited = source.replace("def start(self, now: float) -> None: ...", "def start(self, now: float) -> None: raise EOFError")
    assert edited != source
    module.write_text(edited)
    subprocess.run(
        command("sweep", path, "--out", tmp_path / "after"), env=os.environ | environment, capture_output=True, check=False
    )
    assert [row["status"] for row in table(tmp_path / "before")] == ["ok", "ok"]
    assert {row["error"].partition(":")[0] for row in table(tmp_path / "after")} == {"EOFError"}
    again = status_of(address())
    assert again is not None
    assert again["pid"] == shared["pid"]


def test_the_digest_of_code_covers_mcastlab_and_imported_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_of_protocol.py").write_text("X = 1\n")
    (tmp_path / "protocol_of_test.py").write_text("import helper_of_protocol\n")
    first = worker_environment()
    monkeypatch.syspath_prepend(tmp_path)
    __import__("protocol_of_test")
    imported = worker_environment()
    assert str(tmp_path) in imported["PYTHONPATH"].split(os.pathsep)
    (tmp_path / "helper_of_protocol.py").write_text("X = 23\n")
    changed = worker_environment()
    assert len({one[CODE] for one in (first, imported, changed)}) == 3


@pytest.fixture
def long_sweep(shared: dict[str, Any], tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", Path, Path]]:
    """Start a sweep of many runs on the shared server; yields the process after its first runs, its file and its folder."""
    path, out = write_sweep(tmp_path, replications=20_000), tmp_path / "out"
    with subprocess.Popen(
        command("sweep", path, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not list(out.glob(".progress*/*")) and process.poll() is None:
            time.sleep(0.05)
        yield process, path, out
        process.kill()


def test_an_interrupt_ends_the_jobs_of_this_sweep_alone(
    shared: dict[str, Any], long_sweep: tuple["subprocess.Popen[str]", Path, Path], tmp_path: Path
) -> None:
    process, path, out = long_sweep
    (tmp_path / "second").mkdir()
    second = write_sweep(tmp_path / "second", replications=30)
    other = threading.Thread(target=made, args=("sweep", second, "--out", tmp_path / "b"))
    other.start()
    while (found := status_of(address())) is not None and found["clients"] < 2 and other.is_alive():
        time.sleep(0.05)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 10.0
    assert f"interrupted; go on with: mcastlab sweep {path} --out {out} --resume" in stdout
    other.join()
    assert len(table(tmp_path / "b")) == 30


def test_the_server_counts_what_waits_for_a_sweep_that_holds_all_cores(
    shared: dict[str, Any], long_sweep: tuple["subprocess.Popen[str]", Path, Path], tmp_path: Path
) -> None:
    # Rows of an earlier sweep would be read at once; those of a folder being filled are there after its first task.
    process, _, out = long_sweep
    while not parts(out) and process.poll() is None:
        time.sleep(0.05)
    asking = threading.Thread(target=made, args=("analyse", out))
    asking.start()
    seen = 0
    while asking.is_alive() and not seen:
        found = status_of(address())
        assert found is not None
        seen = found["waiting"]
        time.sleep(0.05)
    process.kill()
    asking.join()
    assert seen


def test_a_killed_client_leaves_the_server_usable_and_its_jobs_end(
    shared: dict[str, Any], long_sweep: tuple["subprocess.Popen[str]", Path, Path]
) -> None:
    process, path, out = long_sweep
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while (found := status_of(address())) is not None and found["clients"] and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.0)
    made_so_far = len(parts(out))
    time.sleep(2.0)
    assert len(parts(out)) == made_so_far
    done = subprocess.run(
        command("sweep", path, "--out", out, "--resume", "--limit", "3", "--json"), capture_output=True, text=True, check=False
    )
    summary = json.loads(done.stdout)
    assert summary["made"] == 3
    found = status_of(address())
    assert found is not None
    assert found["pid"] == shared["pid"]


@pytest.mark.long
def test_two_clients_at_once_start_one_server_that_ends_when_idle_and_leaves_nothing(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_spark()
    monkeypatch.setenv(IDLE, "1")
    lines: list[Any] = []
    threads = [threading.Thread(target=lambda: lines.append(open_line())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (path,) = servers()
    assert lines[0].ask(do="use").keys() == {"port", "secret"}
    found = status_of(path)
    assert found is not None
    assert found["clients"] == 1
    family = [found["pid"], *below(found["pid"])]
    assert any("java" in command_of(pid) for pid in family)
    for line in lines:
        line.close()
    until = time.monotonic() + 30
    while any(map(alive, family)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, family))
    assert list(private.glob("*.sock")) == []


def test_status_and_stop_without_a_server(private: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["spark", "status"]) == 1
    assert invoke(["spark", "stop"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "no Spark server runs; the first command that needs Spark starts one"
    assert second == "no Spark server runs"
    assert list(private.iterdir()) == []


def test_a_stopped_server_leaves_no_process_and_no_file(private: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_spark()
    line = open_line()
    assert line.ask(do="use").keys() == {"port", "secret"}
    line.close()
    (path,) = servers()
    found = status_of(path)
    assert found is not None
    family = [found["pid"], *below(found["pid"])]
    assert invoke(["spark", "stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stopped": [found["pid"]]}
    assert not any(map(alive, family))
    assert list(private.iterdir()) == []
