"""A capture made on a Mininet host is inspected: the counts agree with the counters of sender and receivers."""

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from experiments.inspection.inspection import inspect_capture
from tests.emu.lab import MCASTLAB, Lab
from topologies.generators import Star

pytestmark = [pytest.mark.emu, pytest.mark.peer("tshark")]

GROUP = ("239.7.7.9", "6003")
SIZE = 400_000
RECEIVERS = ("r1", "r2", "r3")


def session(folder: str) -> list[dict[str, Any]]:
    """Send a file to three lossy receivers, captured at the sender and at r1; return the final counters of the four hosts."""
    lab = Lab(Star.model_validate({"receivers": 3, "link": {"down": {"loss": "5%"}}}).build())
    path = Path(folder, "file")
    path.write_bytes(bytes(SIZE))
    sharks = []
    for host in ("sender", "r1"):
        command = ["tshark", "-q", "-i", lab.device(host), "-f", "udp", "-w", f"{folder}/{host}.pcapng"]
        sharks.append(lab.start(host, command))
        lab.await_capture(host)
    where = ["--group", ":".join(GROUP), "--json"]
    receivers = []
    for number, host in enumerate(RECEIVERS, 2):
        taking = ["--dir", f"{folder}/{host}", "--count", "1", "--timeout", "20", "--node", str(number)]
        receivers.append(lab.start(host, [*MCASTLAB, "recv", *where, *taking]))
        lab.await_join(host, GROUP[0])
    sending = ["send", str(path), *where, "--rate", "20Mbit", "--grtt", "20ms", "--node", "1", "--robust", "5"]
    summaries = [lab.end(lab.start("sender", [*MCASTLAB, *sending]))[-1]]
    summaries += [lab.end(receiver)[-1] for receiver in receivers]
    # The kernel hands on what was captured in blocks, a tenth of a second late.
    time.sleep(0.5)
    for shark in sharks:
        shark.terminate()
        shark.wait(20)
    return summaries


def test_the_counts_of_a_captured_session_agree_with_its_hosts() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sender, *receivers = run_isolated(lambda: session(folder))
        at_sender, at_receiver = (inspect_capture(Path(folder, f"{host}.pcapng")).plain() for host in ("sender", "r1"))
    assert all(each["ok"] for each in (sender, *receivers))
    [seen] = at_sender["senders"]
    assert at_sender["violations"] == []
    assert (seen["missing"], seen["objects"][0]["complete"]) == (0, True)
    assert seen["repairs"]["unneeded"] == seen["repairs"]["open"] == 0
    assert seen["repairs"]["packets"] == seen["repairs"]["flagged"] == sender["repairs"]
    assert sum(row["nacks"] for row in at_sender["receivers"]) == sender["nacks_received"]
    assert at_receiver["violations"] == []
    # The kernel drops packets after the point where a capture on the host records them.
    assert at_receiver["messages"] == at_sender["messages"]
    assert at_receiver["senders"][0]["missing"] == 0
