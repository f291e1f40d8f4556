"""The live view of an emulation: rates of each second, from cumulative counters."""

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from experiments.cli import invoke
from experiments.running.live_view import LiveView

FIRST = {
    "sender": {"at": 1.0, "octets": 1_250_000, "packets": 900, "data_lost": 0, "data_received": 0},
    "r1": {"at": 1.0, "octets": 100, "packets": 2, "nacks_sent": 2, "data_lost": 9, "data_received": 891},
}
SECOND = {
    "sender": {"at": 2.0, "octets": 1_875_000, "packets": 1350, "data_lost": 0, "data_received": 0},
    "r1": {"at": 3.0, "octets": 300, "packets": 6, "nacks_sent": 6, "data_lost": 109, "data_received": 1191},
}


def view(terminal: bool) -> tuple[LiveView, io.StringIO]:
    """Return a view that writes to memory."""
    text = io.StringIO()
    return LiveView("demo", ["sender", "r1"], Console(file=text, force_terminal=terminal, width=100, height=30)), text


def test_without_a_terminal_one_line_is_written_per_second() -> None:
    shown, text = view(terminal=False)
    shown(1.0, FIRST)
    shown(2.0, SECOND)
    assert text.getvalue().splitlines() == [
        "1 s: 2 hosts sent 10.00 Mbit/s, loss 1.0%, 2 NACKs/s",
        # No report of r1 arrived for a second, so its rate is half of the counted difference.
        "2 s: 2 hosts sent 5.00 Mbit/s, loss 25.0%, 2 NACKs/s",
    ]


def test_a_terminal_shows_a_table_of_hosts() -> None:
    shown, text = view(terminal=True)
    shown(1.0, FIRST)
    for word in ("demo, second 1", "sender", "10.00", "900", "r1", "891", " 1.0 "):
        assert word in text.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_the_ring_of_a_tunnel_is_shown_as_it_is_and_not_as_a_rate(terminal: bool) -> None:
    shown, text = view(terminal)
    for second in (1.0, 2.0):
        shown(second, {"g1": {"at": second, "octets": 5.0, "ring_used": 32, "ring_size": 128}, "r1": {"at": second}})
    assert "ring" in text.getvalue()
    assert "25" in text.getvalue()


def test_the_cursor_is_shown_again_after_the_table_though_a_child_process_drew_it() -> None:
    text = io.StringIO()
    with LiveView("lan", (), Console(file=text, force_terminal=True, width=100, height=30)) as view:
        child = os.fork()
        if child == 0:
            view(1.0, {"sender": {"at": 1.0, "octets": 1}})
            os._exit(0)
        os.waitpid(child, 0)
    assert text.getvalue().endswith("\n\x1b[?25h")


def test_hosts_keep_the_given_order_whoever_reports_first() -> None:
    for census in (FIRST, dict(reversed(FIRST.items()))):
        shown, text = view(terminal=True)
        shown(1.0, census)
        assert text.getvalue().index("sender") < text.getvalue().index("r1")


def test_counters_of_a_crashed_host_restart_from_0() -> None:
    shown, text = view(terminal=False)
    shown(1.0, FIRST)
    shown(2.0, FIRST)
    shown(3.0, {"sender": {"at": 3.0, "octets": 0, "packets": 0}})
    assert [line.split("sent ")[1].split(",")[0] for line in text.getvalue().splitlines()] == [
        "10.00 Mbit/s",
        "0.00 Mbit/s",
        "0.00 Mbit/s",
    ]


def test_only_the_hosts_with_most_traffic_or_losses_are_shown() -> None:
    shown, text = view(terminal=True)
    census = {f"r{i}": {"at": 1.0, "octets": 0, "data_lost": i, "data_received": 1000} for i in range(100)}
    shown(1.0, {"sender": {"at": 1.0, "octets": 1_000_000}} | census)
    assert "sender" in text.getvalue()
    assert "\nr99 " in text.getvalue()
    assert "\nr77 " not in text.getvalue()
    assert "and 78 hosts that sent or lost less" in text.getvalue()


@pytest.mark.emu
@pytest.mark.timed
def test_watching_does_not_change_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = {
        "name": "watched",
        "topology": {"kind": "star", "receivers": 2},
        "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "20ms", "robust": 10},
        "workload": {"kind": "file", "size": "1MB"},
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(data))
    assert invoke(["run", str(file), "--on", "emu", "--live", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["completed"]
    lines = err.splitlines()
    assert lines[0].startswith("1 s: 3 hosts sent ")
    assert len(lines) >= 2
    assert float(lines[0].split("sent ")[1].split()[0]) == pytest.approx(4, rel=0.3)


def test_only_mininet_has_a_live_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "experiments" / "scenarios" / "demo.yaml"
    assert invoke(["run", str(file), "--live"]) == 2
    assert "--live: only Mininet" in capsys.readouterr().err
