"""The NORM under FJM2 is NORM: libnorm1 receives each message as a DATA object, and tshark finds nothing malformed."""

import sys
import tempfile
from collections import Counter
from typing import Any

import pytest

from emu.namespaces import run_isolated
from tests.emu.lab import NRL, Lab
from tests.emu.test_interop_tshark import read
from topologies.generators import Star

pytestmark = [pytest.mark.emu, pytest.mark.peer]

ADDRESS, PORT, COUNT = "239.7.7.9", 6003, 60
DATA = 1
"""NORM_OBJECT_DATA of libnorm1."""


def exchange(loss: float, folder: str, *, captures: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Publish messages with fec 129 to a receiver of libnorm1; return what publisher and receiver report."""
    lab = Lab(Star.model_validate({"receivers": 1, "link": {"loss": loss}}).build())
    device = lab.device("r1")
    if captures:
        shark = lab.start("r1", ["tshark", "-q", "-i", device, "-f", "udp", "-w", f"{folder}/captured.pcapng"])
        lab.await_capture("r1")
    there = ["--addr", ADDRESS, "--port", str(PORT), "--iface", device, "--node", "3", "--expect", str(COUNT)]
    receiver = lab.start("r1", [*NRL, "recv", *there, "--timeout", "30"])
    lab.await_join("r1", ADDRESS)
    node = [sys.executable, "-m", "tests.emu.fjm2_node", "--iface", lab.device("sender")]
    told = lab.end(lab.start("sender", [*node, "--group", f"{ADDRESS}:{PORT}", "--count", str(COUNT)]))
    got = lab.end(receiver)
    if captures:
        shark.terminate()
        shark.wait(20)
    return told, got


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_libnorm1_receives_messages_as_data_objects_byte_for_byte(loss: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told, got = run_isolated(lambda: exchange(loss, folder, captures=False))
    sent = {row["sha256"]: row["size"] for row in told if "sha256" in row}
    received = [row for row in got if row["event"] == "RX_OBJECT_COMPLETED"]
    assert {row["sha256"]: row["size"] for row in received} == sent
    assert len(received) == len(sent) == COUNT
    assert {row["type"] for row in received} == {DATA}
    counts = told[-1]["counts"]
    assert (counts["nacks_received"] > 0) == (counts["repairs_sent"] > 0) == (loss > 0)


@pytest.mark.peer("tshark")
def test_tshark_finds_nothing_malformed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told, _ = run_isolated(lambda: exchange(0.1, folder, captures=True))
        lines = read(f"{folder}/captured.pcapng")
    kinds = Counter(kind for kind, _ in lines)
    assert all(not malformed for _, malformed in lines)
    assert {"2", "3", "4"} <= set(kinds) <= {"2", "3", "4", "5"}
    assert kinds["2"] >= 0.8 * sum(-(-row["size"] // 1400) for row in told if "sha256" in row)
