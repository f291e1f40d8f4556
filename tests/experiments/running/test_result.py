"""Rows of receivers: content is equal only if it is complete, delivered once and unchanged; what is not counted is None."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments.output.tables import brief, summary, write
from experiments.running.result import Result, combine, packets_of, row_of
from experiments.running.run import run
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load
from experiments.sweep.spec.metrics import metrics_of, receiver_metrics_of
from experiments.sweep.store.schema import runs_schema

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


def test_a_receiver_that_died_is_not_complete_even_if_nothing_was_sent() -> None:
    assert not row_of("r1", {"fault": "died by signal 9"}, {}, True).equal
    assert row_of("r1", {"received": []}, {}, True).equal


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


def test_what_a_receiver_does_not_count_is_none() -> None:
    row = row_of("r1", WHOLE | {"counts": {"data_received": 95}}, EXPECTED, True)
    assert (row.loss, row.nacks_sent, row.nacks_suppressed, row.handled) == (None, None, None, 95)
    silent = row_of("r1", WHOLE | {"counts": {"data_received": 0, "data_lost": 0, "nacks_sent": 0}}, EXPECTED, True)
    assert (silent.loss, silent.nacks_sent, silent.nacks_suppressed) == (None, 0, None)


def test_sums_and_means_are_of_those_who_count() -> None:
    counted, not_counted = row_of("r1", WHOLE, EXPECTED, True), row_of("r2", {"fault": "died by signal 9"}, EXPECTED, True)
    common: dict[str, Any] = {"packets": {}, "octets": {}, "expected": EXPECTED, "began_at": 0.0, "segment": 40}
    one = combine(rows=[counted, not_counted], senders=[{"counts": {"data_sent": 5}}, {}], **common)
    assert (one["loss"], one["nacks_sent"], one["nacks_suppressed"], one["data_sent"]) == (0.05, 3, 1, 5)
    assert (one["repairs_sent"], one["nacks_received"], one["sender_handled"], one["receiver_handled"]) == (None, None, 5, 98)
    none = combine(rows=[not_counted], senders=[{}], **common)
    keys = ("loss", "nacks_sent", "nacks_suppressed", "nacks_received", "data_sent", "sender_handled", "receiver_handled")
    assert [none[key] for key in keys] == [None] * len(keys)


def test_repairs_are_those_of_all_members_also_where_receivers_repair() -> None:
    changes = ["protocol={name: srm, rate: 20Mbit, segment: 1400}", "workload.size=400kB"]
    result = run(load(find_scenario("lan-file"), changes))
    of_receivers = sum(row.repairs_sent or 0 for row in result.receivers)
    assert result.metrics["repairs_sent"] == result.metrics["storm"]["repairs"] > of_receivers > 0
    assert summary(result)["repairs"] == str(result.metrics["repairs_sent"])


@pytest.fixture
def of_gossip(gossip: Path) -> Result:
    """Run a protocol that counts only data sent and received."""
    changes = ["topology.receivers=3", "workload.size=50kB", f"protocol={{module: {gossip}, rate: 10Mbit}}"]
    return run(load(find_scenario("lan-file"), changes))


def test_a_protocol_that_does_not_count_losses_and_feedback_has_none_in_every_output(of_gossip: Result, tmp_path: Path) -> None:
    missing = ("loss", "nacks_sent", "nacks_suppressed", "nacks_received", "repairs_sent")
    assert [of_gossip.metrics[key] for key in missing] == [None] * len(missing)
    plain = json.loads(json.dumps(of_gossip.plain()))
    assert {(row["loss"], row["nacks_sent"], row["nacks_suppressed"]) for row in plain["receivers"]} == {(None, None, None)}
    assert {summary(of_gossip)[key] for key in ("loss [%]", "NACKs sent", "repairs")} == {None}
    write(of_gossip, load(find_scenario("lan-file")), tmp_path)
    with (tmp_path / "receivers.csv").open() as file:
        assert {(row["loss"], row["nacks_suppressed"]) for row in csv.DictReader(file)} == {("", "")}


def test_a_sweep_stores_null_for_what_a_protocol_does_not_count(of_gossip: Result) -> None:
    values = metrics_of(of_gossip)
    empty = {"loss", "nacks_sent", "nacks_suppressed", "nacks_received", "repairs_sent", "duplicates"}
    assert empty == {name for name in empty if values[name] is None}
    assert values["transmissions"] == pytest.approx(12.0)  # copies
    assert values["feedback"] == 0.0
    of_a_receiver = receiver_metrics_of(of_gossip.receivers[0])
    assert (of_a_receiver["loss"], of_a_receiver["nacks_suppressed"], of_a_receiver["objects"]) == (None, None, 1.0)
    frame = pa.Table.from_pylist([{f"m_{name}": value for name, value in values.items()}], runs_schema({}))
    assert frame.column("m_loss").null_count == 1


def test_feedback_of_packets_that_were_not_decoded_is_unknown(of_gossip: Result) -> None:
    assert packets_of(of_gossip, "nack", "ack") == 0
    unread = replace(of_gossip, metrics=of_gossip.metrics | {"packets": {"total": 9, "datagram": 9}})
    assert packets_of(unread, "nack", "ack") is None


def test_the_line_about_several_cases_names_those_that_are_incomplete() -> None:
    path = find_scenario(Path("lan-file"))
    done, cut = (run(load(path, ["workload.size=10kB", *more])) for more in ([], ["duration=1ms"]))
    assert brief({"a": done, "b": cut}).endswith(": 1 of 2 complete; incomplete: b")
    assert brief({"a": done, "b": done}).endswith(": 2 of 2 complete: a, b")
