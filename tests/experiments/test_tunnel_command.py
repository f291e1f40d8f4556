"""The command `mcastlab tunnel`: what it refuses, and two of them that join two sites, one of which is killed."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.cli import invoke

GOOD = {"--group": "239.7.7.7:6003", "--lan": "lo", "--listen": "127.0.0.1:7411", "--peer": "127.0.0.2:7411"}
SITES = """
name: sites
topology:
  kind: graph
  nodes: {p: {}, t1: {}, l1: {kind: switch}, g: {kind: router}, l2: {kind: switch}, t2: {}, r: {}}
  links: [{ends: [p, l1]}, {ends: [t1, l1]}, {ends: [l1, g]}, {ends: [g, l2]}, {ends: [l2, t2]}, {ends: [l2, r]}]
protocol: {name: fjm2}
workload:
  - {kind: publish, hosts: [p], to: "topic:t", size: 1kB, count: 1, rate: 1/s}
  - {kind: subscribe, hosts: [r], to: "topic:t"}
nodes: {t1: {role: tunnel}, t2: {role: tunnel}}
"""
SHELL = """
t1 {tunnel} h2-eth0 --listen 10.0.0.2:7001 --peer 10.0.0.3:7001 --json > {folder}/t1 2>&1 & echo $! > {folder}/pid
t2 {tunnel} h3-eth0 --listen 10.0.0.3:7001 --peer 10.0.0.2:7001 --json > {folder}/t2 2>&1 &
r {mcastlab} sub prices --group 239.7.7.7:6003 --count 400 --timeout 60 --json > {folder}/r 2>&1 & echo $! > {folder}/rpid
p until [ "$(cat {folder}/t1 {folder}/t2 | grep -c listening)" = 2 ]; do sleep 0.1; done
r until ip maddr show | grep -q 239.7.7.7; do sleep 0.1; done
p (seq 200; until grep -qs listening {folder}/t1.2; do sleep 0.1; done; seq 201 400) | {publish} > {folder}/p 2>&1 &
t1 until [ "$(grep -c message {folder}/r)" -gt 50 ]; do sleep 0.1; done; kill -9 $(cat {folder}/pid)
t1 sleep 1; {tunnel} h2-eth0 --listen 10.0.0.2:7001 --peer 10.0.0.3:7001 --json > {folder}/t1.2 2>&1 &
r for i in $(seq 300); do kill -0 $(cat {folder}/rpid) 2>/dev/null || break; sleep 0.1; done
exit
"""


def arguments(**changed: str | None) -> list[str]:
    """Return the arguments of a good call, but for some; None leaves one out."""
    given = GOOD | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return ["tunnel", *(word for name, value in given.items() if value is not None for word in (name, value))]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ring": "0"}, "--ring: value 0 is not allowed; a whole number from 1"),
        ({"pace": "quick"}, "--pace: value 'quick' is not allowed"),
        ({"hops": "99"}, "--hops: value 99 is not allowed"),
        ({"group": "10.0.0.1:6003"}, "--group: value '10.0.0.1:6003' is not allowed; a multicast address"),
        ({"group": "nothing"}, "--group: "),
        ({"lan": "nowhere0"}, "--lan: value 'nowhere0' is not allowed; a device of this machine: "),
        ({"listen": "127.0.0.1:0"}, "--listen: "),
        ({"peer": "127.0.0.1:7411"}, "--peer: value '127.0.0.1:7411' is not allowed; that is this tunnel itself"),
        ({"peer": "somewhere"}, "--peer: "),
        (
            {"peer": "[::1]:7411"},
            "--peer: value '[::1]:7411' is not allowed; the address of one host, of the IP version of 127",
        ),
        ({"peer": "239.1.1.1:7411"}, "--peer: value '239.1.1.1:7411' is not allowed; the address of one host"),
        ({"peer": None}, "--peer: other tunnels are named by --peer, each, or by a registry with --admin"),
        ({"admin": "http://127.0.0.1:8080"}, "one of the two"),
        ({"peer": None, "admin": "ftp://x"}, "--admin: value 'ftp://x' is not allowed"),
        ({"token_file": "/dev/null"}, "--token-file: is not allowed without --admin"),
        ({"name": "berlin"}, "--name: is not allowed without --admin"),
        ({"peer": None, "admin": "http://127.0.0.1:1", "name": ""}, "--name: value '' is not allowed; 1 to 200 characters"),
        ({"segment": "1421"}, "--segment: value 1421 is not allowed; 1 to 1420"),
        ({"key_file": "/nowhere"}, "--segment: value 1400 is not allowed; 1 to 1396"),
        ({"key_file": "/nowhere", "segment": "1396"}, "key file /nowhere: can't be read"),
        ({"timeout": "-1"}, "--timeout: "),
    ],
)
def test_bad_input_is_one_line(changed: dict[str, str | None], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments(**changed)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_peer_that_is_named_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*arguments(), "--peer", "127.0.0.2:7411"]) == 2
    assert "--peer: value '127.0.0.2:7411' is not allowed; it is named twice" in capsys.readouterr().err


def test_a_registry_that_does_not_answer_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"peer": None, "admin": "http://127.0.0.1:1", "listen": "127.0.0.1:7413", "timeout": "0.6"}
    assert invoke(arguments(**given)) == 0
    told = "the registry at http://127.0.0.1:1 does not answer, and is asked again"
    assert capsys.readouterr().err.splitlines().count(told) == 1


def test_a_port_in_use_is_what_this_machine_can_t_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert invoke(arguments(listen=where, timeout="1")) == 3
    assert f"--listen: can't receive at {where}" in capsys.readouterr().err


def test_an_end_by_time_is_a_success_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    assert invoke([*arguments(listen=where, timeout="0.1"), "--json"]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["event"], first["at"], first["peers"]) == ("listening", where, ["127.0.0.2:7411"])
    assert (last["event"], last["ok"], last["packets_carried"]) == ("summary", True, 0)


@pytest.mark.emu
def test_a_killed_tunnel_that_comes_again_loses_no_message(tmp_path: Path) -> None:
    command = f"{sys.executable} -m mcastlab"
    script = SHELL.format(
        mcastlab=command,
        tunnel=f"{command} tunnel --group 239.7.7.7:6003 --timeout 60 --lan",
        publish=f"{command} pub prices --group 239.7.7.7:6003 --rate 100/s --json",
        folder=tmp_path,
    )
    (tmp_path / "sites.yaml").write_text(SITES)
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = [sys.executable, "-m", "mcastlab", "run", str(tmp_path / "sites.yaml"), "--on", "emu", "--shell"]
    done = subprocess.run(run, input=script, capture_output=True, text=True, timeout=120, env=here, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    summary = lines[-1]
    assert (summary["messages"], summary["lost"]) == (400, 0), summary
