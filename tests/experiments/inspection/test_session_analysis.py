"""Sessions built message by message: repairs, suppression, and protocol violations."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.inspection.inspection import Inspection
from protocols.norm.messages import FLAG_REPAIR, Data, Flush, Fti, Info, Nack, Squelch
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from tests.experiments.inspection.scenes import FTI, ORIGIN, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def rules(found: Inspection) -> dict[str, int]:
    """Count the violations and notices by rule."""
    findings = found.session.findings
    return {row.rule: row.count for row in [*findings.violations, *findings.notices]}


def repairs(found: Inspection) -> Any:
    """Return the repairs of sender 1."""
    return found.plain()["senders"][0]["repairs"]


def test_a_session_without_losses_has_no_repairs_or_violations(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.flush()
    found = scene.inspect(tmp_path)
    assert rules(found) == {}
    [sender] = found.plain()["senders"]
    assert sender["packets"] == {"data": 8, "flush": 1}
    assert sender["objects"][0]["complete"] is True
    assert not found.violated


# -- repairs -----------------------------------------------------------------------------------------------------------


def test_requested_segments_and_parity_are_repairs_and_excess_is_unneeded(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.nack(2, (0, 0, 1))
    scene.nack(3, (0, 1, 4), (0, 1, 5))
    scene.data(0, 1)
    scene.data(1, 4)
    scene.data(1, 5)
    scene.data(0, 2)
    found = repairs(scene.inspect(tmp_path))
    assert (found["segments_asked"], found["packets"], found["unneeded"], found["open"]) == (3, 4, 1, 0)
    assert found["per_segment_asked"] == pytest.approx(4 / 3, abs=1e-4)


def test_a_parity_count_is_met_by_any_parity_and_the_largest_request_counts(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.nack(2, (0, 0, 4))
    scene.nack(3, (0, 0, 4), (0, 0, 5))
    scene.data(0, 5)
    found = repairs(scene.inspect(tmp_path))
    assert (found["segments_asked"], found["packets"], found["unneeded"], found["open"]) == (2, 1, 0, 1)


def test_a_request_for_an_object_asks_for_all_segments_with_parity(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.whole(object_id=1)
    whole = Request(FORM_RANGES, LEVEL_OBJECT, (Item(5, 0), Item(5, 0)))
    scene.nack(2, requests=(whole,))
    scene.whole()
    scene.data(0, 4)
    found = repairs(scene.inspect(tmp_path))
    assert (found["segments_asked"], found["packets"], found["unneeded"], found["open"]) == (8, 9, 0, 0)


def test_requests_for_blocks_and_info_are_tracked(scene: Scene, tmp_path: Path) -> None:
    scene.send(Info(ORIGIN, scene.next(), 4, 5, 0, FTI, b"name"))
    scene.whole()
    blocks = Request(FORM_RANGES, LEVEL_BLOCK | LEVEL_INFO, (Item(5, 0, 1), Item(5, 0, 1)))
    scene.nack(2, requests=(blocks,))
    scene.send(Info(ORIGIN, scene.next(), 4, 5, 0, FTI, b"name"))
    for symbol in range(3):
        scene.data(1, symbol)
    found = scene.inspect(tmp_path)
    assert found.session.requests[0].what == "info of object 0, block 0.1"
    row = repairs(found)
    assert (row["segments_asked"], row["packets"], row["unneeded"], row["open"]) == (5, 4, 0, 1)


def test_a_repair_is_recognised_by_its_flag(scene: Scene, tmp_path: Path) -> None:
    scene.whole(without=((0, 1),))
    scene.data(0, 1, flags=FLAG_REPAIR)
    found = scene.inspect(tmp_path)
    assert (repairs(found)["packets"], repairs(found)["flagged"], repairs(found)["unneeded"]) == (1, 1, 1)


def test_a_squelch_cancels_requests(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.whole(object_id=1)
    scene.whole(object_id=2)
    scene.nack(2, (0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 0, 0))
    scene.send(Squelch(ORIGIN, scene.next(), 5, 1, 1, 0, 0, (2,)))
    found = repairs(scene.inspect(tmp_path))
    assert (found["segments_asked"], found["refused"], found["open"]) == (4, 3, 1)


def test_info_requested_with_each_of_several_segments_counts_once(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    request = Request(FORM_ITEMS, LEVEL_SEGMENT | LEVEL_INFO, (Item(5, 0, 0, 1), Item(5, 0, 1, 2)))
    scene.nack(2, requests=(request,))
    found = scene.inspect(tmp_path)
    assert repairs(found)["segments_asked"] == found.session.requests[0].asked.symbols == 3


SYMBOLS = st.tuples(st.integers(0, 1), st.integers(0, 5))
ACTS = st.one_of(
    st.tuples(st.just("nack"), st.integers(2, 4), st.lists(SYMBOLS, min_size=1, max_size=4)),
    st.tuples(st.just("data"), st.just(1), st.lists(SYMBOLS, min_size=1, max_size=1)),
    st.tuples(st.just("squelch"), st.just(1), st.lists(SYMBOLS, min_size=1, max_size=1)),
)


@settings(deadline=None)
@given(st.lists(ACTS, max_size=25))
def test_a_request_is_repaired_squelched_or_open(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, list[tuple[int, int]]]]
) -> None:
    scene = Scene()
    scene.whole()
    for what, node, symbols in acts:
        if what == "nack":
            scene.nack(node, *((0, block, symbol) for block, symbol in symbols))
        elif what == "data":
            scene.data(*symbols[0])
        else:
            scene.send(Squelch(ORIGIN, scene.next(), 5, 0, symbols[0][0], 0))
    row = repairs(scene.inspect(tmp_path_factory.getbasetemp()))
    assert row["segments_asked"] == row["packets"] - row["unneeded"] + row["refused"] + row["open"]


# -- requests and suppression ------------------------------------------------------------------------------------------


def test_a_silent_receiver_was_suppressed_if_the_capture_lacks_the_packet(scene: Scene, tmp_path: Path) -> None:
    for node in (2, 3):
        scene.whole(object_id=0) if node == 2 else None
        scene.ack(node)
    scene.whole(object_id=1, without=((0, 2),))
    scene.nack(2, (1, 0, 4))
    scene.data(0, 4, object_id=1)
    rows = {row["node"]: row for row in scene.inspect(tmp_path).plain()["receivers"]}
    assert (rows[3]["rounds_suppressed"], rows[3]["rounds_silent"]) == (1, 0)
    assert (rows[2]["rounds_suppressed"], rows[2]["segments_lost"]) == (0, 1)


def test_a_silent_receiver_may_have_lost_nothing_if_the_capture_has_the_packet(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.ack(3)
    scene.nack(2, (0, 0, 4))
    scene.data(0, 4)
    rows = {row["node"]: row for row in scene.inspect(tmp_path).plain()["receivers"]}
    assert (rows[3]["rounds_suppressed"], rows[3]["rounds_silent"]) == (0, 1)


def test_a_nack_is_covered_by_others_of_its_round_and_not_by_those_before_the_repair(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    scene.nack(2, (0, 0, 1), (0, 0, 2))
    scene.nack(3, (0, 0, 2))
    scene.data(0, 1)
    scene.nack(4, (0, 0, 2))
    found = scene.inspect(tmp_path).plain()
    assert {row["node"]: row["nacks_covered"] for row in found["receivers"]} == {2: 0, 3: 1, 4: 0}
    assert [row["askers"] for row in found["senders"][0]["rounds"]] == [[2, 3], [4]]
    assert [row["new"] for row in found["requests"]] == [2, 0, 1]
    assert found["senders"][0]["rounds"][0]["answer_after"] == pytest.approx(0.02)


# -- violations --------------------------------------------------------------------------------------------------------


def longer(scene: Scene) -> None:
    scene.data(0, 0, content=bytes(600))


def shorter(scene: Scene) -> None:
    scene.data(0, 0, content=bytes(499))


def beyond_blocks(scene: Scene) -> None:
    scene.data(2, 0)


def beyond_parity(scene: Scene) -> None:
    scene.data(0, 6)


def other_coding(scene: Scene) -> None:
    scene.data(0, 0, fti=Fti(5, 4000, 500, 4, 1))


def other_content(scene: Scene) -> None:
    scene.data(0, 0, content=b"?" * 500)


def garbage(scene: Scene) -> None:
    scene.raw(b"\x13\x04" + bytes(10) + b"\x63" + bytes(8))


def later_segment(scene: Scene) -> None:
    scene.data(0, 0, object_id=1)
    scene.nack(2, (1, 0, 3))
    scene.data(0, 1, object_id=1)


def later_object(scene: Scene) -> None:
    scene.nack(2, requests=(Request(FORM_RANGES, LEVEL_OBJECT, (Item(5, 0), Item(5, 9))),))
    scene.flush()


def no_such_parity(scene: Scene) -> None:
    scene.nack(2, (0, 0, 6))
    scene.flush()


def flush_of_nothing(scene: Scene) -> None:
    scene.flush(object_id=5)


def foreign_code(scene: Scene) -> None:
    scene.nack(2, requests=(Request(FORM_RANGES, LEVEL_SEGMENT, (Item(129, 0, 0, 1, 4), Item(129, 0, 0, 2, 4))),))


BROKEN: list[tuple[Callable[[Scene], None], str]] = [
    (longer, "wrong-length"),
    (shorter, "wrong-length"),
    (beyond_blocks, "beyond-object"),
    (beyond_parity, "beyond-object"),
    (other_coding, "changed-fti"),
    (other_content, "changed-content"),
    (garbage, "malformed"),
    (later_segment, "never-sent"),
    (later_object, "never-sent"),
    (no_such_parity, "never-sent"),
    (flush_of_nothing, "never-sent"),
    (foreign_code, "wrong-fec"),
]


@pytest.mark.parametrize(("act", "rule"), BROKEN, ids=[act.__name__ for act, _ in BROKEN])
def test_a_violation_is_found_with_its_packet(act: Callable[[Scene], None], rule: str, tmp_path: Path) -> None:
    scene = Scene()
    scene.whole()
    if rule == "wrong-length":
        # Content of the wrong length also differs from the right content, where that was seen.
        scene = Scene()
        scene.data(0, 1)
    clean = len(scene.sent)
    act(scene)
    found = scene.inspect(tmp_path)
    [finding] = found.session.findings.violations
    assert (finding.rule, finding.count) == (rule, 1)
    assert finding.first[0][0] > clean
    assert found.violated


def test_a_request_for_what_may_precede_the_capture_is_no_violation(scene: Scene, tmp_path: Path) -> None:
    scene.data(0, 0)
    scene.next()
    scene.nack(2, (0, 0, 1))
    scene.data(0, 2)
    assert rules(scene.inspect(tmp_path)) == {"sequence-gap": 1}


# -- notices -----------------------------------------------------------------------------------------------------------


def test_gaps_late_and_duplicate_messages_are_distinguished(scene: Scene, tmp_path: Path) -> None:
    scene.whole(without=((0, 1), (0, 2), (1, 1)))
    late = Data(ORIGIN, 1, 0, 5, 0, 0, 1, 0, FTI, bytes([0, 1]) * 250, 500)
    scene.send(late)
    scene.send(late)
    found = scene.inspect(tmp_path)
    assert rules(found) == {"sequence-gap": 3, "duplicate": 1}
    [sender] = found.plain()["senders"]
    assert (sender["missing"], sender["late"], sender["duplicates"]) == (2, 1, 1)
    assert sender["packets"]["data"] == 6


def test_sequence_numbers_wrap(scene: Scene, tmp_path: Path) -> None:
    scene.sequence = 0x10000 - 3
    scene.whole(without=((1, 0),))
    assert rules(scene.inspect(tmp_path)) == {"sequence-gap": 1}


def test_a_new_instance_is_a_separate_sender(scene: Scene, tmp_path: Path) -> None:
    scene.whole()
    again = replace(ORIGIN, instance_id=8)
    scene.send(Flush(again, 0, 5, 0, 0xFFFFFF, 0xFF))
    found = scene.inspect(tmp_path)
    assert rules(found) == {"instance-change": 1}
    assert [row["instance"] for row in found.plain()["senders"]] == [7, 8]
    assert found.plain()["senders"][1]["objects"][0]["size"] == 0


def test_two_hosts_with_one_node_id_are_noticed(scene: Scene, tmp_path: Path) -> None:
    scene.data(0, 0)
    scene.raw(scene.codec.encode(Data(ORIGIN, 900, 0, 5, 0, 0, 1, 0, FTI, bytes([0, 1]) * 250, 500)), node=99)
    assert rules(scene.inspect(tmp_path)) == {"two-addresses": 1}


def test_feedback_for_an_unknown_sender_is_noticed(scene: Scene, tmp_path: Path) -> None:
    scene.data(0, 0)
    scene.send(Nack(2, 0, 55, 7, 0, 0, ()), 2)
    assert rules(scene.inspect(tmp_path)) == {"unknown-sender": 1}


def test_object_ids_wrap(scene: Scene, tmp_path: Path) -> None:
    for object_id in (0xFFFE, 0xFFFF, 0, 1):
        scene.whole(object_id=object_id)
    scene.nack(2, (0xFFFF, 0, 1), (1, 0, 1))
    scene.data(0, 1, object_id=0xFFFF)
    scene.data(0, 1, object_id=1)
    found = scene.inspect(tmp_path)
    assert rules(found) == {}
    assert [view["id"] for view in found.plain()["senders"][0]["objects"]] == [0xFFFE, 0xFFFF, 0, 1]
    assert repairs(found)["open"] == 0


def test_two_different_decodings_are_a_violation(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.inspection.cross_check.differences", lambda message, layer: ["sequence: 1, 2"])
    scene.whole()
    found = scene.inspect(tmp_path)
    assert rules(found) == {"two-decodings": 1}
    assert found.plain()["scapy"] == {"checked": 1, "disagree": 1}
