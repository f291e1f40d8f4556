"""What `send` and `recv` print of a transfer over the loopback device: a golden file, with times replaced."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.golden import check_golden
from tests.support.transfers import members

pytestmark = [pytest.mark.emu, pytest.mark.timed]

COMMAND = (sys.executable, "-c", "from experiments.cli import main; main()")


def transfer(folder: Path, *options: str) -> str:
    """Send a file to a receiver, both with these options; return what they print, with times replaced."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        group = f"239.255.77.2:{probe.getsockname()[1]}"
    session = ("--group", group, "--iface", "127.0.0.1", *options)
    (folder / "photo.bin").write_bytes(bytes(range(250)) * 240)
    received = (*COMMAND, "recv", "--dir", str(folder / "received"), "--count", "1", "--timeout", "30", *session)
    with subprocess.Popen(received, stdout=subprocess.PIPE, text=True) as receiver:
        while not members(group):
            assert receiver.poll() is None
            time.sleep(0.01)
        sent = (*COMMAND, "send", str(folder / "photo.bin"), "--rate", "50Mbit", "--grtt", "10ms", *session)
        sender = subprocess.run(sent, capture_output=True, text=True, check=True, timeout=30)
        out, _ = receiver.communicate(timeout=30)
    assert receiver.returncode == 0
    text = re.sub(r"[\d.]+(?= Mbit/s| NACKs| repairs)|(?<= in )[\d.]+m?s", "#", f"$ recv\n{out}$ send\n{sender.stdout}")
    # The receiver may end before it has answered a probe.
    return text.replace("; no receiver answered", "")


def test_a_transfer_prints_the_files_and_a_summary(tmp_path: Path) -> None:
    check_golden("transfer", transfer(tmp_path))


def test_with_brief_a_transfer_prints_the_summaries_alone(tmp_path: Path) -> None:
    _, received, _, sent = transfer(tmp_path, "--brief").splitlines()
    assert received.startswith("received 1 of 1 file, 60kB in #")
    assert sent.startswith("sent, reception not confirmed: 1 file, 60kB in #")
