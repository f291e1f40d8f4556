"""Rows of receivers: content is equal only if it is complete, delivered once, and has the right digest."""

from typing import Any

import pytest

from experiments.running.result import combine, row_of

EXPECTED = {(1, 0): (100, "aa"), (1, 1): (50, "bb")}
WHOLE: dict[str, Any] = {
    "received": [[1, 0, 100, "aa"], [1, 1, 50, "bb"]],
    "last_at": 2.5,
    "duplicates": 0,
    "aborted": 0,
    "counts": {"data_received": 95, "data_lost": 5, "nacks_sent": 3, "nacks_suppressed": 1},
}


def test_the_row_of_a_complete_receiver() -> None:
    row = row_of("r1", WHOLE, EXPECTED, True)
    assert (row.objects, row.bytes, row.equal, row.proof, row.completed_at) == (2, 150, True, "sha256", 2.5)
    assert (row.loss, row.nacks_sent, row.nacks_suppressed, row.fault) == (0.05, 3, 1, None)


@pytest.mark.parametrize(
    ("change", "completed_at"),
    [
        ({"received": [[1, 0, 100, "aa"]]}, None),
        ({"received": [[1, 0, 100, "aa"], [1, 1, 50, "cc"]]}, 2.5),
        ({"received": [[1, 0, 100, "aa"], [1, 1, 49, "bb"]]}, 2.5),
        ({"received": [*WHOLE["received"], [1, 2, 10, "dd"]]}, None),
        ({"duplicates": 1}, 2.5),
    ],
    ids=["missing", "other content", "other size", "never sent", "delivered twice"],
)
def test_any_difference_from_the_submitted_content_is_not_equal(change: dict[str, Any], completed_at: float | None) -> None:
    row = row_of("r1", WHOLE | change, EXPECTED, True)
    assert not row.equal
    assert row.completed_at == completed_at


def test_a_failed_node_has_a_row_with_its_fault() -> None:
    row = row_of("r1", {"fault": "died by signal 9"}, EXPECTED, True)
    assert (row.objects, row.equal, row.completed_at, row.fault) == (0, False, None, "died by signal 9")


def test_goodput_counts_content_from_the_first_submission_to_the_last_completion() -> None:
    rows = [row_of(name, WHOLE | {"last_at": at}, EXPECTED, True) for name, at in (("r1", 2.0), ("r2", 3.0))]
    metrics = combine(
        rows=rows,
        senders=[{"counts": {"repairs_sent": 4}}],
        packets={"data": 7},
        octets={"data": 300},
        expected=EXPECTED,
        began_at=1.0,
        segment=40,
    )
    assert metrics["completion_time"] == 2.0
    assert metrics["source_packets"] == 3 + 2
    assert metrics["goodput_mbit_s"] == pytest.approx(150 * 8e-6 / 2)
    assert (metrics["overhead"], metrics["repairs_sent"], metrics["packets"]) == (2.0, 4, {"total": 7, "data": 7})
