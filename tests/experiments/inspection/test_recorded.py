"""Inspection of recorded NRL NORM sessions agrees with their known properties."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from experiments.inspection.inspection import inspect_capture
from tests.support.captures import CAPTURES, VECTORS, expected

LOST_AT_SENDER = "nack_suppression"
COMMANDS = {"CC", "FLUSH", "SQUELCH", "REPAIR_ADV", "APPLICATION"}


@cache
def found(capture: str) -> Any:
    """Return the inspection as plain values."""
    return inspect_capture(VECTORS / f"{capture}.pcap").plain()


def repairs(capture: str) -> Any:
    """Return the repairs of the only sender."""
    return found(capture)["senders"][0]["repairs"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_message_is_counted_with_its_kind(capture: str) -> None:
    wanted = expected()[capture]
    counts, plain = wanted["counts"], found(capture)
    [sender] = plain["senders"]
    packets = Counter(sender["packets"])
    assert plain["messages"] == plain["frames"] == wanted["messages"]
    content = packets["data"] + packets["parity"] + packets["repair"] + packets["info"]
    assert content == counts.get("DATA", 0) + counts.get("INFO", 0)
    for name in COMMANDS:
        assert packets[name.lower()] == counts.get(f"CMD/{name}", 0)
    assert sum(row["nacks"] for row in plain["receivers"]) == counts.get("NACK", 0)
    assert sum(row["acks"] for row in plain["receivers"]) == counts.get("ACK", 0)
    assert sum(sum(row) for row in plain["timeline"]["packets"].values()) == wanted["messages"]
    assert sum(sum(row) for row in plain["timeline"]["bytes"].values()) == plain["bytes"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_recorded_sessions_have_no_violations_and_scapy_agrees(capture: str) -> None:
    assert found(capture)["violations"] == []
    assert found(capture)["scapy"]["checked"] >= 2
    assert found(capture)["scapy"]["disagree"] == 0


@pytest.mark.parametrize("capture", [name for name in CAPTURES if expected()[name]["objects"]])
def test_objects_are_those_of_the_session(capture: str) -> None:
    [sender] = found(capture)["senders"]
    assert (sender["source_id"], sender["instance"]) == (1, 1)
    for view in sender["objects"]:
        wanted = next(entry for entry in expected()[capture]["objects"] if entry["object_transport_id"] == view["id"])
        if view["kind"] == "stream":
            assert view["complete"] is None
            continue
        assert view["size"] == wanted["size"]
        assert view["complete"] is True
        if view["size"] and capture != LOST_AT_SENDER:
            assert view["sources"] == view["coding"]["segments"]


def test_coding_and_names_are_shown() -> None:
    [view] = found("file_loss5")["senders"][0]["objects"]
    assert (view["kind"], view["info"], view["size"]) == ("file", "f0.bin", 60_000)
    assert view["coding"] == {"fec_id": 5, "segment": 512, "block": 64, "parity": 16, "blocks": 2, "segments": 118}
    [view] = found("fec2_m16_loss")["senders"][0]["objects"]
    assert (view["coding"]["block"], view["coding"]["parity"]) == (210, 60)


NOT_REQUESTED = {"requeue": 6}
REFUSED = {"squelch_hole": 6, "squelch_late_join": 48}


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_repair_was_requested_and_every_request_repaired_or_squelched(capture: str) -> None:
    row = repairs(capture)
    assert row["unneeded"] == NOT_REQUESTED.get(capture, 0)
    assert row["refused"] == REFUSED.get(capture, 0)
    assert row["open"] == 0
    assert row["packets"] == row["segments_asked"] - row["refused"] + row["unneeded"]
    assert row["flagged"] == 0, "NRL NORM never sets the flag"


def test_proactive_parity_is_no_repair() -> None:
    [sender] = found("silent_receivers")["senders"]
    # Two objects of 60 segments in blocks of 20, six parity symbols each.
    assert sender["packets"]["parity"] == 36
    assert found("silent_receivers")["receivers"] == []


def test_requests_are_listed_by_receiver() -> None:
    rows = found("file_loss5")["requests"]
    assert [(row["packet"], row["receiver"], row["what"]) for row in rows] == [
        (123, 3, "any 9 of 0.0, any 3 of 0.1"),
        (124, 2, "any 3 of 0.0, any 2 of 0.1"),
        (139, 3, "any 1 of 0.0"),
    ]
    assert [(row["symbols"], row["new"]) for row in rows] == [(12, 12), (5, 0), (1, 1)]


def test_losses_are_inferred_from_nacks() -> None:
    rows = {row["node"]: row for row in found("file_loss5")["receivers"]}
    assert (rows[3]["segments_lost"], rows[2]["segments_lost"]) == (12, 5)
    assert rows[3]["loss"] == pytest.approx(12 / 118, abs=1e-4)
    assert rows[2]["nacks_covered"] == 1


def test_a_silent_receiver_of_a_shared_loss_was_suppressed() -> None:
    first = found(LOST_AT_SENDER)["senders"][0]["rounds"][0]
    assert first["askers"] == [5]
    assert sorted(first["suppressed"]) == [3, 4]
    assert first["silent"] == []
    assert {row["rule"] for row in found(LOST_AT_SENDER)["notices"]} == {"sequence-gap"}
    rows = {row["node"]: row["rounds_suppressed"] for row in found(LOST_AT_SENDER)["receivers"]}
    assert rows == {3: 1, 4: 2, 5: 1}


def test_independent_losses_imply_no_suppression_of_silent_receivers() -> None:
    second = found("file_loss5")["senders"][0]["rounds"][1]
    assert (second["askers"], second["suppressed"], second["silent"]) == ([3], [], [2])


def test_requests_for_objects_sent_before_the_capture_are_no_violation() -> None:
    assert [row["rule"] for row in found("squelch_late_join")["notices"]] == ["before-capture"]


def test_unicast_feedback_is_found_without_a_given_port() -> None:
    assert set(found("unicast_nack")["to"]) >= {"239.7.7.7:6003", "10.77.0.1:6004"}
    by_port = inspect_capture(VECTORS / "unicast_nack.pcap", 6003).plain()
    assert by_port["receivers"] == found("unicast_nack")["receivers"]
