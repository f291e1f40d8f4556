"""`scripts/uml/run` runs a command under a kernel with netem and 802.1Q, whatever this machine's kernel has."""

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


def test_the_user_mode_kernel_has_netem_and_the_exit_status_is_returned() -> None:
    completed = under("tc qdisc add dev lo root netem delay 10ms loss 1% && tc qdisc show dev lo && exit 7")
    assert "netem" in completed.stdout
    assert "loss 1%" in completed.stdout
    assert completed.returncode == 7


def test_files_written_by_a_command_are_discarded(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("here\n")
    completed = under(f"cat {tmp_path}/seen && echo gone > {tmp_path}/written && cat {tmp_path}/written")
    assert completed.stdout.split()[:2] == ["here", "gone"]
    assert not (tmp_path / "written").exists()


def pytest_under(*arguments: str) -> str:
    """Run pytest under the user-mode kernel and return its output; asserts that no test failed."""
    completed = subprocess.run(
        [RUN, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=RUN.parents[2],
        timeout=390,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_netem_links_and_vlan_trunks_work() -> None:
    # A selection, because the user-mode kernel is slow; make test-netem runs all.
    chosen = "left_to_netem or approximates or (vlan and on_the_trunk)"
    output = pytest_under("tests/emu/test_netem.py", "tests/emu/test_trunks.py", "-k", chosen)
    assert re.search(r"^8 passed", output, re.MULTILINE), output
