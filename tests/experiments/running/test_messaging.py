"""Runs of publish and subscribe: every engine and both wire modes agree, and the ledger says what happened."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.running import publishing
from experiments.running.run import run
from experiments.scenario.cases import load_cases
from experiments.scenario.scenario import load, parse
from experiments.search.search import search
from protocols.central.outbox import Outbox
from protocols.errors import ConfigError
from protocols.machine import Message
from protocols.messaging import MessageReceived, Publication
from protocols.norm import NormReceiver
from protocols.relay import PROTOCOL
from protocols.relay.messages import Delivery
from protocols.relay.relay import Relay
from protocols.relay.subscriber import RelaySubscriber
from protocols.relay.wire import size_of
from tests.support.registered import register

WORK: list[dict[str, Any]] = [
    {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": "1kB", "rate": "200/s", "at": "200ms", "count": 200},
    {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"},
]
BASE: dict[str, Any] = {
    "name": "messages",
    "topology": {"kind": "star", "receivers": 3, "link": {"rate": "10Mbit", "queue": 100, "delay": "1ms"}},
    "protocol": {"name": "relay"},
    "nodes": {"r3": {"role": "relay"}},
    "workload": WORK,
    "duration": "20s",
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "relay": {},
    "broker": {"protocol": {"name": "broker"}, "nodes": {"r3": {"role": "broker"}}},
    "bus": {"protocol": {"name": "bus", "rate": "9Mbit"}, "nodes": {}},
    "fjm": {
        "protocol": {"name": "fjm", "rate": "9Mbit", "churn_fault": 1, "churn": "1ms"},
        "nodes": {"r3": {"role": "manager"}},
    },
    "datagram": {"protocol": {"name": "datagram", "rate": "5Mbit"}, "nodes": {}},
    "unicast": {"protocol": {"name": "datagram", "rate": "9Mbit", "cast": "unicast", "segment": 400}, "nodes": {}},
    "fjm2": {"protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "10ms"}, "nodes": {}},
    "norm": {"protocol": {"name": "norm", "rate": "5Mbit", "grtt": "10ms"}, "nodes": {}},
    "n2": {"protocol": {"name": "n2", "rate": "5Mbit"}, "nodes": {}},
    "srm": {"protocol": {"name": "srm", "rate": "5Mbit"}, "nodes": {}},
}


def plain(name: str = "relay", **values: Any) -> dict[str, Any]:
    return deepcopy({**BASE, **PROTOCOLS[name], **values})


def result_of(name: str = "relay", **values: Any) -> Any:
    return run(parse(plain(name, **values), name))


def workload(*changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**work, **change} for work, change in zip(WORK, changes, strict=True)]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_engines_and_wire_modes_agree(name: str) -> None:
    found = {
        result_of(name, engine=engine, wire=wire).fingerprint for engine in ("strict", "fast") for wire in ("objects", "bytes")
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
def test_without_loss_everybody_gets_everything_once_in_every_protocol(name: str) -> None:
    result = result_of(name)
    assert result.ok
    for row in result.messages["subscriptions"]:
        assert (row["due"], row["delivered"], row["repeated"], row["lost"]) == (200, 200, 0, 0)


@pytest.mark.parametrize("name", ["relay", "norm", "n2", "srm"])
def test_at_5_percent_loss_nothing_accepted_is_missing(name: str) -> None:
    topology = {**BASE["topology"], "link": {**BASE["topology"]["link"], "down": {"loss": "5%"}}}
    work = workload({"linger": "5s"}, {})
    result = result_of(name, topology=topology, workload=work, duration="60s")
    assert result.ok
    assert result.metrics["messages"]["missing"] == 0
    assert result.metrics["messages"]["delivered"] == 600


def test_datagrams_lose_what_the_links_lose_and_promise_nothing() -> None:
    topology = {**BASE["topology"], "link": {**BASE["topology"]["link"], "down": {"loss": "5%"}}}
    result = result_of("datagram", topology=topology)
    assert result.ok
    messages = result.metrics["messages"]
    assert messages["promised"] == 0
    assert messages["lost"] == 600 - messages["delivered"] > 0
    assert messages["lost"] == sum(row["lost"] for row in result.metrics["impairments"])


def test_several_clients_on_one_host_are_told_apart() -> None:
    work = workload({"clients": 3, "count": 50}, {"hosts": ["r1"], "clients": 4})
    result = result_of("relay", workload=work)
    assert result.ok
    assert [row["published"] for row in result.messages["publishers"]] == [50] * 3
    assert [row["name"] for row in result.messages["subscriptions"]] == ["r1", "r1.2", "r1.3", "r1.4"]
    assert [row["delivered"] for row in result.messages["subscriptions"]] == [150] * 4


def test_files_and_messages_share_a_run() -> None:
    work = [{"kind": "file", "size": "100kB"}, WORK[0], {**WORK[1], "hosts": ["sender", "r"]}]
    result = result_of("norm", workload=work)
    assert result.ok
    assert [row.name for row in result.receivers] == ["r1", "r2", "r3", "sender.2", "r1.2", "r2.2", "r3.2"]
    assert [row.objects for row in result.receivers] == [1] * 3 + [200] * 4


def test_a_saturated_publisher_is_blocked_at_the_rate_of_the_slowest_subscriber() -> None:
    topology = {
        "kind": "graph",
        "nodes": {"sender": {}, "s": {"kind": "switch"}, "r1": {}, "r2": {}, "r3": {}},
        "links": [
            {"ends": [name, "s"], "rate": "1Mbit" if name == "r2" else "10Mbit"} for name in ("sender", "r1", "r2", "r3")
        ],
    }
    work = workload({"rate": "saturated", "count": None, "until": "8s", "linger": "5s"}, {"hosts": ["r1", "r2"]})
    result = result_of("relay", topology=topology, workload=work, connections={"buffer": "16kB"}, duration="60s")
    assert result.ok
    first, second = (row["goodput_mbit_s"] for row in result.messages["subscriptions"])
    assert second == pytest.approx(1448 / 1514, rel=0.05)
    # It is faster by what waits for the other in queues of 64 messages and in buffers.
    assert first == pytest.approx(second, rel=0.1)
    assert result.metrics["messages"]["blocked"] > 7


def test_a_client_that_thinks_waits_after_each_message() -> None:
    work = workload({"rate": None, "think": "50ms", "count": 20}, {})
    result = result_of("relay", workload=work)
    assert result.ok
    assert result.messages["publishers"][0]["rate"] == pytest.approx(20, rel=1e-6)


def test_who_subscribes_late_and_leaves_early_is_due_what_was_published_meanwhile() -> None:
    for name in ("relay", "norm", "datagram"):
        result = result_of(name, workload=workload({}, {"at": "500ms", "until": "900ms"}))
        for row in result.messages["subscriptions"]:
            assert row["due"] == pytest.approx(80, abs=1)
            assert row["due"] - 6 <= row["delivered"] <= row["due"] + 6


@pytest.mark.parametrize("name", ["relay", "broker"])
def test_what_comes_to_a_server_at_the_instant_of_a_subscription_and_before_it_is_not_promised(name: str) -> None:
    result = result_of(name, topology={"kind": "star", "receivers": 3}, workload=workload({"at": "0s", "count": 5}, {}))
    assert not result.violations
    assert result.metrics["messages"] | {"due": 15, "promised": 12, "delivered": 12, "missing": 0} == result.metrics["messages"]


def test_expired_messages_are_told_and_not_delivered() -> None:
    work = workload({"rate": "saturated", "count": 400, "expires": "50ms"}, {})
    result = result_of("relay", workload=work)
    messages = result.metrics["messages"]
    assert messages["expired"] > 100
    assert messages["delivered"] + messages["expired"] == messages["due"] == 1200
    assert result.ok
    latencies = [row["latency_max"] for row in result.messages["subscriptions"]]
    assert max(latencies) <= 0.05


def test_a_slow_subscriber_takes_its_time_for_every_message() -> None:
    work = [WORK[0], {**WORK[1], "hosts": ["r1"]}, {**WORK[1], "hosts": ["r2"], "slow": "10ms"}]
    quick, slow = result_of("relay", workload=work, duration="60s").messages["subscriptions"]
    assert quick["latency_p50"] < 0.05
    # 200 messages take 2 s there and are published in 1 s.
    assert slow["latency_max"] > 0.5


def test_the_ledger_says_what_a_crash_of_the_relay_lost() -> None:
    faults = [{"at": "600ms", "crash": "r3", "for": "300ms"}]
    work = workload({}, {"hosts": ["r1", "r2"]})
    result = result_of("relay", faults=faults, workload=work)
    assert result.ok
    for row in result.messages["subscriptions"]:
        assert row["interruptions"] == 1
        assert row["missing"] == 0
        assert 0 < row["lost"] == row["due"] - row["delivered"] < 150


def test_a_publisher_that_crashed_goes_on_with_what_is_due_and_numbers_apart() -> None:
    faults = [{"at": "600ms", "crash": "sender", "for": "100ms"}]
    for name in ("relay", "norm"):
        result = result_of(name, faults=faults, workload=workload({}, {"hosts": ["r1", "r2"]}))
        assert result.violations == []
        # 200 messages in 1 s, without those of the 0.1 s in which it was down.
        assert result.messages["publishers"][0]["published"] == pytest.approx(180, abs=1)
        assert result.metrics["messages"]["repeated"] == 0


def test_relay_and_multicast_share_as_theory_says() -> None:
    cases = load_cases("relay-vs-multicast", ["workload.0.until=6s"])
    chosen = ("relay-1", "relay-4", "relay-8", "norm-1", "norm-4", "norm-8")
    goodput = {name: run(cases[name]).metrics["goodput_mbit_s"] for name in chosen}
    for n in (4, 8):
        assert goodput["relay-1"] / goodput[f"relay-{n}"] == pytest.approx(n, rel=0.03)
        assert goodput[f"norm-{n}"] == pytest.approx(goodput["norm-1"], rel=0.05)


# The search


class _Lossy(Outbox):
    """An outbox that drops messages of which too many wait, and tells nobody."""

    __slots__ = ()

    def send(self, message: Message) -> None:
        if len(self.waiting) < 4 or not isinstance(message, Delivery):
            super().send(message)


class _Forgetful(Relay):
    """A relay that accepts messages and drops them."""

    __slots__ = ()

    def opened(self, connection: Any, now: float) -> None:
        super().opened(connection, now)
        self._clients[connection].outbox = _Lossy(self.ports, connection, size_of)


class _Twice(Relay):
    """A relay that sends every tenth message twice."""

    __slots__ = ()

    def _accept(self, connection: Any, message: Publication) -> None:
        super()._accept(connection, message)
        if message.number % 10 == 9:
            for client in self._clients.values():
                if client.subscriptions:
                    client.outbox.send(Delivery(message))


class _Hasty(Outbox):
    """An outbox that sends the newest of what waits first."""

    __slots__ = ()

    def drain(self) -> None:
        self.waiting.reverse()
        super().drain()


class _Disordered(Relay):
    """A relay that sends messages in another order after a connection was full."""

    __slots__ = ()

    def opened(self, connection: Any, now: float) -> None:
        super().opened(connection, now)
        self._clients[connection].outbox = _Hasty(self.ports, connection, size_of)


class _Generous(RelaySubscriber):
    """A subscriber that takes every message to be for all its subscriptions."""

    __slots__ = ()

    def receive(self, message: Message, source: Any, to: Any, now: float) -> None:
        if not isinstance(message, Delivery):
            super().receive(message, source, to, now)
            return
        for subscription in self.subscriptions:
            self.ports.notify(MessageReceived(subscription.number, message.message))


@pytest.mark.parametrize(
    ("role", "mutant", "rule"),
    [
        ("relay", _Forgetful, "promised"),
        ("relay", _Twice, "once"),
        ("relay", _Disordered, "fifo"),
        ("subscriber", _Generous, "matches"),
    ],
)
def test_planted_mistakes_are_found(role: str, mutant: Any, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(PROTOCOL, roles={**PROTOCOL.roles, role: replace(PROTOCOL.roles[role], make=mutant)})
    register(monkeypatch, {"relay": wrong})
    work = workload({"rate": "saturated", "size": "4kB", "linger": "4s"}, {"hosts": ["r1", "r2"], "to": ["topic:t", "topic:u"]})
    found = search(plain(workload=work, connections={"buffer": "16kB"}), "messages", runs=10, seed=1)
    assert found is not None
    assert found.verdict.rule == rule


def test_the_relay_breaks_no_rule_under_random_faults() -> None:
    assert search(plain(connections={"buffer": "16kB"}), "messages", runs=10, seed=3) is None


# Routers


ROUTED: dict[str, Any] = {
    "kind": "graph",
    "nodes": {"sender": {}, "l": {"kind": "switch"}, "g": {"kind": "router"}, "w": {"kind": "switch"}, "r": {"count": 2}},
    "links": [{"ends": ["sender", "l"]}, {"ends": ["l", "g"]}, {"ends": ["g", "w"]}, {"ends": ["w", "r"]}],
}


def routed(**model: Any) -> dict[str, Any]:
    topology = deepcopy(ROUTED)
    topology["nodes"]["g"] |= model
    for link in topology["links"]:
        if "g" not in link["ends"] or model.get("mac") != "single":
            link["rate"] = "100Mbit"
    return topology


def test_packets_of_a_machine_on_a_router_pass_its_adapter_like_forwarded_ones() -> None:
    work = workload({"rate": "saturated", "size": "8kB", "count": None, "until": "2s", "linger": "2s"}, {"hosts": ["r"]})
    nodes = {"g": {"role": "relay"}}

    def goodput(**model: Any) -> float:
        result = result_of("relay", topology=routed(**model), nodes=nodes, workload=work, connections={"buffer": "64kB"})
        assert result.ok
        return float(result.metrics["goodput_mbit_s"])

    # 1448 of 1538 + 4 bytes on a tagged wire are content; one adapter carries each message in once and out twice.
    wire = 100 * 1448 / 1542
    assert goodput(mac="single", duplex="full", rate="100Mbit") == pytest.approx(wire / 2, rel=0.06)
    assert goodput(mac="single", duplex="half", rate="100Mbit") == pytest.approx(wire / 3, rel=0.06)
    # Each frame takes 200 us of the processor: in once, out twice, and their acknowledgements, one for two.
    assert goodput(cpu="200us") == pytest.approx(1448 * 8e-6 / (3 * 1.5 * 200e-6), rel=0.1)


def test_a_multicast_that_may_not_be_forwarded_reaches_the_machine_of_the_router() -> None:
    work = [{**WORK[0], "count": 10, "ttl": 1}, {**WORK[1], "hosts": ["g"]}, {**WORK[1], "hosts": ["r"]}]
    result = result_of("datagram", topology=routed(), workload=work)
    assert {row["name"]: row["delivered"] for row in result.messages["subscriptions"]} == {"g.host": 10, "r1": 0, "r2": 0}
    back = [{**WORK[0], "hosts": ["g"], "count": 10, "ttl": 1}, {**WORK[1], "hosts": ["sender", "r"]}]
    result = result_of("datagram", topology=routed(), workload=back)
    assert [row["delivered"] for row in result.messages["subscriptions"]] == [10, 10, 10]


# Mininet


@pytest.mark.emu
def test_the_worlds_agree_on_who_gets_which_message() -> None:
    scenario = parse(plain("relay"), "relay")
    result = run(scenario, "emu")
    assert result.ok
    assert result.messages is not None
    assert [row["delivered"] for row in result.messages["subscriptions"]] == [200] * 3
    assert result.metrics["invariants"]["checked"] == ["once", "intact", "matches", "promised", "fifo"]


@pytest.mark.emu
def test_a_router_runs_a_machine_in_its_own_namespace() -> None:
    work = [
        {**WORK[0], "hosts": ["sender", "g"], "count": 20, "ttl": 1},
        {**WORK[1], "hosts": ["sender", "g", "r"]},
    ]
    scenario = parse(plain("datagram", topology=routed(), workload=work), "router")
    found = {}
    for world in ("sim", "emu"):
        result = run(scenario, world)
        assert result.messages is not None
        found[world] = {row["name"]: row["delivered"] for row in result.messages["subscriptions"]}
    assert found["emu"] == found["sim"] == {"sender": 40, "g.host": 40, "r1": 20, "r2": 20}


BOTH: dict[str, Any] = {"protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "10ms"}, "nodes": {"r1": {"role": "both"}}}
AT_ONE: list[dict[str, Any]] = [
    {**WORK[0], "hosts": ["sender"], "count": 50},
    {**WORK[0], "hosts": ["r1"], "count": 50, "at": "300ms"},
    {**WORK[1], "hosts": ["r1", "r2"]},
]


def test_a_publisher_and_a_subscriber_as_one_machine_hear_each_other_and_the_rest() -> None:
    link = {**BASE["topology"]["link"], "down": {"loss": 0.05}}
    values = {**BOTH, "workload": AT_ONE, "topology": {**BASE["topology"], "link": link}}
    found = [result_of(**values, engine=engine, wire=wire) for engine in ("strict", "fast") for wire in ("objects", "bytes")]
    assert len({result.fingerprint for result in found}) == 1
    assert found[0].ok
    assert {row["name"]: row["delivered"] for row in found[0].messages["subscriptions"]} == {"r1": 100, "r2": 100}


@pytest.mark.emu
def test_one_machine_of_both_roles_runs_in_mininet() -> None:
    result = run(parse(plain(**BOTH, workload=AT_ONE), "both"), "emu")
    assert result.ok
    assert result.messages is not None
    assert {row["name"]: row["delivered"] for row in result.messages["subscriptions"]} == {"r1": 100, "r2": 100}


@pytest.mark.parametrize(
    "works",
    [AT_ONE[:1] + AT_ONE[2:], [*AT_ONE, AT_ONE[1]], [*AT_ONE, {"kind": "file", "from": "sender", "size": "1kB"}]],
)
def test_one_machine_is_one_publisher_and_one_subscriber(works: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError, match=r"nodes\.r1\.role: value 'both' is not allowed; r1 publishes"):
        parse(plain(**BOTH, workload=works), "both")


ORDERED: dict[str, Any] = {
    "protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "10ms", "order": "fifo"},
    "nodes": {},
    "topology": {**BASE["topology"], "link": {**BASE["topology"]["link"], "down": {"loss": 0.05}}},
}


def test_order_is_checked_where_the_parameters_promise_it() -> None:
    result = result_of(**ORDERED)
    assert result.ok
    assert "fifo" in result.metrics["invariants"]["checked"]
    other = result_of(**{**ORDERED, "protocol": {**ORDERED["protocol"], "order": "none"}})
    assert "fifo" not in other.metrics["invariants"]["checked"]


def test_a_subscriber_that_breaks_the_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NormReceiver, "incomplete_before", lambda *about: iter(()))
    broken = result_of(**ORDERED, engine="strict").metrics["invariants"]["violations"]
    assert {violation["rule"] for violation in broken} == {"fifo"}


@pytest.mark.parametrize("pace", [{"rate": "saturated"}, {"think": "0s"}], ids=["saturated", "think"])
def test_a_publisher_that_would_take_messages_for_ever_at_one_instant_is_refused(
    pace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "MOST_AT_ONCE", 5000)
    publish = {"kind": "publish", "hosts": ["sender"], "to": "/t", "size": 1000, "until": "1s", **pace}
    base = {**BASE, "protocol": {"name": "distributor"}, "nodes": {}}
    subscribe = {"kind": "subscribe", "hosts": ["r"], "to": "/t"}
    with pytest.raises(ConfigError, match="the publisher to /t has taken 5000 messages at 0 s without being blocked"):
        run(parse({**base, "workload": [publish, subscribe]}, "test"))
    limited = {**base, "protocol": {"name": "distributor", "rate": "5Mbit"}, "workload": [publish, subscribe]}
    assert run(parse(limited, "test")).ok
    counted = run(parse({**base, "workload": [{**publish, "count": 6000}, subscribe]}, "test"))
    assert counted.messages is not None
    assert counted.messages["publishers"][0]["published"] == 6000


def test_what_selectors_and_pools_did_is_told_of_each_host() -> None:
    path = Path(__file__).parents[3] / "experiments" / "scenarios" / "fjm2-lan.yaml"
    result = run(load(path, ("workload.0.count=60",)))
    assert result.messages is not None
    clients = result.metrics["clients"]
    assert list(clients) == ["subscriber r1", "subscriber r2", "subscriber r3", "publisher sender"]
    for row in result.messages["subscriptions"]:
        counts = clients[f"subscriber {row['name']}"]
        assert counts["messages_filtered"] == 60 - row["delivered"]
        assert counts["pool_taken"] == counts["pool_returned"] == 60
    assert clients["publisher sender"]["pool_taken"] == 60


@pytest.mark.parametrize("engine", ["fast", "strict"])
def test_the_longest_queue_of_each_priority_is_in_the_result(engine: str) -> None:
    path = Path(__file__).parents[3] / "experiments" / "scenarios" / "fjm2-lan.yaml"
    changes = ("workload.0.count=60", "workload.0.rate=saturated", "workload.0.priority={4: 2, 9: 1}", "protocol.queue=7")
    result = run(load(path, (*changes, f"engine={engine}")))
    queues = result.metrics["clients"]["publisher sender"]["longest_queues"]
    assert [number for number, longest in enumerate(queues) if longest] == [4, 9]
    assert max(queues) == 7


def test_a_publisher_and_a_subscriber_that_are_one_machine_count_for_themselves() -> None:
    result = run(load_cases("fjm2-both", ["workload.0.count=50"])["one"])
    metrics = result.metrics
    # What was sent beside every message once are repairs, which the publishers count and nobody else.
    assert metrics["repairs_sent"] == metrics["packets"]["data"] - metrics["data_sent"] > 0
    assert metrics["clients"]["publisher r1"]["messages_published"] == 50
    assert "messages_published" not in metrics["clients"]["subscriber r1"]
    assert metrics["clients"]["subscriber r1"]["messages_received"] == 200


def test_order_and_jitter_of_datagrams_are_in_the_result() -> None:
    work: list[dict[str, Any]] = [{**WORK[0], "count": 2000}, {**WORK[1], "hosts": ["r1"]}]
    delay = {"model": "uniform", "least": "0ms", "most": "4ms", "order": "free"}
    topology = {"kind": "star", "receivers": 1, "link": {"down": {"delay": delay}}}
    client = result_of("datagram", topology=topology, workload=work).metrics["clients"]["subscriber r1"]
    # Datagrams are 5 ms apart, so that none overtakes another one.
    assert client["reordered"] == 0
    # The mean of |X - Y| for uniform X and Y is a third of the range; RFC 3550's average varies by about 170 us.
    assert client["jitter_us"] == pytest.approx(4000 / 3, abs=5 * 170)
    faster: list[dict[str, Any]] = [{**work[0], "rate": "500/s"}, work[1]]
    client = result_of("datagram", topology=topology, workload=faster).metrics["clients"]["subscriber r1"]
    # P(X > Y + 2 ms) for X, Y uniform in 0 to 4 ms: an eighth. The third datagram is never overtaken.
    assert client["reordered"] / 2000 == pytest.approx(1 / 8, abs=5 * 0.0075)
