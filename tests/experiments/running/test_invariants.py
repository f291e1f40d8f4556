"""The checker of runs: each rule is reported if it is broken, and only then."""

from typing import Any

import pytest

from experiments.contract.fake_host import FakeHost
from experiments.contract.recorder import Recorder
from experiments.running import quiescence as silence
from experiments.running.content import Extent, Generated, digest_of
from experiments.running.invariants import Invariants
from experiments.running.program import Node, ReceiverProgram, accounted
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.events import Event, ObjectReceived, SenderHeard
from protocols.machine import Content, Group
from protocols.norm import PROTOCOL as NORM


def checker(ordered: bool = False) -> Invariants:
    """Build a checker for sender 1 with objects 0 (100 bytes, "a") and 1 (200 bytes, "b")."""
    found = Invariants(ordered)
    found.submitted(1, 0, Content(Extent(100), b"a"))
    found.submitted(1, 1, Content(Extent(200), b"b"))
    return found


FIRST, SECOND = ObjectReceived(1, 0, 100, b"a"), ObjectReceived(1, 1, 200, b"b")


def rules(found: Invariants) -> list[str]:
    return [violation.rule for violation in found.violations]


def test_any_delivery_order_is_allowed_without_ordering() -> None:
    found = checker()
    found.received("r1", SECOND, False, 1.0)
    found.received("r1", FIRST, False, 2.0)
    found.received("r2", FIRST, False, 2.0)
    assert rules(found) == []


@pytest.mark.parametrize(
    ("event", "again", "rule"),
    [
        (FIRST, True, "once"),
        (ObjectReceived(1, 7, 100, b"a"), False, "sent"),
        (ObjectReceived(2, 0, 100, b"a"), False, "sent"),
        (ObjectReceived(1, 0, 101, b"a"), False, "intact"),
        (ObjectReceived(1, 0, 100, b"b"), False, "intact"),
    ],
)
def test_a_wrong_delivery_is_reported(event: ObjectReceived, again: bool, rule: str) -> None:
    found = checker()
    found.received("r1", event, again, 1.5)
    (violation,) = found.violations
    assert (violation.rule, violation.host, violation.at) == (rule, "r1", 1.5)


def test_an_object_ends_only_once() -> None:
    found = checker()
    found.aborted("r1", (1, 0), False, 1.0)
    found.received("r2", FIRST, False, 2.0)
    assert rules(found) == []
    found.received("r1", FIRST, False, 2.0)
    found.aborted("r2", (1, 0), True, 3.0)
    found.aborted("r1", (1, 0), False, 3.0)
    assert rules(found) == ["once"] * 3


def test_a_restarted_receiver_may_receive_an_object_again() -> None:
    found = checker(ordered=True)
    found.received("r1", SECOND, False, 1.0)
    found.aborted("r1", (1, 0), False, 1.0)
    found.forget("r1", 1)
    found.received("r1", FIRST, False, 2.0)
    assert rules(found) == []


LAN = {"kind": "lan", "receivers": 4, "link": {"delay": "1ms", "down": {"loss": "5%"}}}
FORGETFUL = {"name": "norm", "rate": "2Mbit", "grtt": "20ms", "segment": 500, "senders": 1}


@pytest.mark.parametrize("name", ["norm", "fjm2"])
def test_objects_of_a_sender_that_was_forgotten_may_end_again(name: str) -> None:
    work = [{"from": host, "size": "20kB"} for host in ("sender", "r1", "r2")]
    protocol = {**FORGETFUL, "name": name}
    found = run(parse({"name": "x", "topology": LAN, "protocol": protocol, "workload": work, "duration": "3s"}, "here"))
    # Each is given up more than once.
    assert sum(row.aborted for row in found.receivers) > 2 * len(work)
    assert found.violations == []


def test_the_objects_that_came_before_a_sender_was_forgotten_count_once() -> None:
    node = Node(NORM, NORM.config(), 2, Group("239.0.0.1:1"))
    program, host, invariants = ReceiverProgram(node, accounted), FakeHost("r1"), checker()
    program.check_with("r1", invariants)
    program.start(host)

    def tell(*events: Event) -> None:
        for event in events:
            host.call(lambda now, event=event: host.notify(event))

    tell(SenderHeard(1), FIRST, SenderHeard(1), FIRST)
    assert (rules(invariants), program.duplicates, program.octets) == ([], 0, 100)
    tell(FIRST)
    assert (rules(invariants), program.duplicates, program.octets) == (["once"], 1, 100)


def test_messages_of_more_publishers_than_a_subscriber_remembers_may_come_again() -> None:
    publish = {"kind": "publish", "to": "topic:t", "size": 300, "count": 50, "rate": "200/s"}
    work = [{**publish, "hosts": ["sender", "r1"]}, {"kind": "subscribe", "hosts": ["r3"], "to": "topic:t"}]
    found = run(parse({"name": "x", "topology": LAN, "protocol": FORGETFUL, "workload": work, "duration": "3s"}, "here"))
    assert found.metrics["messages"]["repeated"] > 0
    assert found.violations == []


def test_ordered_delivery_is_checked() -> None:
    found = checker(ordered=True)
    found.received("r1", SECOND, False, 1.0)
    found.received("r2", FIRST, False, 2.0)
    found.received("r2", SECOND, False, 2.0)
    assert rules(found) == []
    found.received("r1", FIRST, False, 2.0)
    assert rules(found) == ["order"]


def test_content_with_bytes_is_compared() -> None:
    found = Invariants()
    source = Generated(1000, 1, "x")
    found.submitted(1, 0, Content(source, b""))
    good, bad, none = ([1, 0, 1000, digest] for digest in (digest_of(source), "0" * 64, None))
    for name, row in (("good", good), ("bad", bad), ("none", none)):
        found.inspect(name, None, {"received": [row]}, 9.0)
    assert [(violation.rule, violation.host) for violation in found.violations] == [("intact", "bad")]


def test_a_machine_that_exceeds_its_memory_bound_is_reported() -> None:
    recorder = Recorder()
    machine = NORM.make_receiver(recorder, NORM.config(), 2, Group("all"))
    found = Invariants()
    found.check_memory("r1", machine, 1.0)
    assert rules(found) == []
    assert set(machine.held()) == {"pending objects", "bytes of parity", "stream blocks"}
    object.__setattr__(machine.session.config, "window", -1)  # type: ignore[attr-defined]
    found.check_memory("r1", machine, 1.0)
    assert rules(found) == ["memory"]


def test_only_the_first_violations_are_listed_and_all_are_counted() -> None:
    found = checker()
    for _ in range(1000):
        found.received("r1", FIRST, True, 1.0)
    plain: dict[str, Any] = found.plain(observed=True)
    assert (plain["broken"], len(plain["violations"])) == (1000, 100)
    assert plain["checked"] == ["once", "intact", "sent", "memory", "quiescence"]


def test_a_large_group_is_not_checked_and_the_result_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LARGEST", 10)
    data = {
        "name": "large",
        "topology": {"kind": "star", "receivers": 10},
        "protocol": {"name": "norm", "robust": 2},
        "workload": {"size": "3kB"},
    }
    assert run(parse(data, "large")).metrics["invariants"]["checked"] == ["once", "intact", "sent", "memory"]


def test_messages_that_are_repaired_slowly_are_not_called_untold() -> None:
    # With heartbeats the network is never without events, and at the end of the run thousands of segments are still missing.
    link = {"rate": "10Mbit", "delay": "2ms", "down": {"loss": "30%"}}
    publish = {"kind": "publish", "hosts": ["sender"], "to": "/t", "at": "500ms", "size": 9000, "rate": "50/s", "count": 60}
    found = run(
        parse(
            {
                "name": "slow repairs",
                "seed": 625135,
                "protocol": {"name": "distributor", "requested": 2, "heartbeat": "200ms", "heartbeats_lost": 5, "segment": 300},
                "topology": {"kind": "star", "receivers": 3, "link": link},
                "workload": [{**publish, "linger": "3s"}, {"kind": "subscribe", "hosts": ["r"], "to": ["/t"]}],
                "duration": "30s",
            },
            "test",
        )
    )
    assert found.metrics["messages"]["lost"]
    assert found.violations == []


def test_a_run_whose_losses_are_repaired_slowly_comes_to_rest() -> None:
    # Segments are requested one by one over a long way, although no update in them is for the subscriber; heartbeats never end.
    link = {"rate": "10Mbit", "delay": "100ms", "down": {"loss": "20%"}, "up": {"loss": "20%"}}
    protocol = {"name": "distributor", "requested": 1, "receive_queue": 1, "heartbeat": "100ms", "segment": 200}
    publish = {"kind": "publish", "hosts": ["sender"], "to": "/t", "size": 0, "rate": "200/s", "count": 600}
    data = {
        "name": "slow repairs",
        "protocol": protocol,
        "topology": {"kind": "star", "receivers": 1, "link": link},
        "workload": [publish, {"kind": "subscribe", "hosts": ["r1"], "to": ["/other"]}],
        "duration": "60s",
    }
    found = run(parse(data, "test"))
    assert "quiescence" in found.metrics["invariants"]["checked"]
    assert found.violations == []
