"""Sweeps on clusters, and sweeps that are killed, give the same rows as an undisturbed sweep on one machine."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from experiments.sweep.store.datasets import table
from experiments.sweep.store.parts import parts
from tests.experiments.conftest import need_spark
from tests.experiments.sweep.files import write_sweep
from tests.experiments.sweep.processes import alive, below, command_of
from tests.experiments.sweep.test_driver import command, comparable

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

KEYS: dict[str, Any] = {
    "set": {"workload.size": "300kB", "topology.receivers": 40},
    "axes": {"loss": {"key": "topology.link.down.loss", "values": ["1%", "5%", "10%"]}},
    "cases": {"arq": {"protocol.parity": 0}, "fec": {"protocol.parity": 16}},
    "replications": 80,
}
RUNS = 480


def sweep(path: Path, out: Path, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        command("sweep", path, "--out", out, "--json", *more),
        capture_output=True,
        text=True,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0, done.stdout
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the sweep file, and the rows of an undisturbed sweep."""
    need_spark()
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_sweep(folder, **KEYS)
    assert sweep(path, folder / "out", "--master", "local[2]")["status"] == {"ok": RUNS}
    return path, comparable(folder / "out")


def test_a_cluster_of_processes_gives_the_same_rows(undisturbed: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, rows = undisturbed
    sweep(path, tmp_path / "out", "--master", "local-cluster[2,1,1024]")
    assert comparable(tmp_path / "out") == rows


@contextmanager
def standalone(log: Path) -> Iterator[str]:
    """Start a master with two workers on loopback; yields its address."""
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    deploy, master = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for number in range(2):
        place = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(log.parent / f"work{number}")]
        commands.append([f"{deploy}.worker.Worker", *place, "--cores", "1", "--memory", "1g", master])
    started = []
    try:
        with log.open("w") as file:
            for arguments in commands:
                environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
                started.append(subprocess.Popen([spark_class, *arguments], stdout=file, stderr=file, env=environment))
        while log.read_text().count("Registering worker") < 2:
            assert all(process.poll() is None for process in started), log.read_text()[-2000:]
            time.sleep(0.2)
        yield master
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_standalone_cluster_gives_the_same_rows(undisturbed: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, rows = undisturbed
    with standalone(tmp_path / "cluster.log") as master:
        sweep(path, tmp_path / "out", "--master", master)
    assert comparable(tmp_path / "out") == rows


def process_to_kill(kind: str, driver: int) -> int:
    """Return the process to kill; 0 if there is none."""
    if kind == "driver":
        return driver
    found = below(driver)
    if kind == "java":
        return next((pid for pid in found if "java" in command_of(pid)), 0)
    daemons = [pid for pid in found if "worker_daemon" in command_of(pid)]
    workers = [pid for pid in below(daemons[0]) if pid in found] if daemons else []
    return workers[0] if workers else 0


def test_a_sweep_killed_at_random_times_and_resumed_gives_the_same_rows(
    undisturbed: tuple[Path, list[str]], tmp_path: Path
) -> None:
    path, rows = undisturbed
    out, rng = tmp_path / "out", random.Random(os.environ.get("MCASTLAB_KILLS", "1"))
    kills = [("driver", 9), ("java", 9), ("worker", 9), ("driver", signal.SIGINT), ("driver", 9), ("java", 9)]
    for kind, number in kills:
        before = len(parts(out))
        process = subprocess.Popen(
            command("sweep", path, "--out", out, "--resume", "--master", "local[2]"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while len(parts(out)) == before and process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.random() * 0.5)
        family = below(process.pid)
        # The process may have ended by itself in the meantime.
        with suppress(ProcessLookupError):
            os.kill(process_to_kill(kind, process.pid) or process.pid, number)
        _, stderr = process.communicate()
        assert "Traceback" not in stderr, stderr
        if kind == "java" and process.returncode:
            assert process.returncode == 1
            assert "(--resume runs the others): its Java process has died" in stderr
        deadline = time.monotonic() + 30
        while any(map(alive, family)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(alive, family)), f"after the {kind} was killed these go on: {[*map(command_of, family)]}"
    kept = len(table(out))
    assert kept > 0
    summary = sweep(path, out, "--resume")
    assert (summary["made"], summary["unreadable"]) == (RUNS - kept, 0)
    assert comparable(out) == rows
    assert sum(count(path) for path in parts(out)) == RUNS


def count(path: Path) -> int:
    from pyarrow import parquet

    found: int = parquet.ParquetFile(path).metadata.num_rows
    return found


def test_the_packages_sent_to_workers_are_sufficient(tmp_path: Path) -> None:
    from experiments.sweep.run.deployment import archive

    path = archive(tmp_path)
    site = next(entry for entry in sys.path if entry.endswith("site-packages"))
    # -S: without the .pth file that makes the checkout importable.
    source = f"import sys; sys.path[:0] = [{str(path)!r}]; sys.path.append({site!r}); import experiments.sweep.run.task as t, "
    source += "experiments.sweep.run.single_run; print(t.__file__)"
    done = subprocess.run([sys.executable, "-S", "-c", source], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stderr, done.stdout.strip()) == ("", f"{path}/experiments/sweep/run/task.py")
