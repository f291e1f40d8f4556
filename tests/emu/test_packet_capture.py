"""Captures of emulated links and nodes have every packet once, with its direction and the time of the run."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from emu.launch import emulate
from emu.packet_capture import CapturePoint
from experiments.captures.capture_file import CaptureFile
from experiments.captures.datagrams import read_capture
from experiments.cli import invoke
from experiments.running.recording import Recording
from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UnsupportedError, UsageError
from protocols.norm.wire.codec import NormCodec
from tests.emu.number_protocol import PORT, NumberCodec, ReceivingProgram
from tests.sim.stored import ROOT
from topologies.generators import Star

SCENARIO: dict[str, Any] = {
    "name": "captured",
    "topology": {"kind": "star", "receivers": 2, "link": {"down": {"loss": "10%"}}},
    "protocol": {"name": "norm", "rate": "20Mbit", "grtt": "20ms", "gsize": 10, "robust": 10},
    "workload": {"kind": "file", "size": "300kB"},
    "capture": ["s1-r1", "sender", "s1"],
    "duration": "20s",
}


def play(folder: Path, **changes: Any) -> Result:
    """Run the scenario in Mininet, with captures in the folder."""
    scenario = parse(SCENARIO | changes, "FILE")
    return run(scenario, "emu", Recording.of(scenario, folder))


def kinds(path: Path) -> Counter[str]:
    """Count the NORM messages in a capture by sender and kind."""
    return Counter(f"{packet.source} {NormCodec().decode(packet.payload).kind}" for packet in read_capture(path))


@pytest.mark.emu
def test_a_capture_has_every_packet_sent_and_the_result_counts_them(tmp_path: Path) -> None:
    result = play(tmp_path)
    assert result.completed, result
    packets = result.metrics["packets"]
    seen = kinds(tmp_path / "captures" / "sender.pcapng")
    assert seen["10.0.0.1 data"] == packets["data"]
    assert seen["10.0.0.2 nack"] + seen["10.0.0.3 nack"] == packets["nack"] > 0
    # A link is captured where packets enter it, before its losses.
    link = kinds(tmp_path / "captures" / "s1-r1.pcapng")
    assert link["10.0.0.1 data"] == packets["data"]
    assert link["10.0.0.2 nack"] == result.receivers[0].nacks_sent
    # The switch has one interface for each link: a packet of the sender comes in once and goes out twice.
    assert kinds(tmp_path / "captures" / "s1.pcapng")["10.0.0.1 data"] == 3 * packets["data"]
    assert set(result.metrics["captures"]) == {"s1-r1", "sender", "s1"}
    assert all(row["packets"] > 0 == row["unseen"] for row in result.metrics["captures"].values())


@pytest.mark.emu
@pytest.mark.peer("tshark")
def test_captures_have_correct_times_directions_interfaces_and_checksums(tmp_path: Path) -> None:
    result = play(tmp_path)
    fields = ["frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "ip.src", "udp.checksum.status"]
    rows = []
    for name in ("s1-r1", "s1"):
        command = ["tshark", "-r", str(tmp_path / "captures" / f"{name}.pcapng"), "-o", "udp.check_checksum:TRUE", "-Y", "udp"]
        text = subprocess.run(
            [*command, "-T", "fields", *(word for field in fields for word in ("-e", field))],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows.append([line.split("\t") for line in text.splitlines()])
    link, switch = rows
    assert {row[1] for row in link} == {"s1-r1"}
    assert {row[1] for row in switch} == {"s1-sender", "s1-r1", "s1-r2"}
    assert {(row[3], int(row[2], 16)) for row in link if row[3] != "10.0.0.3"} == {("10.0.0.1", 2), ("10.0.0.2", 1)}
    assert {row[4] for row in link + switch} == {"1"}
    times = [float(row[0]) for row in switch]
    assert times == sorted(times)
    assert 0 <= times[0] < 0.5 < times[-1] < result.metrics["duration"] + 0.1


@pytest.mark.emu
def test_the_run_command_writes_captures_of_an_emulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps({key: value for key, value in SCENARIO.items() if key != "capture"}))
    assert invoke(["run", str(file), "--on", "emu", "--out", str(tmp_path), "--capture", "r2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["metrics"]["captures"]["r2"]["packets"] > 200
    assert kinds(tmp_path / "captures" / "r2.pcapng")["10.0.0.1 data"] > 200


@pytest.mark.parametrize(("key", "value"), [("trace", True), ("series", "100ms")])
def test_traces_and_series_are_refused(key: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=rf"^{key}: only the simulator"):
        play(tmp_path, **{key: value})


def test_an_unknown_capture_point_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="capture: 'r9' is no host"):
        play(tmp_path, capture=["r9"])


FULL_DISK = """
mount -t tmpfs -o size=200k none "$1"
"$2" -m mcastlab run "$3" --on emu --out "$1" --capture sender --capture r2 --json > "$4/result.json" 2> "$4/errors"
echo $? > "$4/code"
cp "$1"/captures/*.pcapng "$4"
"""


@pytest.mark.emu
def test_a_full_disk_costs_the_rest_of_the_captures_but_not_the_result(tmp_path: Path) -> None:
    disk, file = tmp_path / "disk", tmp_path / "scenario.yaml"
    disk.mkdir()
    file.write_text(json.dumps({key: value for key, value in SCENARIO.items() if key != "capture"}))
    script = ["unshare", "--mount", "sh", "-uc", FULL_DISK, "sh"]
    subprocess.run([*script, disk, sys.executable, file, tmp_path], cwd=ROOT, check=True)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["metrics"]["receivers_complete"] == 2
    captures = result["metrics"]["captures"]
    assert all(row["unwritten"] > 0 for row in captures.values())
    for name, row in captures.items():
        # IGMP of the kernel, which comes when it likes, is among them.
        assert sum(1 for _ in CaptureFile(tmp_path / f"{name}.pcapng").frames()) == row["packets"] > 10
    *warnings, error = (tmp_path / "errors").read_text().splitlines()
    assert [line.rpartition(": ")[0] for line in warnings] == [
        f"warning: capture {name}: the disk is full" for name in ("sender", "r2")
    ]
    assert error == f"mcastlab: {disk}: No space left on device"
    assert (tmp_path / "code").read_text() == "2\n"


@pytest.mark.emu
def test_a_disk_without_room_for_the_head_of_a_capture_is_named() -> None:
    topology = Star.model_validate({"receivers": 1}).build()
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(UsageError, match="/dev/full: can't be written"):
        emulate(
            topology,
            {"r1": ReceivingProgram()},
            codec=NumberCodec,
            port=PORT,
            duration=1.0,
            over=lambda finished: True,
            seed=1,
            captures=[CapturePoint("r1", ("r1",), full)],
        )
