"""`scripts/uml/run`: a command under a kernel with netem and 802.1Q, whatever this machine's kernel has."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "scripts" / "uml" / "run"
pytestmark = pytest.mark.peer("linux.uml")


def under(command: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell command under the user-mode kernel."""
    return subprocess.run([RUN, "sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)


def test_the_kernel_has_what_this_one_may_lack_and_the_exit_status_comes_back() -> None:
    told = under("tc qdisc add dev lo root netem delay 10ms loss 1% && tc qdisc show dev lo && exit 7")
    assert "netem" in told.stdout
    assert "loss 1%" in told.stdout
    assert told.returncode == 7


def test_what_a_command_writes_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("here\n")
    told = under(f"cat {tmp_path}/seen && echo gone > {tmp_path}/written && cat {tmp_path}/written")
    assert told.stdout.split()[:2] == ["here", "gone"]
    assert not (tmp_path / "written").exists()


def pytest_under(*words: str) -> str:
    """What pytest, told these words, says of our tests under the user-mode kernel; none of them failed."""
    told = subprocess.run(
        [RUN, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=RUN.parents[2],
        timeout=390,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_links_by_netem_and_networks_on_one_cable_are_what_they_promise() -> None:
    # Some of each, since everything takes long there; make test-netem has all.
    chosen = "left_to_netem or bursts or comes_near or (vlan and every_frame)"
    said = pytest_under("tests/emu/test_netem.py", "tests/emu/test_trunks.py", "-k", chosen)
    assert re.search(r"^7 passed", said, re.MULTILINE), said
