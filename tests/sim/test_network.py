"""Packets reach the right hosts at the right times."""

from collections.abc import Generator
from math import nan
from typing import Any

import pytest
import simpy

from protocols.errors import UsageError
from protocols.machine import Address
from sim.network import Network
from tests.sim.probes import GROUP, Note, Probe, probe_on
from topologies.generators import Chain, Star, Tree


def star(receivers: int = 3, **parts: Any) -> Network:
    """A running star."""
    return Network(Star.model_validate({"kind": "star", "receivers": receivers, **parts}).build(), seed=1)


def everywhere(network: Network) -> dict[str, Probe]:
    """A probe on every host."""
    return {name: probe_on(network, name) for name in network.topology.hosts}


def test_arrival_times_are_those_computed_by_hand() -> None:
    # 958 + 42 = 1000 bytes: 10 ms on the trunk of 100 kB/s and 1 ms delay; 20 ms on the links of 50 kB/s and 5 ms delay.
    network = star(2, trunk={"rate": "800kbit", "delay": "1ms"}, link={"rate": "400kbit", "delay": "5ms"})
    probes = everywhere(network)
    network.host("sender").call(lambda now: probes["sender"].say_all(range(3), 958))
    network.run()
    # The trunk delivers to the switch at 11, 21, 31 ms, where the slower links make them wait for one another.
    assert [when for when, _, _ in probes["r2"].heard] == pytest.approx([0.036, 0.056, 0.076])
    assert probes["r1"].heard == probes["r2"].heard
    assert [number for _, number, _ in probes["r1"].heard] == [0, 1, 2]
    assert {source for _, _, source in probes["r1"].heard} == {"sender"}


@pytest.mark.parametrize("who", ["sender", "r1", "r2", "r3"])
def test_a_multicast_reaches_everybody_else_once_and_never_its_sender(who: str) -> None:
    network = star()
    probes = everywhere(network)
    network.host(who).call(lambda now: probes[who].say(7))
    network.run()
    assert {name: probe.heard for name, probe in probes.items()} == {
        name: [] if name == who else [(0.0, 7, who)] for name in probes
    }


@pytest.mark.parametrize("who", ["sender", "r1_1", "r2_2", "r4_1"])
def test_a_multicast_crosses_a_tree_of_switches(who: str) -> None:
    tree = {"kind": "tree", "depth": 3, "fanout": 2, "receivers": 2, "trunk": {"delay": "1ms"}, "link": {"delay": "2ms"}}
    network = Network(Tree.model_validate(tree).build(), seed=1)
    probes = everywhere(network)
    network.host(who).call(lambda now: probes[who].say(7))
    network.run()
    assert [name for name, probe in probes.items() if not probe.heard] == [who]
    assert all(len(probe.heard) == 1 for name, probe in probes.items() if name != who)
    if who == "sender":
        assert probes["r4_2"].heard[0][0] == pytest.approx(0.005)


def test_a_unicast_reaches_one_host_whether_it_listens_or_not() -> None:
    network = star()
    probes = {name: probe_on(network, name, listen=False) for name in network.topology.hosts}
    for who, to in [("sender", "r2"), ("r2", "r3"), ("r3", "sender"), ("r1", "r3")]:
        network.host(who).call(lambda now, who=who, to=to: probes[who].say(1, to=to))
    network.run()
    sources = {name: [source for _, _, source in probe.heard] for name, probe in probes.items()}
    assert sources == {"sender": ["r3"], "r1": [], "r2": ["sender"], "r3": ["r1", "r2"]}


def test_sending_to_the_own_or_an_unknown_host_is_refused() -> None:
    network = star()
    probe = probe_on(network, "r1")
    with pytest.raises(UsageError, match="r1 sends to itself"):
        network.host("r1").call(lambda now: probe.say(1, to="r1"))
    with pytest.raises(UsageError, match="'r9' is no host of this topology"):
        network.host("r1").call(lambda now: probe.say(1, to="r9"))


def test_only_members_receive_a_group_and_its_tree_follows_them() -> None:
    network = Network(Chain.model_validate({"kind": "chain", "switches": 3, "receivers": 3}).build(), seed=1)
    names = network.topology.hosts
    probes = {name: probe_on(network, name, listen=name in ("sender", "r1_2")) for name in names}

    def hearers() -> list[str]:
        network.host("sender").call(lambda now: probes["sender"].say(1))
        network.run()
        found = [name for name in names if probes[name].heard]
        for probe in probes.values():
            probe.heard.clear()
        return found

    assert hearers() == ["r1_2"]
    carried = {(link.near, link.far): link.offered for link in network.links()}
    assert carried["sender", "s1"] == 1
    assert carried["s1", "s2"] == 0
    for name in ("r1_3", "r3_1"):
        network.host(name).call(lambda now, name=name: network.host(name).join(GROUP))
    assert hearers() == ["r1_2", "r1_3", "r3_1"]
    network.host("r1_2").call(lambda now: network.host("r1_2").leave(GROUP))
    network.host("r3_1").call(lambda now: network.host("r3_1").leave(GROUP))
    assert hearers() == ["r1_3"]
    assert {(link.near, link.far): link.offered for link in network.links()}["s1", "s2"] == 1


def test_losses_hit_the_right_members_when_some_do_not_listen() -> None:
    def hearers(listening: list[str]) -> dict[str, set[int]]:
        network = star(6, link={"down": {"loss": "40%"}})
        sender = probe_on(network, "sender")
        probes = {name: probe_on(network, name, listen=name in listening) for name in network.topology.hosts[1:]}
        network.host("sender").call(lambda now: sender.say_all(range(100)))
        network.run()
        return {name: {number for _, number, _ in probe.heard} for name, probe in probes.items()}

    names = [f"r{n}" for n in range(1, 7)]
    all_hear = hearers(names)
    some_hear = hearers(["r2", "r3", "r6"])
    assert all(40 < len(heard) < 80 for heard in all_hear.values())
    assert some_hear == {name: all_hear[name] if name in ("r2", "r3", "r6") else set() for name in names}


def test_a_receiver_that_leaves_while_a_message_is_delivered_does_not_affect_others() -> None:
    network = star(4)
    probes = everywhere(network)
    leaver = network.host("r2")
    probes["r2"].on_receive = lambda message, now: leaver.leave(GROUP)
    for n in (1, 2):
        network.host("sender").call(lambda now, n=n: probes["sender"].say(n))
        network.run()
    assert {name: len(probe.heard) for name, probe in probes.items()} == {"sender": 0, "r1": 2, "r2": 1, "r3": 2, "r4": 2}


def test_one_event_per_packet_and_distinct_arrival_time() -> None:
    network = star(1000, link={"delay": "5ms"})
    probes = everywhere(network)
    network.host("sender").call(lambda now: probes["sender"].say(1))
    network.run()
    # One at the switch, one for a thousand receivers.
    assert network.events == 2
    assert network.deliveries == 1000


def test_many_that_send_during_one_delivery_never_re_enter_a_machine() -> None:
    network = star(5, link={"delay": "1ms"})
    probes = everywhere(network)
    depth = 0

    def answer(probe: Probe) -> Any:
        def react(message: Note, now: float) -> None:
            nonlocal depth
            depth += 1
            assert depth == 1
            if message.number == 0:
                probe.say(1)
            depth -= 1

        return react

    for name, probe in probes.items():
        if name != "sender":
            probe.on_receive = answer(probe)
    network.host("sender").call(lambda now: probes["sender"].say(0))
    network.run()
    # Answers of one instant arrive in the order of their senders.
    assert [source for _, _, source in probes["sender"].heard] == ["r1", "r2", "r3", "r4", "r5"]
    assert [source for _, _, source in probes["r3"].heard] == ["sender", "r1", "r2", "r4", "r5"]


@pytest.mark.parametrize("engine", ["strict", "fast"])
@pytest.mark.parametrize("asker", ["sender", "r1", "r4"])
def test_an_answer_that_takes_no_time_comes_behind_all_copies_of_what_it_answers(engine: str, asker: str) -> None:
    network = Network(Star.model_validate({"kind": "star", "receivers": 5}).build(), seed=1, engine=engine)
    probes = everywhere(network)
    order: list[str] = []
    answers = {name: number for number, name in enumerate(probes, 1) if name != asker}

    def answer(name: str, note: Note) -> None:
        order.append(name)
        if note.number == 0:
            probes[name].say(answers[name])
            network.later(network.now, lambda: order.append("later"))

    for name, probe in probes.items():
        probe.on_receive = lambda note, now, name=name: answer(name, note)
    network.host(asker).call(lambda now: probes[asker].say(0))
    network.run()
    for name, probe in probes.items():
        others = [number for other, number in answers.items() if other != name]
        assert [number for _, number, _ in probe.heard] == ([] if name == asker else [0]) + others
    # What is to be done later at the instant is, behind the same copies and before the answers.
    assert order[: 2 * len(answers)] == [*answers, *["later"] * len(answers)]


def test_a_users_processes_live_in_the_same_environment() -> None:
    env = simpy.Environment()
    topology = Star(receivers=2).build()
    network = Network(topology, seed=1, environment=env)
    probes = everywhere(network)

    def video() -> Generator[simpy.Event, Any, None]:
        for number in range(3):
            yield env.timeout(0.04)
            network.host("sender").call(lambda now, number=number: probes["sender"].say(number))

    env.process(video())
    network.run()
    assert [when for when, _, _ in probes["r1"].heard] == pytest.approx([0.04, 0.08, 0.12])


def test_a_run_stops_when_it_is_over_and_can_go_on() -> None:
    network = star(2, link={"delay": "1s"})
    probes = everywhere(network)
    told: list[object] = []
    sender = network.host("sender")
    for second in range(5):
        sender.later(float(second), lambda: sender.call(lambda now: probes["sender"].say(int(now))))
    network.run(over=lambda: len(probes["r1"].heard) >= 2)
    # `over` is called after actions and events, so the run ends with the action after the second packet arrived.
    assert len(probes["r1"].heard) == 2
    network.run(3.0)
    assert network.env.now == 3.0
    assert len(probes["r1"].heard) == 2
    network.run()
    assert [when for when, _, _ in probes["r1"].heard] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert told == []


def test_a_run_that_is_over_before_it_begins_does_nothing() -> None:
    network = star(2)
    probe_on(network, "sender", [(0.0, 1, 100, GROUP, None)])
    network.run(over=lambda: True)
    assert network.events == 0


def test_addresses_of_unicasts_are_names() -> None:
    network = star()
    probes = everywhere(network)
    replies: list[Address] = []
    probes["r2"].on_receive = lambda message, now: replies.append(probes["r2"].heard[-1][2])
    network.host("r3").call(lambda now: probes["r3"].say(1, to="r2"))
    network.run()
    assert replies == ["r3"]


@pytest.mark.parametrize("until", [nan, -1.0, "1s", None])
def test_a_run_until_what_is_no_time_is_refused(until: Any) -> None:
    with pytest.raises(UsageError, match=r"until: .* is not allowed; seconds from 0 on, or inf"):
        star(2).run(until=until)
