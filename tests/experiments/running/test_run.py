"""Runs of whole scenarios: the result, and its reproducibility."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import Scenario, load, parse
from protocols.errors import UsageError

READY = Path(__file__).parents[3] / "experiments" / "scenarios"

SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "star", "receivers": 5, "link": {"rate": "100Mbit", "delay": "2ms", "down": {"loss": "3%"}}},
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "50ms", "robust": 5},
    "workload": {"size": "200kB"},
}


def small(**changes: Any) -> Scenario:
    return parse(SMALL | changes, "test")


def test_the_result_is_one_json_object_with_the_documented_keys() -> None:
    result = json.loads(json.dumps(run(small()).plain(), allow_nan=False))
    assert list(result) == ["scenario", "digest", "backend", "seed", "completed", "fingerprint", "metrics", "receivers"]
    assert (result["scenario"], result["backend"], result["seed"], result["completed"]) == ("small", "sim", 1, True)
    assert result["digest"] == small().digest()
    assert [row["name"] for row in result["receivers"]] == ["r1", "r2", "r3", "r4", "r5"]


def test_every_receiver_gets_everything_once_and_the_result_states_how_it_was_checked() -> None:
    for row in run(small()).receivers:
        assert (row.objects, row.bytes, row.equal, row.duplicates, row.aborted) == (1, 200_000, True, 0, 0)
        assert row.proof == "erasure accounting"
    assert {row.proof for row in run(small(wire="bytes")).receivers} == {"sha256"}


def test_metrics_are_consistent() -> None:
    result = run(small())
    metrics, rows = result.metrics, result.receivers
    last = max(row.completed_at or 0.0 for row in rows)
    assert metrics["completion_time"] == last
    assert metrics["goodput_mbit_s"] == pytest.approx(200_000 * 8e-6 / last)
    assert metrics["overhead"] == metrics["bytes_sent"] / 200_000
    assert metrics["packets"]["total"] == sum(count for kind, count in metrics["packets"].items() if kind != "total")
    assert metrics["packets"]["nack"] == metrics["nacks_sent"] == sum(row.nacks_sent or 0 for row in rows)
    # A NACK is multicast, so the sender receives each unless it is in flight at the end of the run.
    assert metrics["nacks_received"] <= metrics["nacks_sent"]
    assert metrics["packets"]["data"] == metrics["data_sent"] + metrics["repairs_sent"]
    assert metrics["objects"] == 1
    assert metrics["events"] > 0


def test_loss_measured_by_receivers_equals_loss_on_the_links() -> None:
    result = run(small(workload={"size": "2MB"}))
    # 5 receivers x about 1500 packets at 3 %: standard error sqrt(.03 * .97 / 7500) = 0.2 %.
    assert result.metrics["loss"] == pytest.approx(0.03, abs=4 * 0.002)
    (down,) = [row for row in result.metrics["impairments"] if row["link"] == "s1-r"]
    assert down["lost"] / down["offered"] == pytest.approx(0.03, abs=4 * 0.002)


def test_without_loss_there_are_no_nacks() -> None:
    result = run(small(topology={"kind": "lan", "receivers": 3}))
    assert (result.completed, result.metrics["nacks_sent"], result.metrics["repairs_sent"]) == (True, 0, 0)
    assert result.metrics["impairments"] == []


def test_objects_that_arrive_too_late_are_incomplete() -> None:
    result = run(small(duration="100ms"))
    assert not result.completed
    assert {row.completed_at for row in result.receivers} == {None}
    assert result.metrics["completion_time"] is None
    assert result.metrics["duration"] == pytest.approx(0.1)


def test_objects_that_were_submitted_too_late_are_incomplete() -> None:
    result = run(small(workload=[{"size": 1000}, {"size": 1000, "at": "19.999s"}], duration="20s"))
    assert not result.completed
    assert not any(row.equal for row in result.receivers)


def test_objects_of_several_senders_and_submission_times_arrive() -> None:
    work = [{"size": "50kB"}, {"from": "r2", "size": 0, "at": "300ms", "count": 2}, {"from": "r2", "size": 1, "at": "1s"}]
    result = run(small(workload=work, wire="bytes"))
    assert result.completed
    assert [(row.name, row.objects, row.bytes) for row in result.receivers] == [
        (name, 4, 50_001) for name in ("r1", "r3", "r4", "r5")
    ]


@pytest.mark.parametrize("engine", ["fast", "strict"])
def test_sessions_of_different_members_of_a_counted_group_do_not_share_their_links(engine: str) -> None:
    nodes = {"a": {}, "b": {}, "s": {"kind": "switch"}, "c": {"count": 2}}
    links = [{"ends": [name, "s"], "rate": "10Mbit"} for name in ("a", "b")]
    graph = {"kind": "graph", "nodes": nodes, "links": [*links, {"ends": ["s", "c"], "rate": "4Mbit", "queue": 10}]}
    files = [{"from": source, "size": "200kB", "members": [to], "group": to} for source, to in (("a", "c1"), ("b", "c2"))]
    protocol = SMALL["protocol"] | {"rate": "3Mbit"}
    result = run(small(topology=graph, protocol=protocol, workload=files, engine=engine))
    assert result.completed
    assert result.metrics["loss"] == 0.0


def test_a_run_ends_soon_after_its_senders_finish() -> None:
    result = run(small(duration="1000s"))
    # 200 kB at 10 Mbit/s, repairs, and five flushes of two GRTT (at most 53 ms as quantised) each.
    assert result.metrics["duration"] < 3


# -- reproducibility ---------------------------------------------------------------------------------------------------


def test_the_same_seed_repeats_the_run_and_another_does_not() -> None:
    first, again, other = run(small()), run(small()), run(small(seed=2))
    assert first.fingerprint == again.fingerprint
    assert first.receivers == again.receivers
    assert first.fingerprint != other.fingerprint


@pytest.mark.parametrize("name", ["lan-file", "no-parity", "two-senders"])
def test_message_objects_and_encoded_messages_give_the_same_run(name: str) -> None:
    objects, encoded = (run(load(READY / f"{name}.yaml", [f"wire={wire}"])) for wire in ("objects", "bytes"))
    assert objects.completed
    assert encoded.completed
    assert objects.fingerprint == encoded.fingerprint


def test_the_fingerprint_does_not_depend_on_the_hash_seed_of_the_process() -> None:
    code = (
        "import json; from tests.experiments.running.test_run import small, run; r = run(small());"
        "print(json.dumps([r.fingerprint, r.digest]))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(answers) == 1
    assert json.loads(answers.pop()) == [run(small()).fingerprint, small().digest()]


# -- worlds -------------------------------------------------------------------------------------------------------------


def test_an_unknown_world_is_refused() -> None:
    with pytest.raises(UsageError, match="'moon' is not allowed; one of sim, emu"):
        run(small(), "moon")


@pytest.mark.emu
def test_the_same_scenario_runs_in_mininet_and_the_content_is_compared_by_sha256() -> None:
    link = {"rate": "50Mbit", "down": {"loss": "3%"}}
    scenario = small(topology={"kind": "star", "receivers": 2, "link": link}, duration="20s")
    result = run(scenario, "emu")
    assert result.completed
    assert result.fingerprint is None
    assert [(row.name, row.bytes, row.equal, row.proof) for row in result.receivers] == [
        ("r1", 200_000, True, "sha256"),
        ("r2", 200_000, True, "sha256"),
    ]
    assert {row.get("loss_by") for row in result.metrics["impairments"]} >= {"cbpf"}
    json.dumps(result.plain(), allow_nan=False)


@pytest.mark.emu
def test_sixty_four_hosts_on_one_switch_all_get_the_file() -> None:
    scenario = small(
        topology={"kind": "lan", "receivers": 63, "link": {"rate": "100Mbit", "queue": 200, "down": {"loss": "2%"}}},
        protocol={"name": "norm", "rate": "10Mbit", "grtt": "50ms", "robust": 5},
        workload={"size": "400kB"},
        duration="40s",
    )
    result = run(scenario, "emu")
    assert (result.completed, len(result.receivers)) == (True, 63)
    # 63 times at least 286 packets: the standard error of a mean loss of 2 % is 0.1 %.
    assert result.metrics["loss"] == pytest.approx(0.02, abs=0.004)
    assert result.metrics["setup"] > 0


def test_objects_queued_for_the_window_are_sent_before_the_run_ends() -> None:
    # With only one flush, the sender finishes flushing before the next object can enter the window.
    tight = {"name": "norm", "rate": "10Mbit", "grtt": "50ms", "robust": 1, "cache_min": 2, "cache_max": 2}
    result = run(small(protocol=tight, workload={"size": "5kB", "count": 6}, topology={"kind": "lan", "receivers": 2}))
    assert result.completed
    assert [row.objects for row in result.receivers] == [6, 6]
