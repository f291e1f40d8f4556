"""tshark's NORM dissector, written independently from the RFC, accepts the messages of this project's hosts."""

import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from emu.namespaces import run_isolated
from tests.emu.lab import MCASTLAB, Lab
from topologies.generators import Star

pytestmark = [pytest.mark.emu, pytest.mark.peer("tshark")]

GROUP = ("239.7.7.8", "6003")
SIZE = 300_000


def capture(folder: str) -> None:
    """Send a file over a lossy link, and capture at the receiver's device into `captured.pcapng`."""
    # With loss, hosts segment batches before the first link, so each frame is one message.
    lab = Lab(Star.model_validate({"receivers": 1, "link": {"loss": "10%"}}).build())
    path = Path(folder, "file")
    path.write_bytes(bytes(SIZE))
    device = lab.device("r1")
    shark = lab.start("r1", ["tshark", "-q", "-i", device, "-f", "udp", "-w", f"{folder}/captured.pcapng"])
    lab.await_capture("r1")
    where = ["--group", ":".join(GROUP), "--json"]
    receiver = lab.start("r1", [*MCASTLAB, "recv", *where, "--dir", f"{folder}/got", "--count", "1", "--timeout", "20"])
    lab.await_join("r1", GROUP[0])
    sending = ["send", str(path), *where, "--fec", "129", "--rate", "20Mbit", "--grtt", "20ms", "--robust", "20"]
    assert lab.end(lab.start("sender", [*MCASTLAB, *sending]))[-1]["ok"]
    assert lab.end(receiver)[-1]["ok"]
    shark.terminate()
    shark.wait(20)


def test_every_message_of_a_session_is_well_formed_for_tshark() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_isolated(lambda: capture(folder))
        lines = read(f"{folder}/captured.pcapng")
    kinds = Counter(kind for kind, _ in lines)
    assert all(not malformed for _, malformed in lines)
    # 1 INFO, 2 DATA, 3 CMD, 4 NACK; an ACK (5) answers a probe, and may be missing.
    assert {"1", "2", "3", "4"} <= set(kinds) <= {"1", "2", "3", "4", "5"}
    assert kinds["2"] >= -(-SIZE // 1400)


def read(path: str) -> list[tuple[str, str]]:
    """Return type and malformed flag of every NORM message, from tshark."""
    fields = ["-T", "fields", "-E", "separator=,", "-e", "norm.type", "-e", "_ws.malformed"]
    command = ["tshark", "-r", path, "-d", f"udp.port=={GROUP[1]},norm", *fields]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(line.split(",")[0], line.split(",")[1]) for line in output.splitlines()]
