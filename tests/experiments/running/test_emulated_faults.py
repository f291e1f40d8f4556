"""Faults of a scenario in Mininet occur on time and have the same effects as in the simulator."""

from typing import Any

import pytest

from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UnsupportedError

LATE = 0.3
"""Tolerated delay of a fault in seconds on a very busy machine; on an idle one it is milliseconds."""


def run_faults(faults: list[dict[str, Any]], world: str = "emu", **changes: Any) -> Result:
    """Send six files in about two seconds to four receivers, with no losses except by faults."""
    data = {
        "name": "faulty",
        "topology": {"kind": "star", "receivers": 4},
        "protocol": {"name": "norm", "rate": "8Mbit", "grtt": "20ms", "gsize": 10, "robust": 10},
        "workload": {"kind": "file", "size": "300kB", "count": 6},
        "faults": faults,
        "duration": "20s",
    }
    return run(parse(data | changes, "FILE"), world)


def losses(result: Result) -> dict[str, float]:
    """Return the share of packets that each receiver lost, where it is known."""
    return {row.name: row.loss for row in result.receivers if row.loss is not None}


def is_on_time(result: Result) -> bool:
    """Return whether every fault began and ended on time."""
    log = result.metrics["fault_log"]
    return all(0 <= row["began"] - row["at"] < LATE for row in log) and all(
        0 <= row["ended"] - row["until"] < LATE for row in log if row["until"] is not None
    )


@pytest.mark.emu
@pytest.mark.serial
def test_partitions_and_failed_links_drop_what_is_sent_meanwhile() -> None:
    faults: list[dict[str, Any]] = [
        {"at": "300ms", "partition": [["r1", "r2"], "rest"], "for": "200ms"},
        {"at": "800ms", "flap": ["s1", "r3"], "for": "50ms", "times": 2},
    ]
    result, simulated = run_faults(faults), run_faults(faults, "sim")
    assert result.completed, result
    assert result.metrics["injected"] == {"partition": 1, "flap": 2}
    assert is_on_time(result)
    assert [(row["verb"], row["what"]) for row in result.metrics["fault_log"]] == [
        ("partition", "r1,r2 | rest"),
        ("flap", "s1-r3"),
        ("flap", "s1-r3"),
    ]
    for name, lost in losses(simulated).items():
        # About 140 of 1500 packets are sent in 200 ms; a fault that is 10 ms late loses 7 others.
        assert losses(result)[name] == pytest.approx(lost, abs=0.02), name
    assert losses(result)["r4"] == 0 < losses(result)["r3"] < losses(result)["r1"]


@pytest.mark.emu
@pytest.mark.parametrize(("at", "is_lost"), [("0s", True), ("900ms", False)])
def test_a_failed_link_loses_what_enters_it_and_not_what_is_on_it(at: str, is_lost: bool) -> None:
    # A file is sent within 0.3 s and arrives 0.8 s later.
    network = {
        "kind": "graph",
        "nodes": {"sender": None, "s1": {"kind": "switch"}, "r1": None, "r2": None},
        "links": [{"ends": ["sender", "s1"]}, {"ends": ["s1", "r1"], "delay": "800ms"}, {"ends": ["s1", "r2"]}],
    }
    fault = {"at": at, "flap": ["s1", "r1"], "for": "500ms"}
    protocol = {"name": "norm", "rate": "8Mbit", "grtt": "1s"}
    short = {"workload": {"kind": "file", "size": "300kB"}, "topology": network, "protocol": protocol, "duration": "1.8s"}
    for world in ("sim", "emu"):
        received = {row.name: row.equal for row in run_faults([fault], world, **short).receivers}
        assert received == {"r1": not is_lost, "r2": True}, world


@pytest.mark.emu
def test_a_partition_may_be_one_way() -> None:
    # Messages of r1 do not reach the sender, which continues: r1 cannot request repairs of its earlier losses.
    faults: list[dict[str, Any]] = [
        {"at": "0s", "partition": [["r1"], "rest"], "oneway": True},
        {"at": "200ms", "flap": ["s1", "r1"], "for": "50ms"},
    ]
    result = run_faults(faults)
    assert result.metrics["injected"] == {"partition": 1, "flap": 1}
    assert not result.completed
    assert [row.equal for row in result.receivers] == [False, True, True, True]
    assert (result.receivers[0].nacks_sent or 0) > 0 == result.metrics["nacks_received"]
    assert result.metrics["fault_log"][0]["until"] is None


@pytest.mark.emu
def test_a_crashed_receiver_restarts_without_state() -> None:
    faults: list[dict[str, Any]] = [{"at": "700ms", "crash": "r4", "for": "300ms"}, {"at": "900ms", "crash": ["r3"]}]
    result, simulated = run_faults(faults), run_faults(faults, "sim")
    assert result.metrics["injected"] == {"crash": 2, "restart": 1}
    assert is_on_time(result)
    rows = {row.name: row for row in result.receivers}
    found, expected = rows["r4"].objects, {row.name: row.objects for row in simulated.receivers}
    # A restart in the middle of a file includes this file if it precedes the end of the first block.
    assert abs(found - expected.pop("r4")) <= 1
    assert {name: rows[name].objects for name in expected} == expected
    assert (rows["r1"].equal, rows["r3"].equal, rows["r4"].equal) == (True, False, False)
    assert 0 < found < 6 > rows["r3"].objects > 0
    assert result.metrics["faults"] == {}


@pytest.mark.emu
def test_a_crashed_sender_sends_everything_again_as_a_new_instance() -> None:
    result = run_faults([{"at": "500ms", "crash": "sender", "for": "200ms"}])
    assert result.completed, result
    assert result.metrics["injected"] == {"crash": 1, "restart": 1}
    # All six files again, after a quarter of them was sent before the crash.
    assert result.metrics["packets"]["data"] > 6 * 215 + 200


@pytest.mark.emu
@pytest.mark.timed
def test_a_slow_reader_loses_packets_that_overflow_its_buffer() -> None:
    # 714 packets per second arrive and 333 are read: more than half of the 214 packets of this time overflow the buffer.
    result = run_faults([{"at": "300ms", "slow": "r2", "takes": "3ms", "room": 5, "for": "300ms"}])
    assert result.completed, result
    assert 60 < result.metrics["injected"]["slow_drops"] < 160
    assert losses(result)["r2"] > 0.03
    assert losses(result)["r1"] == 0
    assert result.metrics["faults"] == {}


@pytest.mark.emu
def test_a_temporary_loss_rate_ends_on_time() -> None:
    faults: list[dict[str, Any]] = [{"at": "400ms", "change": ["s1", "r"], "loss": "30%", "for": "400ms"}]
    topology = {"kind": "star", "receivers": 4, "link": {"down": {"loss": "1%"}}}
    result = run_faults(faults, topology=topology)
    assert result.completed, result
    assert is_on_time(result)
    assert result.metrics["fault_log"][0]["what"] == "s1-r"
    # Of about 1600 packets 290 meet 30 % loss and the others 1 %: 100 are lost, with a standard error of 9.
    for name, lost in losses(result).items():
        assert lost == pytest.approx(100 / 1600, abs=0.03), name


@pytest.mark.emu
@pytest.mark.parametrize("before", ["", "20Mbit"])
def test_a_temporary_rate_limit_ends_on_time(before: str) -> None:
    # A quarter of what is sent is forwarded for 300 ms; the rest is queued or dropped by the full queue.
    faults: list[dict[str, Any]] = [{"at": "400ms", "change": ["sender", "s1"], "rate": "2Mbit", "for": "300ms"}]
    topology = {"kind": "star", "receivers": 2, "trunk": {"queue": 10, **({"rate": before} if before else {})}}
    result, simulated = run_faults(faults, topology=topology), run_faults(faults, "sim", topology=topology)
    assert result.completed, result
    assert is_on_time(result)
    for name, lost in losses(simulated).items():
        assert lost > 0.05
        assert losses(result)[name] == pytest.approx(lost, abs=0.03), name


@pytest.mark.emu
def test_what_waits_when_the_rate_changes_is_sent_at_the_new_one_in_both_worlds() -> None:
    # After 0.3 s 450 kB are sent, of which 150 kB have passed the link; 300 kB wait when its rate falls to a quarter for 2 s.
    changes: dict[str, Any] = {
        "topology": {"kind": "star", "receivers": 1, "trunk": {"rate": "4Mbit"}},
        "protocol": {"name": "norm", "rate": "12Mbit", "grtt": "500ms"},
        "workload": {"kind": "file", "size": "600kB"},
    }
    faults: list[dict[str, Any]] = [{"at": "300ms", "change": ["sender", "s1"], "rate": "1Mbit", "for": "2s"}]
    for world in ("sim", "emu"):
        row = run_faults(faults, world, **changes).receivers[0]
        # With the times that what waits had at the old rate, it would be complete after 2.27 s.
        assert row.completed_at == pytest.approx(2.77, abs=0.2), world


@pytest.mark.emu
def test_a_userspace_link_cannot_be_changed() -> None:
    with pytest.raises(UnsupportedError, match=r"link s1-r1: can't change"):
        run_faults(
            [{"at": "1s", "change": ["s1", "r"], "loss": "1%"}],
            topology={"kind": "star", "receivers": 1, "link": {"delay": "1ms"}},
        )


@pytest.mark.emu
@pytest.mark.peer
def test_a_foreign_program_crashes_and_restarts() -> None:
    work = [{"kind": "file", "size": "200kB"}, {"kind": "file", "size": "200kB", "at": "1500ms"}]
    faults: list[dict[str, Any]] = [{"at": "500ms", "crash": ["r1", "r2"], "for": "300ms"}]
    result = run_faults(faults, nodes={"r1": {"run": "nrl-norm"}}, workload=work)
    assert [row.objects for row in result.receivers] == [1, 1, 2, 2]
    assert result.metrics["injected"] == {"crash": 2, "restart": 2}
    assert result.metrics["faults"] == {}


@pytest.mark.parametrize(
    "fault",
    [
        {"hold": [["r1"], "rest"]},
        {"drift": "r1", "factor": 2},
        {"step": "r1", "forward": "1s"},
        {"storm": "r1", "rate": "1Mbit"},
    ],
    ids=lambda fault: str(next(iter(fault))),
)
def test_faults_that_mininet_cannot_do_are_refused_by_name(fault: dict[str, Any]) -> None:
    verb = next(iter(fault))
    with pytest.raises(UnsupportedError, match=rf"^faults\.1: Mininet can't do '{verb}', only partition, flap, change, "):
        run_faults([{"at": "1s", "crash": "r1"}, {"at": "1s", **fault}])


@pytest.mark.peer
def test_a_foreign_program_cannot_be_slowed_down() -> None:
    with pytest.raises(UnsupportedError, match=r"^faults\.0: r1 runs a foreign program"):
        run_faults([{"at": "1s", "slow": "r", "takes": "1ms"}], nodes={"r1": {"run": "nrl-norm"}})


@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        ({"crash": "g", "power": True}, "power"),
        ({"flap": ["g", "g.host"], "for": "1s"}, "flap"),
        ({"change": ["g.host", "g"], "loss": "1%"}, "change"),
    ],
    ids=("power", "flap", "change"),
)
def test_a_fault_of_the_machine_of_a_router_that_would_hit_what_the_router_forwards_is_refused(
    fault: dict[str, Any], verb: str
) -> None:
    changes: dict[str, Any] = {
        "topology": {
            "kind": "graph",
            "nodes": {"g": {"kind": "router"}, "p": None, "t": None, "r": None},
            "links": [{"ends": [name, "g"]} for name in ("p", "t", "r")],
        },
        "protocol": {"name": "fjm2", "rate": "1Mbit"},
        "workload": [
            {"kind": "publish", "hosts": ["p"], "to": "topic:t", "size": "1kB", "rate": "10/s", "until": "1s"},
            {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"},
        ],
        "nodes": {"g": {"role": "tunnel", "lan": "p"}, "t": {"role": "tunnel"}},
    }
    with pytest.raises(UnsupportedError, match=rf"^faults\.0: in Mininet the machine of router g .* so {verb} can't act on it"):
        run_faults([{"at": "1s", **fault}], **changes)
