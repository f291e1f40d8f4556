"""Several senders in one group: each is followed in a lockstep group of its own, and nothing else is different."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import CASES, OURS
from benchmarks.cases import run as measure
from experiments.running.content import Accounted, Extent
from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.search.plans import random_plan
from protocols.composite import ComponentHost, CompositeMachine
from protocols.machine import Content, Group, Message
from protocols.norm.fast.views import SenderView
from protocols.registry import protocol
from protocols.rng import Rng, key_of
from sim.network import Network
from topologies.generators import Lan

NORM = protocol("norm")
CONFIG = NORM.config(rate=250_000.0, segment=1000, grtt=0.05)
LOSSES = st.sampled_from(["0%", "1%", "5%", "15%"])
LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "100Mbit", "10Mbit"]),
        "delay": st.sampled_from(["0ms", "1ms", "5ms"]),
        "queue": st.sampled_from([None, None, 20]),
        "down": st.fixed_dictionaries({"loss": LOSSES}),
        "up": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "0%", "2%"])}),
    }
)
PARAMETERS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from(["1Mbit", "4Mbit"]),
        "grtt": st.sampled_from(["10ms", "50ms"]),
        "block": st.sampled_from([4, 16, 64]),
        "parity": st.sampled_from([0, 0, 4, 16]),
        "backoff": st.sampled_from([0, 4, 4]),
        # With room for few senders, others are forgotten and come again.
        "senders": st.sampled_from([1024, 1024, 1024, 1, 2, 3]),
        "probing": st.sampled_from(["active", "passive"]),
    }
)
WORK = st.tuples(st.sampled_from([8000, 30_000, 60_000]), st.sampled_from(["0s", "0s", "10ms", "100ms", "1s"]))
GUESTS = st.sampled_from([[], [], [{"hosts": ["r9"], "join": "60ms"}], [{"hosts": ["r9"], "leave": "150ms"}]])


def scenario(kind: str, link: dict[str, Any], protocol: dict[str, Any], works: list[Any], **more: Any) -> dict[str, Any]:
    """Return a scenario with a sender for each of `works`, `sender` and `r1` to `r7`; `r8` to `r12` only receive."""
    network: dict[str, Any] = {"kind": kind, "receivers": 12, "link": link}
    if kind == "star":
        network["trunk"] = {"rate": "20Mbit", "delay": "2ms", "down": {"loss": "1%"}}
    names = ["sender", *(f"r{number}" for number in range(1, 8))]
    work = [{"from": name, "size": size, "at": at} for name, (size, at) in zip(names, works, strict=False)]
    common = {"name": "senders", "topology": network, "protocol": protocol, "workload": work, "duration": "4s"}
    return {**common, **more}


def assert_same(written: dict[str, Any]) -> None:
    """Assert that both engines leave one fingerprint."""
    fast, strict = (run(parse({**written, "engine": engine}, "senders")).fingerprint for engine in ("fast", "strict"))
    assert fast == strict


@settings(deadline=None, max_examples=16, derandomize=True)
@given(
    st.sampled_from(["lan", "star"]), LINKS, PARAMETERS, st.lists(WORK, min_size=2, max_size=8), GUESTS, st.integers(0, 2**32)
)
def test_several_norm_senders_have_the_results_of_the_strict_engine(
    kind: str, link: dict[str, Any], parameters: dict[str, Any], works: list[Any], guests: list[Any], seed: int
) -> None:
    written = scenario(kind, link, {"name": "norm", **parameters}, works, receivers=guests, seed=seed)
    assert_same(written)


@pytest.mark.parametrize("parity", [0, 16])
@pytest.mark.parametrize("number", range(4))
def test_random_faults_with_several_senders(parity: int, number: int) -> None:
    link = {"rate": "50Mbit", "delay": "2ms", "down": {"loss": "3%"}, "up": {"loss": "1%"}}
    protocol = {"name": "norm", "rate": "4Mbit", "grtt": "50ms", "parity": parity}
    written = scenario("lan", link, protocol, [(100_000, "0s"), (60_000, "20ms"), (60_000, "20ms")], seed=number)
    written["faults"] = random_plan(Rng(key_of(31, number)), parse(written, "senders").build_topology(), 1.0)
    assert_same(written)


GROUPS = ("239.0.1.1:6000", "239.0.1.2:6000")
MEMBERS = ["sender", *(f"r{number}" for number in range(1, 13))]


@settings(deadline=None, max_examples=10, derandomize=True)
@given(
    st.sampled_from(["lan", "star"]),
    LINKS,
    PARAMETERS,
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(GROUPS), WORK), min_size=2, max_size=5),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_hosts_that_send_to_one_group_and_receive_another(
    kind: str, link: dict[str, Any], parameters: dict[str, Any], works: list[Any], is_crossed: bool, seed: int
) -> None:
    written = scenario(kind, link, {"name": "norm", **parameters}, [], seed=seed)
    for number, group, (size, at) in works:
        senders = [MEMBERS[each] for each, to, _ in works if to == group]
        members = [name for name in MEMBERS if name not in senders]
        written["workload"].append({"from": MEMBERS[number], "group": group, "size": size, "at": at, "members": members})
    if is_crossed:
        written["traffic"] = [{"kind": "poisson", "from": "r1", "to": "r2", "rate": "1Mbit", "size": 700}]
    assert_same(written)


@pytest.mark.parametrize("when", [0.0, 0.051, 0.2])
def test_a_part_of_a_host_stops_while_another_stays_in_the_group(when: float) -> None:
    """Every host sends to the group and receives it."""
    outcomes = []
    for engine in ("fast", "strict"):
        link = {"rate": "50Mbit", "delay": "2ms", "down": {"loss": "3%"}}
        topology = Lan.model_validate({"kind": "lan", "receivers": 7, "link": link}).build()
        network, group, makers = Network(topology, seed=3, engine=engine), Group("239.0.0.1:1"), NORM.makers(engine == "fast")
        parts: list[ComponentHost] = []
        for node, name in enumerate(topology.hosts, 1):
            composite = CompositeMachine(network.host(name))
            receiving, sending = (composite.component(role) for role in ("receiver", "sender"))
            receiving.run(makers.make_receiver(receiving, CONFIG, node, group), lambda event: None, lambda offer: Accounted())
            sender = makers.make_sender(sending, CONFIG, node, group, 7)
            sending.run(sender, lambda event: None)
            sending.call(sender.submit, Content(Extent(40_000 + 1000 * node), b"name"))
            parts.append(receiving)
        network.later(when, parts[3].stop)
        network.later(when + 0.01, parts[5].stop)
        network.run(3.0)
        outcomes.append((network.fingerprint(), network.deliveries, network.links()))
    assert outcomes[0] == outcomes[1]


def test_deliveries_without_an_effect_are_counted_at_their_time_and_a_sender_that_stops_gets_no_more() -> None:
    networks = []
    for engine in ("fast", "strict"):
        topology = Lan.model_validate({"kind": "lan", "receivers": 9, "link": {"rate": "10Mbit", "delay": "20ms"}}).build()
        network, group, makers = Network(topology, seed=3, engine=engine), Group("239.0.0.1:1"), NORM.makers(engine == "fast")
        for node, name in reversed(list(enumerate(topology.hosts, 1))):
            host = network.host(name)
            if node > 3:
                host.run(makers.make_receiver(host, CONFIG, node, group), lambda event: None, lambda offer: Accounted())
                continue
            sender = makers.make_sender(host, CONFIG, node, group, 7)
            host.run(sender, lambda event: None)
            host.call(sender.submit, Content(Extent(60_000), b"name"))
        network.later(0.1234, network.host("r1").stop)
        networks.append(network)
    for step in range(60):
        for network in networks:
            network.run(0.00513 * step)
        assert networks[0].deliveries == networks[1].deliveries
        assert networks[0].links() == networks[1].links()
    assert networks[0].fingerprint() == networks[1].fingerprint()
    assert networks[0].events < networks[1].events / 4


def test_receivers_in_lockstep_with_one_sender_are_not_called_whatever_they_lack_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called, receive = [], SenderView.receive

    def counted(self: SenderView, message: Message, *where: Any) -> None:
        called.append(message.kind)
        receive(self, message, *where)

    monkeypatch.setattr(SenderView, "receive", counted)
    outcome = measure(OURS, CASES["senders8"].scenario(100, 200))
    # Every receiver lacks something of some sender nearly all the time.
    assert called.count("data") < 0.05 * outcome.deliveries
