"""A user without root runs emulations, where the machine lets users make namespaces."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu.udp import BUFFERS
from experiments.captures.datagrams import read_capture
from tests.support.unprivileged import NOBODY, UnprivilegedUser, unprivileged_python

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
    """Whether users without root may make namespaces on this machine."""
    command = ["unshare", "-U", "-r", "-n", "-m", "-p", "-f", "true"]
    return subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def unprivileged_user() -> Iterator[UnprivilegedUser]:
    """Return a user of this machine without root, where users may emulate."""
    if os.geteuid() != 0:
        pytest.skip("all other tests run without root already")
    if not namespaces_for_users():
        pytest.skip("this machine lets no users make namespaces: sudo sysctl user.max_user_namespaces=10000")
    with unprivileged_python() as made:
        (made.home / "own" / "scenario.json").write_text(json.dumps(SCENARIO))
        yield made


def test_a_run_with_rates_losses_faults_and_captures_needs_no_root(unprivileged_user: UnprivilegedUser) -> None:
    done = unprivileged_user.run("-c", RUN, "run", "scenario.json", "--on", "emu", "--out", "seen", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["completed"]
    assert {item.get("loss_by") for item in result["metrics"]["impairments"]} == {"cbpf", None}
    assert {key: result["metrics"]["injected"][key] for key in ("partition", "flap", "slow")} == {
        "partition": 1,
        "flap": 1,
        "slow": 1,
    }
    folder = unprivileged_user.home / "own" / "seen"
    assert (folder / "result.json").stat().st_uid == NOBODY
    assert len(list(read_capture(folder / "captures" / "sender.pcapng"))) > 500


def test_hosts_can_be_entered_without_root(unprivileged_user: UnprivilegedUser) -> None:
    typed = "import os; r, w = os.pipe(); os.write(w, b'r1 ping -c5 -i0.2 -W2 sender; id -u'); os.close(w); os.dup2(r, 0); "
    done = unprivileged_user.run("-c", typed + RUN, "run", "scenario.json", "--on", "emu", "--shell", "--set", "capture=[]")
    assert done.returncode == 0, done.stderr
    # The link loses 5 % of the packets.
    assert re.search(r"[1-5] received", done.stdout)
    assert done.stdout.splitlines()[-1] == "0"


def test_doctor_lists_what_needs_root(unprivileged_user: UnprivilegedUser) -> None:
    done = unprivileged_user.run("-c", RUN, "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    present = {row["name"]: row["present"] for row in json.loads(done.stdout)["findings"]}
    assert all(present[name] for name in ("tc", "namespaces", "rate", "loss", "mroute"))
    assert not any(present[name] for name in ("root", "tap", "SCHED_FIFO"))
    limits = [int(Path(f"/proc/sys/net/core/{name}_max").read_text()) for name in ("rmem", "wmem")]
    assert present["buffers"] == (min(limits) >= BUFFERS)


def test_a_run_that_needs_root_is_refused_in_one_line(unprivileged_user: UnprivilegedUser) -> None:
    done = unprivileged_user.run(
        "-c", RUN, "run", "scenario.json", "--on", "emu", "--out", "refused", "--set", "topology.link.delay=5ms"
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "delay" in done.stderr
