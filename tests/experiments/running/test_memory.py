"""Hosts with a limited memory: a publisher without bounds dies, one with bounds lives, in both worlds."""

from typing import Any

import pytest

from experiments.running.emulate import emulate_scenario
from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError


def plain(
    protocol: str = "bus", memory: str = "16MB", subscribe: dict[str, Any] | None = None, **publish: Any
) -> dict[str, Any]:
    """Return a scenario whose publisher has little memory and a link of 10 Mbit/s."""
    work = {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": "4kB", "rate": "saturated", "at": "500ms"}
    return {
        "name": "memory",
        "topology": {
            "kind": "lan",
            "receivers": 2,
            "link": {"rate": "10Mbit", "overhead": "ethernet", "queue": 100},
            "nodes": {"sender": {"memory": memory}},
        },
        "protocol": {"name": protocol, "rate": "9.2Mbit"},
        "workload": [
            {**work, "until": "10s", **publish},
            {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t", **(subscribe or {})},
        ],
        "duration": "15s",
    }


def fault_of(result: Result) -> str:
    return str(result.metrics["faults"].get("sender", {}).get("error", ""))


def test_a_bus_ends_its_host_when_it_keeps_more_than_fits_and_the_run_is_over() -> None:
    result = simulate(parse(plain(), "test"))
    assert fault_of(result).startswith("out of memory: it has 16 MB, at ")
    assert result.metrics["duration"] < 4.0
    assert not result.completed
    assert result.metrics["invariants"]["violations"] == []


def test_what_several_programs_of_a_host_keep_adds_up() -> None:
    one, two = (simulate(parse(plain(clients=clients), "test")) for clients in (1, 2))
    assert fault_of(two)
    assert two.metrics["duration"] - 0.5 < 0.7 * (one.metrics["duration"] - 0.5)


@pytest.mark.parametrize("change", [{"rate": "20/s"}, {"size": 300}, {"protocol": "norm"}, {"memory": "256MB"}])
def test_a_pause_small_messages_a_bound_and_more_memory_save_it(change: dict[str, Any]) -> None:
    result = simulate(parse(plain(**{"until": "4s", **change}), "test"))
    assert fault_of(result) == ""


@pytest.mark.emu
def test_in_mininet_the_process_dies_by_its_limit_and_the_result_says_so() -> None:
    # Large messages, which a busy machine publishes fast enough, too.
    result = emulate_scenario(parse(plain(size="8kB"), "test"))
    assert fault_of(result) == "out of memory: it has 16 MB"
    assert 0.5 < result.metrics["duration"] < 10.0
    assert result.messages["publishers"][0]["published"] > 1000  # type: ignore[index]
    assert all(row["delivered"] > 20 for row in result.messages["subscriptions"])  # type: ignore[index]


@pytest.mark.emu
def test_in_mininet_a_pause_saves_it() -> None:
    result = emulate_scenario(parse(plain(rate="20/s", until="3s"), "test"))
    assert fault_of(result) == ""
    assert result.completed


def test_with_the_fault_of_ibus_a_subscriber_that_leaves_ends_the_publisher() -> None:
    data = plain(rate="20/s", until="6s")
    data["workload"][1] = {**data["workload"][1], "hosts": ["r1"]}
    data["workload"].append({"kind": "subscribe", "hosts": ["r2"], "to": "topic:t", "until": "2s"})
    for fault, words in ((0, ""), (1, "a subscriber left, at 2.")):
        data["protocol"]["leave_fault"] = fault
        assert fault_of(simulate(parse(data, "test"))).startswith(words or "\0") == bool(words)


@pytest.mark.parametrize(("memory", "words"), [("1MB", "topology"), ("-1", "topology")])
def test_a_memory_that_is_too_small_is_refused(memory: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(plain(memory=memory), "test")
