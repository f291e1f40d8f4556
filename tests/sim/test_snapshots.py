"""Statistics at any time of a run: equal in both engines, and reading them changes nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.search.plans import random_plan
from protocols.registry import protocol
from protocols.rng import Rng, key_of
from sim.network import Network
from tests.sim.runs import Session
from topologies.generators import Star

Values = dict[str, Any]
LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "100Mbit", "5Mbit"]),
        "delay": st.sampled_from(["0ms", "1ms", "20ms"]),
        "queue": st.sampled_from([None, None, 30]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "1%", "4%", "20%"])}),
        "up": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "0%", "3%"])}),
    }
)
TRUNKS = st.fixed_dictionaries(
    {"rate": st.sampled_from([None, "2Mbit"]), "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "2%"])})}
)
SIZES = st.lists(st.sampled_from([0, 1, 1400, 20_000, 90_001]), min_size=1, max_size=3)
TIMES = st.lists(st.sampled_from([0.003, 0.02, 0.0513, 0.12, 0.3, 0.31, 0.7, 1.9]), max_size=4, unique=True).map(sorted)


def session(engine: str, name: str, parameters: Values, network: Values, sizes: list[int], seed: int) -> Session:
    """Return a session that has begun."""
    star = Star.model_validate({"kind": "star", **network}).build()
    spec = protocol(name)
    made = Session(star, spec, spec.config(**parameters, rate=500_000.0), engine=engine, seed=seed)
    for size in sizes:
        made.send(size)
    return made


def look(network: Network) -> dict[str, Any]:
    """Return the statistics of every host, as plain values."""
    return {name: network.host(name).snapshot().plain() for name in network.topology.hosts}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("norm", {"grtt": 0.02}),
        ("norm", {"grtt": 0.05, "parity": 0, "auto_parity": 0}),
        ("norm", {"grtt": 0.02, "auto_parity": 2}),
        ("norm", {"grtt": 0.02, "congestion": "norm", "probing": "active"}),
        ("a", {}),
        ("n1", {}),
        ("n2", {}),
        ("srm", {}),
    ],
)
def test_both_engines_tell_the_same_at_any_time(name: str, parameters: Values) -> None:
    @settings(deadline=None, max_examples=12, derandomize=True)
    @given(st.integers(2, 25), LINKS, TRUNKS, SIZES, TIMES, st.integers(0, 2**32))
    def check(receivers: int, link: Values, trunk: Values, sizes: list[int], times: list[float], seed: int) -> None:
        network = {"receivers": receivers, "link": link, "trunk": trunk}
        strict, fast, unseen = (
            session(engine, name, parameters, network, sizes, seed) for engine in ("strict", "fast", "fast")
        )
        for until in times:
            strict.network.run(until)
            fast.network.run(until)
            assert look(strict.network) == look(fast.network), until
        for each in (strict, fast, unseen):
            each.network.run(4.0)
        assert look(strict.network) == look(fast.network) == look(unseen.network)
        assert fast.network.fingerprint() == unseen.network.fingerprint()

    check()


@pytest.mark.parametrize("name", ["norm", "n2", "srm"])
@pytest.mark.parametrize("number", range(4))
def test_both_engines_tell_the_same_of_several_senders_and_faults(name: str, number: int) -> None:
    link = {"rate": "20Mbit", "delay": "2ms", "down": {"loss": "3%"}, "up": {"loss": "1%"} if number % 2 else {}}
    network = {"kind": "star", "receivers": 7, "trunk": {"rate": "50Mbit", "delay": "1ms"}, "link": link}
    work = [{"size": 150_000}, {"from": "r1", "size": 60_000, "at": "40ms"}, {"size": 20_000, "at": "300ms"}]
    written: Values = {
        "name": "seen",
        "topology": network,
        "protocol": {"name": name, "rate": "4Mbit"},
        "workload": work,
        "duration": "5s",
        "seed": number,
    }
    if number:
        written["faults"] = random_plan(Rng(key_of(22, number)), parse(written, "seen").build_topology(), 1.0)
    strict, fast = (run(parse(written | {"statistics": "70ms", "engine": engine}, "seen")) for engine in ("strict", "fast"))
    assert strict.statistics
    assert strict.statistics == fast.statistics
    assert run(parse(written, "seen")).fingerprint == fast.fingerprint


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_times_are_by_the_clock_of_the_host_and_looking_does_not_read_it(factor: float) -> None:
    written: Values = {
        "name": "seen",
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "10Mbit", "delay": "1ms", "down": {"loss": "5%"}}},
        "protocol": {"name": "norm", "rate": "1Mbit"},
        "workload": {"kind": "file", "size": "100kB"},
        "faults": [{"at": "0s", "drift": "r1", "factor": factor}],
        "duration": "4s",
    }
    seen = run(parse(written | {"statistics": "100ms"}, "seen"))
    told = [row["statistics"]["parts"][0]["parts"] for row in seen.statistics or [] if row["host"] == "r1"]
    silences = [part["values"]["silence"] for parts in told for part in parts if part["part"] == "sender"]
    # The sender sends every 12 ms, and probes at the end; by simulated time its silence would be up to 2 s, or less than none.
    assert 0.0 <= min(silences) < 0.02
    assert max(silences[:5]) < 0.03
    assert run(parse(written, "seen")).fingerprint == seen.fingerprint


@pytest.mark.parametrize("engine", ["strict", "fast"])
def test_messages_are_told_with_pool_and_queues_beside_the_protocol_that_carries_them(engine: str) -> None:
    written = {
        "name": "seen",
        "engine": engine,
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "10Mbit", "down": {"loss": "2%"}}},
        "protocol": {"name": "fjm2", "rate": "2Mbit"},
        "workload": [
            {
                "kind": "publish",
                "hosts": ["sender"],
                "to": "topic:t",
                "size": "4kB",
                "count": 60,
                "rate": "200/s",
                "priority": 7,
            },
            {"kind": "publish", "hosts": ["r2"], "to": "topic:t", "size": "4kB", "count": 2, "rate": "10/s"},
            {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t"},
        ],
        "duration": "20s",
        "statistics": "200ms",
    }
    result = run(parse(written, "seen"))
    told: dict[str, list[Values]] = {"sender": [], "r1": [], "r2": []}
    for row in result.statistics or []:
        told[row["host"]] += row["statistics"]["parts"]
    publisher, subscriber, both = told["sender"][-1], told["r1"][-1], told["r2"][-1]
    assert (publisher["states"]["role"], publisher["values"]["messages_published"]) == ("publisher", 60)
    # 200 messages of 4 kB in a second are more than 2 Mbit/s.
    waiting = [part["values"] for each in told["sender"] for part in each["parts"] if part["name"] == "priority 7"]
    assert max(values["held"] for values in waiting) > 10
    assert waiting[-1] == {"held": 0, "limit": 1000}
    assert (subscriber["states"]["role"], subscriber["values"]["messages_received"]) == ("subscriber", 62)
    assert subscriber["values"]["subscriptions"] == 1
    assert "bytes of containers" in {part["name"] for part in subscriber["parts"]}
    own, other = both["parts"]
    assert (own["states"]["role"], own["values"]["messages_received"]) == ("subscriber", 62)
    assert (other["states"]["role"], other["values"]["messages_published"]) == ("publisher", 2)


def test_what_is_told_adds_up() -> None:
    made = session(
        "fast", "norm", {"grtt": 0.02}, {"receivers": 6, "link": {"rate": "10Mbit", "down": {"loss": "5%"}}}, [300_000], 9
    )
    made.network.run(4.0)
    sender, *receivers = (made.network.host(name).snapshot().parts[0] for name in made.network.topology.hosts)
    asked = [each.values["nacks_sent"] for each in receivers]
    assert sender.values["nacks_received"] == sum(asked) > 0
    # The links up lose nothing, but those down do.
    assert all(0 < each.values["nacks_heard"] <= sum(asked) - own for each, own in zip(receivers, asked, strict=True))
    assert {each.values["bytes_received"] for each in receivers} == {sender.values["bytes_sent"]} == {300_000}
    assert 0 < sender.values["parity_sent"] <= sender.values["repairs_sent"]
    assert all(each.values["parity_used"] <= sender.values["parity_sent"] for each in receivers)
    assert sum(each.values["parity_used"] for each in receivers) > 0


def test_a_sender_with_congestion_control_tells_who_limits_it() -> None:
    trunk = {"rate": "2Mbit", "queue": 20, "delay": "10ms"}
    parameters = {"grtt": 0.05, "congestion": "norm", "probing": "active"}
    made = session("auto", "norm", parameters, {"receivers": 3, "trunk": trunk}, [3_000_000], 4)
    made.network.run(6.0)
    sender, *receivers = (made.network.host(name).snapshot().parts[0] for name in made.network.topology.hosts)
    (control,) = sender.only("congestion")
    assert control.states["phase"] == "steady"
    assert control.values["rate"] == sender.values["rate"]
    (limiting,) = [each for each in control.parts if each.states["role"] == "CLR"]
    fed_back = [receiver.only("sender")[0].only("congestion")[0] for receiver in receivers]
    assert [each.states["role"] for each in fed_back].count("CLR") == 1
    assert 0.03 < limiting.values["rtt"] < 0.3
    assert limiting.values["loss_event_rate"] > 0
    assert all(100_000 < each.values["receive_rate"] < 260_000 for each in fed_back)


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_repairs_that_wait_for_the_rate_are_told_as_due(name: str) -> None:
    link = {"delay": "2ms", "down": {"loss": "20%"}}
    written = {
        "name": "due",
        "topology": {"kind": "star", "receivers": 6, "link": link},
        "protocol": {"name": name, "rate": "200kbit"},
        "workload": {"size": 30_000},
        "statistics": "10ms",
        "duration": "5s",
    }
    for seed in (1, 3):
        strict, fast = (run(parse({**written, "engine": engine, "seed": seed}, "due")) for engine in ("strict", "fast"))
        assert strict.statistics == fast.statistics
