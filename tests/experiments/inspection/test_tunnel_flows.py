"""Captures with datagrams of tunnels: what they hold, and between sites the session in them."""

import json
from pathlib import Path

import pytest

from experiments.captures.datagrams import CapturedDatagram
from experiments.cli import invoke
from experiments.inspection.inspection import inspect_capture
from experiments.inspection.tunnel_flows import TunnelFlows
from protocols.tunnel.messages import Brake
from protocols.tunnel.wire import KEYED, MAC_SIZE, write_told


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of captures of a run with tunnels."""
    folder = tmp_path_factory.mktemp("run")
    sets = (
        "wire=bytes",
        "workload.0.count=200",
        "topology.links.3.loss=5%",
        "capture=[g2-w, g2.host, p-l1]",
        "nodes.g1.brake=true",
        "protocol.braking=true",
    )
    values = [word for value in sets for word in ("--set", value)]
    assert invoke(["run", "fjm2-wan-single", *values, "--out", str(folder), "--brief"]) == 0
    return folder / "captures"


def test_a_capture_between_sites_shows_the_session_in_the_datagrams(captures: Path) -> None:
    found = inspect_capture(captures / "g2-w.pcapng").plain()
    there, back = found["tunnels"]
    assert (there["datagrams"], there["keyed"]) == (sum(there["packets"].values()), 0)
    assert there["packets"]["data"] >= 600
    assert set(back["packets"]) <= {"nack", "ack"}
    assert (there["from"], there["to"]) == (back["to"], back["from"])
    (sender,) = found["senders"]
    assert sender["packets"]["data"] + sender["repairs"]["packets"] >= 600


def test_a_capture_with_the_group_itself_counts_the_datagrams_beside_it(captures: Path) -> None:
    found = inspect_capture(captures / "g2.host.pcapng").plain()
    assert len(found["tunnels"]) == 2
    assert found["other_datagrams"] >= found["tunnels"][0]["datagrams"]


def test_what_a_tunnel_tells_its_site_and_another_tunnel_is_no_malformed_message_of_norm(captures: Path) -> None:
    site = inspect_capture(captures / "p-l1.pcapng")
    assert not site.session.findings.violations
    (told,) = site.plain()["signals"]
    assert set(told["messages"]) == {"presence", "brake"}
    assert 0 < told["lost"] < 1
    (report,) = inspect_capture(captures / "g2-w.pcapng").plain()["signals"]
    assert set(report["messages"]) == {"report"}
    assert "ring" not in report


def test_a_signal_with_a_mac_is_read_and_one_that_is_too_short_is_not() -> None:
    flows = TunnelFlows()
    brake = write_told(Brake(7, 65535, 13107))
    keyed = bytes([brake[0] | KEYED]) + brake[1:] + bytes(MAC_SIZE)
    for payload, expected in ((brake, True), (keyed, True), (brake[:-1], False), (keyed[:-1], False), (b"", False)):
        assert flows.add_signal(CapturedDatagram("10.0.0.1", "239.1.2.3", 6003, payload, 6003, size=len(payload))) == expected
    (signals,) = flows.signals
    assert signals.plain() == {
        "from": "10.0.0.1:6003", "to": "239.1.2.3:6003", "sites": [7], "messages": {"brake": 2}, "ring": 1.0, "lost": 0.2
    }  # fmt: skip


def test_the_command_tells_of_tunnels(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(captures / "g2-w.pcapng")]) in (0, 1)
    told = capsys.readouterr().out
    assert "tunnel 10." in told
    assert "tells 10." in told
    assert invoke(["inspect", str(captures / "g2-w.pcapng"), "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["tunnels"][0]["missing"] >= 0
