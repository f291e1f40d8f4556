"""Foreign programs on emulated hosts: NRL's library and command lines, measured like this project's own programs."""

import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError, UnsupportedError

SCRIPT = Path(__file__).parents[1] / "support" / "plain_transfer.py"
SENDS = [sys.executable, str(SCRIPT), "send", "$MCASTLAB_FILES"]
RECEIVES = [sys.executable, str(SCRIPT), "recv"]


def play(nodes: dict[str, Any], on: str = "emu", **changes: Any) -> Result:
    """Send a file of 300 kB to three receivers that lose 5 %."""
    data = {
        "name": "foreign",
        "topology": {"kind": "star", "receivers": 3, "link": {"down": {"loss": "5%"}}},
        "protocol": {"name": "norm", "rate": "20Mbit", "grtt": "20ms", "gsize": 10, "robust": 10},
        "workload": {"kind": "file", "from": "sender", "size": "300kB"},
        "nodes": nodes,
        "duration": "20s",
    }
    return run(parse(data | changes, "FILE"), on)


def lossless(nodes: dict[str, Any], **changes: Any) -> Result:
    """Do the same without losses."""
    return play(nodes, topology={"kind": "star", "receivers": 3}, **changes)


@pytest.mark.emu
@pytest.mark.peer
@pytest.mark.parametrize("sender", ["mcastlab", "nrl-norm"])
def test_the_library_sends_and_receives_beside_our_own_program(sender: str) -> None:
    result = play({"sender": {"run": sender}, "r1": {"run": "nrl-norm"}})
    assert result.completed, result
    assert result.metrics["faults"] == {}
    for row in result.receivers:
        assert (row.objects, row.bytes, row.equal, row.proof) == (1, 300_000, True, "sha256")
        assert row.completed_at is not None
        # About 280 packets lose 5 %: the standard error is 1.3 %.
        assert row.loss is not None
        assert 0 < row.loss < 0.12
    # The library counts no NACKs that it suppresses.
    assert [row.name for row in result.receivers if row.nacks_suppressed is None] == ["r1"]
    # A single receiver's NACKs may all be suppressed by those of others.
    assert any(row.nacks_sent for row in result.receivers)
    metrics = result.metrics
    assert metrics["data_sent"] == -(-300_000 // 1400)
    # The object's INFO may be repaired, too.
    repeated = metrics["packets"]["data"] - metrics["data_sent"]
    assert 0 < repeated <= metrics["repairs_sent"] <= repeated + metrics["packets"]["info"]
    assert metrics["nacks_received"] > 0


@pytest.mark.emu
@pytest.mark.peer
def test_the_library_sends_several_files_at_several_times() -> None:
    work = [{"kind": "file", "size": "50kB", "count": 2}, {"kind": "file", "size": "70kB", "at": "1s"}]
    result = play({"sender": {"run": "nrl-norm"}, "r2": {"run": "nrl-norm"}}, workload=work)
    assert result.completed, result
    assert [row.objects for row in result.receivers] == [3, 3, 3]
    assert min(row.completed_at or 0 for row in result.receivers) > 1


@pytest.mark.emu
def test_commands_send_and_receive_with_parameters_from_the_environment() -> None:
    result = lossless({"sender": {"run": SENDS}, "r": {"run": RECEIVES}})
    assert result.completed, result
    assert [row.bytes for row in result.receivers] == [300_000] * 3
    assert all(0 < (row.completed_at or 0) < 20 for row in result.receivers)
    assert result.metrics["packets"] == {"total": 301, "datagram": 301}


@pytest.mark.emu
def test_a_corrupted_file_is_detected() -> None:
    result = lossless({"sender": {"run": SENDS}, "r": {"run": RECEIVES}, "r2": {"run": [*RECEIVES, "--spoil"]}})
    assert [row.equal for row in result.receivers] == [True, False, True]
    assert not result.completed


@pytest.mark.emu
def test_a_failed_command_is_reported_with_its_last_output_line() -> None:
    failing = ["sh", "-c", "echo first; echo 'no such luck' >&2; exit 7"]
    result = lossless({"sender": {"run": failing}, "r": {"run": RECEIVES}}, duration="2s")
    assert not result.completed
    assert "ended with exit code 7: no such luck" in result.metrics["faults"]["sender"]["error"]
    result = lossless({"r1": {"run": failing}}, duration="2s")
    assert "before it joined" in str(result.metrics["faults"]["r1"]["error"])
    assert "ended with exit code 7: no such luck" in str(result.receivers[0].fault)


@pytest.mark.emu
def test_a_sender_that_ends_with_an_error_after_everything_arrived_is_no_success() -> None:
    sends = ["sh", "-c", '"$@"; exit 3', "-", *SENDS]
    result = lossless({"sender": {"run": sends}, "r": {"run": RECEIVES}})
    assert all(row.equal for row in result.receivers)
    assert not result.completed
    assert "ended with exit code 3" in result.metrics["faults"]["sender"]["error"]


@pytest.mark.parametrize("run_by", ["nrl-norm", ["true"]])
def test_the_simulator_refuses_foreign_programs(run_by: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"^nodes\.r1\.run: the simulator runs mcastlab's own"):
        play({"r1": {"run": run_by}}, on="sim")


def test_a_missing_program_is_refused_before_anything_starts() -> None:
    with pytest.raises(UnsupportedError, match=r"^nodes\.r1\.run: 'no-such-program' is no program"):
        play({"r1": {"run": ["no-such-program"]}})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": {"r9": {"run": "nrl-norm"}}}, r"nodes\.r9: value 'r9' is not allowed"),
        ({"nodes": {"r1": {"run": "norm"}}}, r"nodes\.r1\.run"),
        ({"nodes": {"r1": {"run": []}}}, r"nodes\.r1\.run"),
        (
            {"protocol": {"name": "srm"}},
            r"nodes\.r1\.run: value 'nrl-norm' is not allowed; it speaks norm, and the protocol is srm",
        ),
        (
            {"protocol": {"name": "norm", "fec": 0, "parity": 0}},
            r"nodes\.r1\.run: value 'nrl-norm' is not allowed; it needs fec",
        ),
    ],
)
def test_invalid_nodes_are_refused_with_their_key(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        play(**({"nodes": {"r1": {"run": "nrl-norm"}}} | changes))


@pytest.mark.peer
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"receivers": [{"hosts": ["r1"], "join": "1s"}]}, "receivers lets r1 join late or leave"),
        ({"workload": {"kind": "file", "size": 1000, "members": ["r2"]}}, "r1 has nothing to do"),
        ({"workload": [{"kind": "file", "size": 9}, {"kind": "file", "size": 9, "group": "b"}]}, "r1 has several"),
    ],
)
def test_a_foreign_program_has_one_role_for_the_whole_run(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, UnsupportedError), match=words):
        play({"r1": {"run": "nrl-norm"}}, **changes)


def test_a_command_sends_once() -> None:
    work = [{"kind": "file", "size": 9}, {"kind": "file", "size": 9, "at": "1s"}]
    with pytest.raises(ConfigError, match="'true' would have to send at several times"):
        play({"sender": {"run": ["true"]}}, workload=work)


def test_our_own_program_may_be_named() -> None:
    assert play({"r1": {"run": "mcastlab"}}, on="sim").completed
