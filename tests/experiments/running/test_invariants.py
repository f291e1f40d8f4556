"""The checker of runs: each rule speaks when it is broken, and not when it is not."""

from typing import Any

import pytest

from experiments.contract.recorder import Recorder
from experiments.running import quiescence as silence
from experiments.running.content import Extent, Generated, digest_of
from experiments.running.invariants import Invariants
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.events import ObjectReceived
from protocols.machine import Content, Group
from protocols.norm import PROTOCOL as NORM


def checker(ordered: bool = False) -> Invariants:
    """Sender 1 sent objects 0 (100 bytes, "a") and 1 (200 bytes, "b")."""
    found = Invariants(ordered)
    found.submitted(1, 0, Content(Extent(100), b"a"))
    found.submitted(1, 1, Content(Extent(200), b"b"))
    return found


FIRST, SECOND = ObjectReceived(1, 0, 100, b"a"), ObjectReceived(1, 1, 200, b"b")


def rules(found: Invariants) -> list[str]:
    return [violation.rule for violation in found.violations]


def test_what_was_sent_may_come_in_any_order_where_none_is_promised() -> None:
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
def test_what_is_wrong_with_a_delivery_is_said(event: ObjectReceived, again: bool, rule: str) -> None:
    found = checker()
    found.received("r1", event, again, 1.5)
    (violation,) = found.violations
    assert (violation.rule, violation.host, violation.at) == (rule, "r1", 1.5)


def test_an_object_ends_once() -> None:
    found = checker()
    found.aborted("r1", (1, 0), False, 1.0)
    found.received("r2", FIRST, False, 2.0)
    assert rules(found) == []
    found.received("r1", FIRST, False, 2.0)
    found.aborted("r2", (1, 0), True, 3.0)
    found.aborted("r1", (1, 0), False, 3.0)
    assert rules(found) == ["once"] * 3


def test_who_forgot_may_hear_it_again() -> None:
    found = checker(ordered=True)
    found.received("r1", SECOND, False, 1.0)
    found.aborted("r1", (1, 0), False, 1.0)
    found.forget("r1", 1)
    found.received("r1", FIRST, False, 2.0)
    assert rules(found) == []


def test_order_counts_where_it_is_promised() -> None:
    found = checker(ordered=True)
    found.received("r1", SECOND, False, 1.0)
    found.received("r2", FIRST, False, 2.0)
    found.received("r2", SECOND, False, 2.0)
    assert rules(found) == []
    found.received("r1", FIRST, False, 2.0)
    assert rules(found) == ["order"]


def test_content_is_compared_where_there_is_any() -> None:
    found = Invariants()
    source = Generated(1000, 1, "x")
    found.submitted(1, 0, Content(source, b""))
    good, bad, none = ([1, 0, 1000, digest] for digest in (digest_of(source), "0" * 64, None))
    for name, row in (("good", good), ("bad", bad), ("none", none)):
        found.inspect(name, None, {"received": [row]}, 9.0)
    assert [(violation.rule, violation.host) for violation in found.violations] == [("intact", "bad")]


def test_a_machine_that_keeps_too_much_is_noticed() -> None:
    recorder = Recorder()
    machine = NORM.make_receiver(recorder, NORM.config(), 2, Group("all"))
    found = Invariants()
    found.check_memory("r1", machine, 1.0)
    assert rules(found) == []
    assert set(machine.held()) == {"pending objects", "bytes of parity"}
    object.__setattr__(machine.session.config, "window", -1)  # type: ignore[attr-defined]
    found.check_memory("r1", machine, 1.0)
    assert rules(found) == ["memory"]


def test_only_the_first_violations_are_written_down_and_all_are_counted() -> None:
    found = checker()
    for _ in range(1000):
        found.received("r1", FIRST, True, 1.0)
    plain: dict[str, Any] = found.plain(observed=True)
    assert (plain["broken"], len(plain["violations"])) == (1000, 100)
    assert plain["checked"] == ["once", "intact", "sent", "memory", "quiescence"]


def test_a_large_group_is_not_listened_to_and_the_result_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LARGEST", 10)
    data = {
        "name": "large",
        "topology": {"kind": "star", "receivers": 10},
        "protocol": {"name": "norm", "robust": 2},
        "workload": {"size": "3kB"},
    }
    assert run(parse(data, "large")).metrics["invariants"]["checked"] == ["once", "intact", "sent", "memory"]
