"""The cause that was planted in a run is the one that is named, for each of 50 seeded runs; also from captures alone."""

from pathlib import Path
from struct import unpack_from

import pytest

from experiments.captures.capture_file import CaptureFile
from experiments.captures.trace_file import read_trace
from experiments.explain.analysis import explain
from experiments.explain.chain_ladder import chain_ladder
from experiments.explain.explanation import FORMAT, Explanation
from experiments.explain.history import read_history
from experiments.report.run_report_folder import open_run
from tests.experiments.explain import planted
from tests.experiments.explain.planted import CAUSES, Planted, plant, recorded_run

SEEDS = 10


def _explained(run: Planted) -> Explanation:
    return explain(read_history(open_run(run.folder), run.object_id, run.receiver, None))


@pytest.mark.parametrize("cause", CAUSES)
def test_the_planted_cause_is_named(cause: str, tmp_path: Path) -> None:
    wrong = {}
    for seed in range(SEEDS):
        run = plant(tmp_path / str(seed), cause, seed)
        found = _explained(run)
        if found.cause.name != cause:
            wrong[seed] = found.cause
    assert not wrong


@pytest.mark.parametrize("cause", CAUSES)
def test_captures_of_all_hosts_tell_the_planted_cause(cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = recorded_run
    monkeypatch.setattr(planted, "recorded_run", lambda folder, data: recorded(folder, data, capture=["hosts"]))
    for seed in (1,):
        run = plant(tmp_path / str(seed), cause, seed)
        (run.folder / "trace.jsonl").unlink()
        found = _explained(run)
        assert found.record == "captures"
        assert found.cause.name == cause
        assert any("back-off" in text for text in found.unknown)


@pytest.mark.parametrize("protocol", ["a", "n1", "n2", "srm"])
@pytest.mark.parametrize("cause", ["drop", "slow sender", "partition"])
def test_other_protocols_are_explained_as_far_as_their_packets_tell(
    cause: str, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm = planted._scenario

    def scenario(random, receivers, **settings):  # type: ignore[no-untyped-def]
        data = norm(random, receivers)
        data["protocol"] = {"name": protocol, "rate": settings.get("rate", "10Mbit")}
        return data

    monkeypatch.setattr(planted, "_scenario", scenario)
    assert _explained(plant(tmp_path, cause, 1)).cause.name == cause


def test_a_suppressed_request_of_n2_is_told_by_its_packets(tmp_path: Path) -> None:
    deaf = {"at": 0.1, "change": ["s1", "sender"], "loss": 1.0, "for": 0.2}
    data = {
        "name": "n2",
        "topology": {"kind": "star", "receivers": 6, "trunk": {"rate": "100Mbit"}, "link": {"rate": "100Mbit"}},
        "protocol": {"name": "n2", "rate": "10Mbit", "window": "100ms", "timeout": "300ms"},
        "workload": {"size": 300_000},
        "faults": [{"at": 0.1, "change": ["sender", "s1"], "loss": 1.0, "for": 0.001}, deaf],
    }
    folder = recorded_run(tmp_path, data)
    first = next(packet.node for packet in read_trace(folder).packets.values() if packet.kind == "nack")
    for receiver in (f"r{number}" for number in range(1, 7)):
        found = explain(read_history(open_run(folder), 0, receiver, None))
        assert found.cause.name == ("drop" if receiver == first else "suppressed request")
        assert first in found.cause.text or receiver == first


def test_the_chain_has_the_numbers_of_packets_in_captures_and_lines_of_the_ladder(tmp_path: Path) -> None:
    data = {
        "name": "chain",
        "topology": {"kind": "star", "receivers": 4, "link": {"rate": "100Mbit", "delay": "5ms", "down": {"loss": "2%"}}},
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "50ms"},
        "workload": {"size": 200_000},
        "seed": 3,
    }
    folder = recorded_run(tmp_path, data, capture=["hosts"])
    history = read_history(open_run(folder), 0, "r1", None)
    found = explain(history)
    excerpt = chain_ladder(history, found)
    assert excerpt is not None
    assert found.plain()["format"] == FORMAT
    whats = [step.what for step in found.chain]
    for needed in ("sent", "lost", "noticed", "request arrives", "aggregation", "repair", "repair arrives", "complete"):
        assert needed in whats
    frames = {path.stem: list(CaptureFile(path).frames()) for path in open_run(folder).captures}
    with_packet = [step for step in found.chain if step.packet]
    for step in with_packet:
        assert 1 <= step.line <= len(excerpt.shown)
        for name, number in step.frames.items():
            # The IPv4 identification is the packet's number (docs/seeing.md).
            assert unpack_from(">H", frames[name][number - 1].data, 18)[0] == step.packet
    lost = next(step for step in found.chain if step.what == "lost")
    assert "sender" in lost.frames
    assert "r1" not in lost.frames
    arrived = next(step for step in found.chain if step.what == "repair arrives")
    assert frames["r1"][arrived.frames["r1"] - 1].time == pytest.approx(arrived.time, abs=1e-8)


def test_a_sender_that_reads_requests_late_is_slow(tmp_path: Path) -> None:
    data = {
        "name": "late",
        "topology": {"kind": "star", "receivers": 1, "trunk": {"rate": "100Mbit"}, "link": {"rate": "100Mbit"}},
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "probing": "none"},
        "workload": {"size": 200_000},
        "faults": [
            {"at": 0.05, "change": ["sender", "s1"], "loss": 1.0, "for": 0.002},
            {"at": 0.0, "slow": "sender", "takes": 0.4},
        ],
    }
    found = explain(read_history(open_run(recorded_run(tmp_path, data)), 0, "r1", None))
    assert found.cause.name == "slow sender"
    assert "answer" in found.cause.text


def test_the_chain_is_in_the_order_of_time(tmp_path: Path) -> None:
    run = plant(tmp_path, "suppressed request", 1)
    chain = _explained(run).chain
    assert [step.time for step in chain] == sorted(step.time for step in chain)
    suppressed = next(step for step in chain if step.what == "suppressed")
    lost = next(step for step in chain if step.what == "request lost")
    assert suppressed.packet == lost.packet


def test_an_object_without_loss_has_no_cause_but_its_sending(tmp_path: Path) -> None:
    data = {
        "name": "plain",
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "100Mbit"}},
        "protocol": {"name": "norm", "rate": "10Mbit"},
        "workload": {"size": 100_000},
    }
    found = explain(read_history(open_run(recorded_run(tmp_path, data)), 0, "r1", None))
    assert found.cause.name == "slow sender"
    assert "at 10Mbit" in found.cause.text
    assert found.spent["repair"] == 0
