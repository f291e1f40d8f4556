"""A user enters the hosts of an emulation: by the prompt of --shell, and by `mcastlab attach` from another terminal."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.cli import invoke
from tests.emu.lab import MCASTLAB
from tests.emu.test_namespaces import descendants
from tests.support.terminal import terminal

SCENARIO = {
    "name": "small",
    "topology": {"kind": "lan", "receivers": 2},
    "protocol": {"name": "norm", "rate": "8Mbit", "grtt": "20ms", "robust": 5},
    "workload": {"size": "50kB"},
}
RUN = [*MCASTLAB, "run", "small.yaml", "--on", "emu", "--brief"]
SOCKETS = Path("/proc/net/unix")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a scenario in it, whose name fits into the prompt of a shell on a line."""
    with tempfile.TemporaryDirectory() as path:
        Path(path, "small.yaml").write_text(json.dumps(SCENARIO))
        yield Path(path)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds, at most some seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.emu
def test_the_prompt_has_shells_on_hosts_before_and_after_the_session(folder: Path) -> None:
    with terminal([*RUN, "--shell"], folder) as user:
        assert "small is up, its session is not started" in user.expect("mcastlab> ")
        user.type("hosts\n")
        assert "sender  10.0.0.1" in user.expect("mcastlab> ")
        user.type("r1\n")
        assert "job control" not in user.expect("r1:")
        user.type("ip -br addr\n")
        assert "10.0.0.2" in user.expect("r1:")
        # The command itself says that it runs: Ctrl-C between two commands of a line can end bash.
        user.type("sh -c 'echo be\"\"gun; sleep 1000'\n")
        user.expect("begun")
        # Ctrl-C is for the command on the host alone.
        user.insist("\x03", "r1:")
        user.type("exit\n")
        user.expect("mcastlab> ")
        user.insist("\x03", "mcastlab> ")
        user.type("start\n")
        user.expect("the session runs")
        user.type("wait\n")
        user.expect("the session is over")
        user.type("r2 ping -c1 -W2 sender\n")
        user.expect("1 received")
        user.expect("mcastlab> ")
        user.type("exit\n")
        code, text = user.end()
    assert code == 0
    assert "2 of 2 complete" in text


@pytest.mark.emu
def test_commands_for_the_prompt_may_come_from_a_file(folder: Path) -> None:
    text = "moon\ns1 ip -br link\nr1 echo $((6 * 7)) | tr 4 5\nr1 exit 3\nwait\n"
    done = subprocess.run([*RUN, "--shell"], cwd=folder, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "moon: no command and no host" in done.stderr
    assert "the session is not started; start starts it" in done.stderr
    assert done.stderr.splitlines()[-1] == "the session was not started, so there is no result"
    assert "s1-eth1" in done.stdout
    assert "52" in done.stdout.split()


@pytest.mark.emu
def test_hosts_of_any_name_have_addresses_and_folders_of_their_own(folder: Path) -> None:
    links = [{"ends": ["s", host]} for host in ("sender", "a", "lab a", "..", "10.0.0.0/8")]
    nodes: dict[str, dict[str, str]] = {name: {} for name in ("s", "sender", "a", "lab a", "..", "10.0.0.0/8")}
    scenario = {**SCENARIO, "topology": {"kind": "graph", "nodes": nodes, "links": links}}
    (folder / "small.yaml").write_text(json.dumps(scenario))
    script = b"a getent ahostsv4 a\na getent hosts lab\nstart\nwait\n"
    run = subprocess.run(
        [*RUN, "--shell", "--out", "out", "--capture", "hosts"], cwd=folder, input=script, capture_output=True, check=True
    )
    output = run.stdout.decode()
    assert "4 of 4 complete" in output
    assert re.findall(r"^([0-9.]+) +STREAM", output, re.M) == ["10.0.0.2"]
    assert "lab" not in output
    captures = sorted(path.name for path in (folder / "out" / "captures").iterdir())
    assert captures == ["%2E..pcapng", "10.0.0.0%2F8.pcapng", "a.pcapng", "lab a.pcapng", "sender.pcapng"]


@pytest.mark.emu
def test_a_kept_network_can_be_entered_from_elsewhere_until_its_end(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with terminal([*RUN, "--keep"], folder) as user:
        user.expect("small is over and its network is up")
        assert invoke(["attach", "--json"]) == 0
        (listed,) = [item for item in json.loads(capfd.readouterr().out) if item["run"] == user.pid]
        assert listed["hosts"] == {"sender": "10.0.0.1", "r1": "10.0.0.2", "r2": "10.0.0.3", "s1": ""}
        one = ["--run", str(user.pid)]
        assert invoke(["attach", "r1", *one, "--", "ping", "-c1", "-W2", "r2"]) == 0
        assert "1 received" in capfd.readouterr().out
        assert invoke(["attach", "r1", *one, "--", "sh", "-c", "exit 7"]) == 7
        assert invoke(["attach", "r9", *one]) == 2
        assert capfd.readouterr().err == "mcastlab: HOST: value 'r9' is not allowed; small has sender, r1, r2, s1\n"
        user.type("\x04")
        code, text = user.end()
    assert code == 0
    assert "2 of 2 complete" in text
    assert invoke(["attach", "r1", *one]) == 2


@pytest.mark.emu
def test_an_attached_shell_ends_with_a_run_that_is_killed_and_nothing_stays(folder: Path) -> None:
    with terminal([*RUN, "--keep"], folder) as run:
        run.expect("network is up")
        inside = descendants(run.pid)
        with terminal([*MCASTLAB, "attach", "r1", "--run", str(run.pid)], folder) as user:
            user.expect("r1:")
            user.type("sleep 1000 &\n")
            user.expect("r1:")
            shell = descendants(user.pid)
            os.kill(run.pid, signal.SIGKILL)
            assert user.end()[0] == 128 + signal.SIGKILL
        assert run.end()[0] == -signal.SIGKILL
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in [*inside, *shell]))
    assert f"mcastlab/{os.geteuid()}/{run.pid}/" not in SOCKETS.read_text()


@pytest.mark.emu
def test_of_several_emulations_one_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with terminal([*RUN, "--keep"], folder) as first, terminal([*RUN, "--keep"], folder) as second:
        for user in (first, second):
            user.expect("network is up")
        assert invoke(["attach", "r1", "--", "true"]) == 2
        err = capfd.readouterr().err
        assert "--run: is missing; several emulations run" in err
        for user in (first, second):
            assert f"{user.pid} (small)" in err
            assert invoke(["attach", "r1", "--run", str(user.pid), "--", "true"]) == 0
            user.type("\x03")
            assert user.end()[0] == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--shell"], "--shell: only Mininet has hosts to enter; use it with --on emu"),
        (["--keep"], "--keep: only Mininet has hosts to enter; use it with --on emu"),
        (["--on", "emu", "--shell", "--json"], "--shell: is a conversation; leave out --live and --json"),
        (["--on", "emu", "--shell", "--live"], "--shell: is a conversation; leave out --live and --json"),
    ],
)
def test_hosts_to_enter_need_mininet(options: list[str], line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", str(folder / "small.yaml"), *options]) == 2
    assert capsys.readouterr().err == f"mcastlab: {line}\n"


def test_attach_says_that_nothing_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("experiments.commands.attach.running_emulations", list)
    assert invoke(["attach"]) == 1
    assert invoke(["attach", "r1"]) == 2
    out, err = capsys.readouterr()
    assert out == "no emulation of yours runs\n"
    assert err == "mcastlab: no emulation of yours runs; start one: mcastlab run SCENARIO --on emu --keep\n"
