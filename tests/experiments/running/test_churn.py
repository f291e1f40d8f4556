"""Publishers and subscribers that leave and come again (`churn`), and crashes of hosts that take no part at the moment."""

from typing import Any

import pytest

from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UnsupportedError

LINK = {"rate": "10Mbit", "overhead": "ethernet"}
PUBLISH = {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 200, "rate": "100/s", "until": "2s"}


def result_of(*works: dict[str, Any], faults: list[dict[str, Any]], protocol: str = "fjm2", **more: Any) -> Result:
    data = {
        "name": "churn",
        "topology": {"kind": "lan", "receivers": 3, "link": LINK},
        "protocol": {"name": protocol, "rate": "5Mbit"},
        "workload": [PUBLISH, *works],
        "faults": faults,
        "duration": "30s",
        **more,
    }
    result = run(parse(data, "churn"))
    assert result.violations == []
    return result


def rows(result: Result, kind: str = "subscriptions") -> list[dict[str, Any]]:
    assert result.messages is not None
    return result.messages[kind]


def subscribed(*hosts: str, **more: Any) -> dict[str, Any]:
    return {"kind": "subscribe", "hosts": list(hosts), "to": "topic:t", **more}


def test_a_subscriber_that_leaves_misses_what_is_published_meanwhile() -> None:
    away = {"at": "500ms", "churn": "r1", "for": "200ms", "times": 2, "every": "600ms"}
    result = result_of(subscribed("r1", "r2"), faults=[away])
    first, second = rows(result)
    assert result.metrics["injected"]["churn"] == 2
    assert (first["lost"], second["lost"]) == (pytest.approx(40, abs=2), 0)
    # It left by itself, so that nothing was interrupted, and nothing was promised.
    assert (first["interruptions"], first["missing"], first["repeated"]) == (0, 0, 0)


def test_a_publisher_that_leaves_publishes_nothing_meanwhile_and_numbers_apart() -> None:
    result = result_of(subscribed("r1"), faults=[{"at": "500ms", "churn": "sender", "for": "500ms"}])
    assert rows(result, "publishers")[0]["published"] == pytest.approx(150, abs=2)
    assert rows(result)[0]["delivered"] == pytest.approx(150, abs=2)


@pytest.mark.parametrize("nodes", [{}, {"sender": {"role": "both"}}], ids=["two machines", "both"])
def test_publisher_and_subscriber_of_one_host_leave_together(nodes: dict[str, Any]) -> None:
    away = [{"at": "500ms", "churn": "sender", "for": "500ms"}, {"at": "600ms", "churn": "sender", "for": "100ms"}]
    result = result_of(subscribed("sender", "r1"), faults=away, nodes=nodes)
    # The second one began and ended while they were away; it brings them back.
    assert rows(result, "publishers")[0]["published"] == pytest.approx(180, abs=2)
    assert all(row["delivered"] >= 178 for row in rows(result))


def test_a_host_that_crashes_while_its_subscriber_is_away_comes_back_once() -> None:
    faults = [{"at": "300ms", "churn": "r1", "for": "400ms"}, {"at": "400ms", "crash": "r1", "for": "800ms"}]
    row = rows(result_of(subscribed("r1"), faults=faults))[0]
    # Away from 300 ms to the end of the crash, 1.2 s.
    assert (row["delivered"], row["repeated"]) == (pytest.approx(110, abs=2), 0)


@pytest.mark.parametrize("at", ["200ms", "900ms"])
def test_a_subscriber_whose_host_crashed_before_it_subscribes_does_so_when_the_host_is_up(at: str) -> None:
    crash = {"at": at, "crash": "r1", "for": "300ms"}
    row = rows(result_of(subscribed("r1", at="1s"), faults=[crash]))[0]
    assert row["delivered"] == pytest.approx(100 if at == "200ms" else 80, abs=2)


def test_a_receiver_of_files_whose_host_crashes_before_it_joins_does_so_when_the_host_is_up() -> None:
    data = {
        "name": "late",
        "topology": {"kind": "lan", "receivers": 2, "link": LINK},
        "protocol": {"name": "norm", "rate": "4Mbit"},
        "workload": {"size": "100kB"},
        "receivers": [{"hosts": ["r1"], "join": "500ms"}],
        "faults": [{"at": "400ms", "crash": "r1", "for": "300ms"}],
        "duration": "30s",
    }
    result = run(parse(data, "late"))
    assert result.violations == []
    assert result.metrics["injected"]["restart"] == 1


def test_a_crash_of_a_host_without_any_program_has_no_effect() -> None:
    result = result_of(subscribed("r1"), faults=[{"at": "500ms", "crash": "r3", "for": "100ms"}])
    assert result.completed
    assert "crash" not in result.metrics["injected"]


@pytest.mark.emu
def test_mininet_refuses_churn() -> None:
    with pytest.raises(UnsupportedError, match=r"faults\.0: Mininet can't do 'churn'"):
        run(
            parse(
                {
                    "name": "churn",
                    "topology": {"kind": "lan", "receivers": 2, "link": LINK},
                    "protocol": {"name": "fjm2"},
                    "workload": [PUBLISH, subscribed("r1")],
                    "faults": [{"at": "1s", "churn": "r1", "for": "1s"}],
                },
                "churn",
            ),
            "emu",
        )
