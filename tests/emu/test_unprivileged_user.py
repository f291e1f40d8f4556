"""A user without rights emulates, where the machine lets users make namespaces."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from experiments.captures.datagrams import read_capture
from tests.support.stranger import NOBODY, Stranger, stranger

pytestmark = pytest.mark.emu

SCENARIO = {
    "name": "unprivileged",
    "topology": {"kind": "star", "receivers": 3, "trunk": {"rate": "50Mbit", "queue": 100}, "link": {"down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "8Mbit", "grtt": "20ms", "gsize": 10, "robust": 10},
    "workload": {"kind": "file", "size": "800kB"},
    "faults": [
        {"at": "200ms", "partition": [["r1"], "rest"], "for": "100ms"},
        {"at": "400ms", "flap": ["s1", "r2"], "for": "50ms"},
        {"at": "400ms", "slow": "r3", "takes": "2ms", "room": 9, "for": "100ms"},
    ],
    "capture": ["sender"],
    "duration": "30s",
}
RUN = "import sys; from experiments.cli import main; sys.argv = ['mcastlab', *sys.argv[1:]]; main()"


def namespaces_for_users() -> bool:
    """May users without rights make namespaces here?"""
    command = ["unshare", "-U", "-r", "-n", "-m", "-p", "-f", "true"]
    return subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def somebody() -> Iterator[Stranger]:
    """A user of this machine, where users may emulate."""
    if os.geteuid() != 0:
        pytest.skip("all other tests here run without rights already")
    if not namespaces_for_users():
        pytest.skip("this machine lets no users make namespaces: sudo sysctl user.max_user_namespaces=10000")
    with stranger() as made:
        (made.home / "own" / "scenario.json").write_text(json.dumps(SCENARIO))
        yield made


def test_a_whole_run_with_rates_losses_faults_and_captures_needs_no_rights(somebody: Stranger) -> None:
    done = somebody.run("-c", RUN, "run", "scenario.json", "--on", "emu", "--out", "seen", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["completed"]
    assert {item.get("loss_by") for item in told["metrics"]["impairments"]} == {"cbpf", None}
    assert {key: told["metrics"]["injected"][key] for key in ("partition", "flap", "slow")} == {
        "partition": 1,
        "flap": 1,
        "slow": 1,
    }
    folder = somebody.home / "own" / "seen"
    assert (folder / "result.json").stat().st_uid == NOBODY
    assert len(list(read_capture(folder / "captures" / "sender.pcapng"))) > 500


def test_the_doctor_names_what_only_root_may_do(somebody: Stranger) -> None:
    done = somebody.run("-c", RUN, "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    there = {row["name"]: row["present"] for row in json.loads(done.stdout)["findings"]}
    assert all(there[name] for name in ("tc", "namespaces", "rate", "loss", "mroute"))
    assert not any(there[name] for name in ("root", "tap", "SCHED_FIFO"))


def test_what_only_root_may_do_is_refused_in_one_line(somebody: Stranger) -> None:
    done = somebody.run(
        "-c", RUN, "run", "scenario.json", "--on", "emu", "--out", "refused", "--set", "topology.link.delay=5ms"
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "delay" in done.stderr
