"""Brokers of others as programs of hosts in Mininet, beside ours: the same messages, and what they do not carry."""

from typing import Any

import pytest

from emu.peers.brokers import BROKERS
from experiments.running.emulate import emulate_scenario
from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError, UnsupportedError

LINK = {"rate": "10Mbit", "overhead": "ethernet", "queue": 100}
PUBLISH = {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "at": "1s", "linger": "3s"}


def plain(run: str | None, where: str = "r3", n: int = 2, publish: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a scenario with a publisher, subscribers and a broker."""
    work = {**PUBLISH, "size": "16kB", "count": 50, "rate": "saturated", **(publish or {})}
    subscribe = {"kind": "subscribe", "hosts": [f"r{number}" for number in range(1, n + 1)], "to": "topic:t"}
    return {
        "name": "brokers",
        "topology": {"kind": "lan", "receivers": max(3, n + 1), "link": LINK},
        "protocol": {"name": "broker"},
        "workload": [work, {**subscribe, **more}],
        "nodes": {where: {"role": "broker"} if run is None else {"run": run}},
        "duration": "40s",
    }


def emulate(data: dict[str, Any]) -> Result:
    return emulate_scenario(parse(data, "test"))


@pytest.mark.emu
@pytest.mark.peer("mosquitto")
@pytest.mark.peer("activemq")
@pytest.mark.parametrize("run", [None, "mosquitto", "activemq"])
def test_a_broker_sends_each_of_two_subscribers_half_of_what_its_link_carries(run: str | None) -> None:
    result = emulate(plain(run))
    assert result.metrics["faults"] == {}
    assert result.completed
    assert [row["delivered"] for row in result.messages["subscriptions"]] == [50, 50]  # type: ignore[index]
    # 9.5 Mbit/s of content fit into the link beside the headers of TCP.
    assert result.metrics["goodput_mbit_s"] == pytest.approx(4.75, rel=0.15)
    # What brokers of others send is not counted, so that a total would be wrong.
    assert (result.metrics["packets"]["total"] is None) == (result.metrics["overhead"] is None) == (run is not None)


@pytest.mark.emu
@pytest.mark.peer("mosquitto")
@pytest.mark.parametrize("where", ["sender", "r1"])
def test_a_broker_of_others_may_be_on_the_host_of_a_client(where: str) -> None:
    result = emulate(plain("mosquitto", where, publish={"size": {"from": 32, "to": 3000}, "rate": "200/s", "count": 200}))
    assert result.completed
    assert [row["delivered"] for row in result.messages["subscriptions"]] == [200, 200]  # type: ignore[index]
    assert result.messages["publishers"][0]["accepted"] == 200  # type: ignore[index]


@pytest.mark.emu
@pytest.mark.peer("activemq")
def test_activemq_selects_by_the_types_of_our_properties() -> None:
    properties = {"symbol": ["A", "B"], "price": {"from": 1, "to": 100}}
    publish = {"size": 100, "rate": "100/s", "count": 100, "properties": properties, "at": "3s"}
    result = emulate(plain("activemq", publish=publish, selector="symbol = 'A' AND price > 50"))
    assert result.completed
    for row in result.messages["subscriptions"]:  # type: ignore[index]
        assert row["due"] == row["delivered"]
        assert 5 < row["due"] < 50


@pytest.mark.emu
@pytest.mark.peer("mosquitto")
def test_a_broker_of_others_that_crashes_is_started_again() -> None:
    data = plain("mosquitto", publish={"size": 100, "rate": "50/s", "until": "8s", "count": None})
    result = emulate({**data, "faults": [{"at": "3s", "crash": "r3", "for": "1s"}]})
    delivered = [row["delivered"] for row in result.messages["subscriptions"]]  # type: ignore[index]
    assert all(100 < count < 400 for count in delivered)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": {"name": "norm"}}, "nodes.r3.run: value 'mosquitto' is not allowed; it is a broker"),
        ({"nodes": {"r3": {"run": "mosquitto"}, "r2": {"role": "broker"}}}, "nodes.r2.role: value 'broker' is not allowed"),
        ({"nodes": {"r3": {"run": "rabbitmq"}}}, "nodes.r3.run: value 'rabbitmq' is not allowed"),
    ],
)
def test_a_broker_that_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse({**plain("mosquitto"), **change}, "test")


@pytest.mark.parametrize(
    ("publish", "subscribe", "words"),
    [
        ({"size": 31}, {}, "workload.0.size: value 31"),
        ({"properties": {"a": 1}}, {}, "workload.0.properties"),
        ({"expires": "1s"}, {}, "workload.0.expires"),
        ({}, {"selector": "a = 1"}, "workload.1.selector"),
    ],
)
def test_what_mosquitto_does_not_carry_is_refused(publish: dict[str, Any], subscribe: dict[str, Any], words: str) -> None:
    if BROKERS["mosquitto"].lacks:
        pytest.skip("needs mosquitto")
    with pytest.raises(ConfigError, match=words):
        emulate(plain("mosquitto", publish=publish, **subscribe))


def test_the_simulator_runs_no_broker_of_others() -> None:
    with pytest.raises(UnsupportedError, match=r"nodes\.r3\.run"):
        simulate(parse(plain("mosquitto"), "test"))


def test_a_broker_that_is_not_installed_is_named_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *arguments, **options: None)
    with pytest.raises(UnsupportedError, match=r"nodes\.r3\.run: mosquitto needs mosquitto, .* mosquitto-clients"):
        emulate(plain("mosquitto"))


@pytest.mark.parametrize("selector", ["price > 50", "symbol LIKE 'A%' OR price BETWEEN 10 AND 20"])
def test_only_what_a_selector_selects_is_due_and_delivered(selector: str) -> None:
    publish = {
        "size": 100,
        "rate": "500/s",
        "count": 500,
        "properties": {"symbol": ["A", "B"], "price": {"from": 1, "to": 100}},
    }
    data = plain(None, publish=publish, selector=selector)
    for wire in ("objects", "bytes"):
        result = simulate(parse({**data, "wire": wire}, "test"))
        assert result.metrics["invariants"]["violations"] == []
        for row in result.messages["subscriptions"]:  # type: ignore[index]
            assert row["due"] == row["delivered"]
            assert 100 < row["due"] < 400
