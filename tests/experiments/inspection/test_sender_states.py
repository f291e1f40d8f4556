"""The state of senders over time, and watermarks, in recorded traffic and in sessions built message by message."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.inspection.inspection import inspect_capture
from protocols.norm.messages import Ack, CcFeedback, CcNode, Data, Flush, Nack, Probe
from protocols.norm.quantise import rate_code, rtt_code
from tests.experiments.inspection.scenes import FTI, ORIGIN, Scene, items
from tests.support.captures import VECTORS


def _sender(found: Any) -> Any:
    [sender] = found.plain()["senders"]
    return sender


def _probe(scene: Scene, *nodes: CcNode) -> None:
    scene.send(Probe(ORIGIN, scene.next(), 1, 0, 0, rate_code(125_000.0), nodes))


def test_a_state_counts_what_was_sent_since_the_probe_before(tmp_path: Path) -> None:
    scene = Scene()
    _probe(scene)
    scene.data(0, 0)
    scene.data(0, 1)
    scene.send(Nack(2, 0, 1, 7, 0, 0, items((0, 0, 1))), 2)
    scene.data(0, 1)
    _probe(scene)
    first, second = _sender(scene.inspect(tmp_path))["states"]
    assert (first["sent_rate_bps"], first["clr"]) == (None, None)
    assert (second["data"], second["repairs"], second["nacks"]) == (2, 1, 1)
    assert second["says_rate_bps"] == pytest.approx(1e6, rel=0.01)
    # 3 segments of 500 bytes with headers of 32, and the probe, in 50 ms.
    assert second["sent_rate_bps"] == pytest.approx(3 * 532 * 8 / 0.05, rel=0.1)


def test_the_limiting_receiver_is_told_with_its_last_reported_loss(tmp_path: Path) -> None:
    scene = Scene()
    scene.data(0, 0)
    cc = CcFeedback(1, 0, rtt_code(0.1), 0x1999, rate_code(50_000.0))
    scene.send(Ack(3, 0, 1, 7, 1, 0, 0, 0, b"", cc), 3)
    _probe(scene, CcNode(2, 2, rtt_code(0.2), rate_code(90_000.0)), CcNode(3, 1 | 4, rtt_code(0.1), rate_code(50_000.0)))
    [state] = _sender(scene.inspect(tmp_path))["states"]
    assert (state["nodes"], state["clr"], state["clr_flags"]) == (2, 3, ["CLR", "RTT"])
    assert state["clr_rtt"] == pytest.approx(0.1, rel=0.08)
    assert state["clr_loss"] == pytest.approx(0.1, rel=0.01)
    assert state["clr_rate_bps"] == pytest.approx(400_000, rel=0.01)


def test_a_watermark_names_who_answered_and_who_did_not(tmp_path: Path) -> None:
    scene = Scene()
    scene.whole()
    for _ in range(2):
        scene.send(Flush(ORIGIN, scene.next(), 5, 0, 1, 3, 0, (2, 3)))
    scene.send(Ack(3, 0, 1, 7, 2, 0, 0, 0, bytes((5, 0, 0, 0, 0, 0, 1, 3))), 3)
    [mark] = _sender(scene.inspect(tmp_path))["watermarks"]
    assert (mark["names"], mark["flushes"], mark["asked"], mark["missing"]) == ("0.1.3", 2, [2, 3], [2])
    assert mark["acked"] == {"3": pytest.approx(0.02)}


def test_an_acknowledgement_that_nobody_asked_for_is_a_notice(tmp_path: Path) -> None:
    scene = Scene()
    scene.whole()
    scene.send(Ack(3, 0, 1, 7, 2, 0, 0, 0, bytes((5, 0, 0, 0, 0, 0, 1, 3))), 3)
    found = scene.inspect(tmp_path)
    assert [row.rule for row in found.session.findings.notices] == ["unasked-ack"]


def test_a_reserved_node_id_is_a_violation(tmp_path: Path) -> None:
    scene = Scene()
    scene.whole()
    scene.send(Nack(0, 0, 1, 7, 0, 0, items((0, 0, 1))), 3)
    found = scene.inspect(tmp_path)
    assert "reserved-node" in [row.rule for row in found.session.findings.violations]


def test_suppression_is_summed_over_the_rounds(tmp_path: Path) -> None:
    scene = Scene()
    scene.whole(without=((0, 1),))
    for node in (2, 3):
        scene.send(Nack(node, 0, 1, 7, 0, 0, items((0, 0, 1))), node)
    scene.send(Data(ORIGIN, scene.next(), 1, 5, 0, 0, 1, 0, FTI, bytes([0, 1]) * 250, 500))
    quality = _sender(scene.inspect(tmp_path))["suppression"]
    assert (quality["rounds"], quality["nacks_per_round"]) == (1, 2)


@pytest.mark.parametrize(("name", "clr", "loss"), [("cc_two_receivers", 3, 0.02), ("cc_slow_start", 2, None)])
def test_recorded_congestion_control_is_followed(name: str, clr: int, loss: float | None) -> None:
    states = _sender(inspect_capture(VECTORS / f"{name}.pcap"))["states"]
    known = [state for state in states if state["clr"] is not None]
    assert len(known) > 10
    assert Counter(state["clr"] for state in known).most_common(1)[0][0] == clr
    if loss is not None:
        losses = [state["clr_loss"] for state in known if state["clr_loss"]]
        assert sum(losses) / len(losses) == pytest.approx(loss, rel=0.5)


@pytest.mark.parametrize(
    ("name", "asked", "missing"),
    [("watermark_ack", [2, 3], []), ("watermark_ex", [2], []), ("watermark_missing_acker", [2, 9], [9])],
)
def test_recorded_watermarks_are_told(name: str, asked: list[int], missing: list[int]) -> None:
    marks = _sender(inspect_capture(VECTORS / f"{name}.pcap"))["watermarks"]
    assert (marks[-1]["asked"], marks[-1]["missing"]) == (asked, missing)
