"""The registry and its clients as machines."""

import pytest

from protocols.admin.events import NodeChanged, NodeLeft, NodeRegistered, RegistryOpened
from protocols.admin.node import Advertisement
from protocols.admin.registry import Answer
from tests.protocols.admin.scene import Scene

PERIOD = 1.0
RTT = 0.1


def test_tunnels_that_register_learn_of_each_other() -> None:
    scene = Scene(["t1", "t2", "t3"])
    for name in scene.told:
        scene.join(name)
    scene.bench.run(3.0)
    assert [scene.peers(name) for name in scene.told] == [["t2", "t3"], ["t1", "t3"], ["t1", "t2"]]
    assert scene.registry.counts()["registrations"] == 3


@pytest.mark.parametrize("at", [5.0 + 0.1 * step for step in range(10)])
def test_a_new_peer_is_known_within_a_period_and_a_round_trip(at: float) -> None:
    """F28 of the claims: HTTP registration, UDP advertisement of the time stamp, a query when the list is outdated."""
    scene = Scene(["t1", "t2", "t3"], delay=RTT / 2)
    scene.join("t1")
    scene.join("t2")
    scene.bench.run(at)
    scene.join("t3")
    scene.bench.run(at + 5.0)
    registered = scene.knows("t3", "t1") - RTT / 2
    for name in ("t1", "t2"):
        assert scene.knows(name, "t3") - registered <= PERIOD + RTT


def test_a_lost_advertisement_is_followed_by_the_next() -> None:
    scene = Scene(["t1", "t2"], delay=RTT / 2)
    lost = [1]
    scene.bench.drop = lambda crossing: isinstance(crossing.message, Advertisement) and crossing.message.stamp != lost[0]
    scene.join("t1")
    scene.bench.run(3.0)
    scene.join("t2")
    scene.bench.run(4.0)
    assert scene.peers("t1") == []
    lost[0] = scene.registry.table.stamp
    scene.bench.run(4.0 + PERIOD + RTT)
    assert scene.peers("t1") == ["t2"]


def test_without_any_advertisement_a_renewal_reports_the_change() -> None:
    scene = Scene(["t1", "t2"], lease=8.0)
    scene.bench.drop = lambda crossing: isinstance(crossing.message, Advertisement)
    scene.join("t1")
    scene.bench.run(1.0)
    scene.join("t2")
    scene.bench.run(1.0 + 8.0 / 4 + 0.1)
    assert scene.peers("t1") == ["t2"]


def test_a_node_asks_at_most_once_a_second_however_often_the_list_changes() -> None:
    scene = Scene(["t1", *(f"n{number}" for number in range(40))], period=0.05)
    scene.join("t1")
    scene.bench.run(1.0)
    before = scene.clients["t1"].counts()["lists_received"]
    for number in range(40):
        scene.join(f"n{number}")
        scene.bench.run(scene.bench.now + 0.1)
    scene.bench.run(scene.bench.now + 1.1)
    assert 4 <= scene.clients["t1"].counts()["lists_received"] - before <= 6
    assert len(scene.peers("t1")) == 40


def test_a_node_that_leaves_is_gone_at_once_and_one_that_dies_within_its_lease() -> None:
    scene = Scene(["t1", "t2", "t3"], lease=4.0)
    for name in scene.told:
        scene.join(name)
    scene.bench.run(5.0)
    scene.bench["t2"].call(scene.clients["t2"].leave)
    scene.bench.run(6.5)
    assert scene.peers("t1") == ["t3"]
    scene.kill("t3")
    crashed = scene.bench.now
    scene.bench.run(crashed + 4.0 + PERIOD)
    assert scene.peers("t1") == []
    left = [(event.node.name, event.why) for event in scene.events if isinstance(event, NodeLeft)]
    assert left == [("t2", "left"), ("t3", "silent")]


def test_a_tunnel_that_was_killed_and_comes_again_keeps_its_id_and_the_list_is_not_changed() -> None:
    scene = Scene(["t1", "t2"])
    scene.join("t1")
    scene.join("t2", site=7)
    scene.bench.run(3.0)
    stamp, number = scene.registry.table.stamp, scene.clients["t2"].enrolment.id
    scene.kill("t2")
    scene.bench.run(4.0)
    assert scene.join("t2", site=7)
    scene.bench.run(5.0)
    assert (scene.registry.table.stamp, scene.clients["t2"].enrolment.id) == (stamp, number)
    assert scene.peers("t2") == ["t1"]


def test_a_registry_that_is_killed_changes_nothing_and_knows_its_nodes_again_with_its_state() -> None:
    scene = Scene(["t1", "t2", "t3"], state=1)
    scene.join("t1")
    scene.join("t2")
    scene.bench.run(3.0)
    number, nodes = scene.registry.number, scene.registry.table.nodes
    told = {name: len(rows) for name, rows in scene.told.items()}
    scene.kill("a")
    scene.bench.run(6.0)
    scene.join("t3")
    scene.bench.run(8.0)
    scene.serve()
    scene.bench.run(8.001)
    assert (scene.registry.number, scene.registry.table.nodes) == (number, nodes)
    assert told == {name: len(rows) for name, rows in scene.told.items()}
    scene.bench.run(8.0 + 10.0)
    assert [scene.peers(name) for name in scene.told] == [["t2", "t3"], ["t1", "t3"], ["t1", "t2"]]
    assert RegistryOpened(2) in scene.events


def test_without_its_state_a_registry_knows_its_nodes_within_one_lease_and_no_peer_is_forgotten_meanwhile() -> None:
    scene = Scene(["t1", "t2", "t3"], lease=4.0)
    for name in scene.told:
        scene.join(name)
        scene.bench.run(scene.bench.now + 0.8)
    scene.bench.run(10.0)
    number, told = scene.registry.number, {name: len(rows) for name, rows in scene.told.items()}
    scene.kill("a")
    scene.bench.run(11.0)
    scene.serve()
    scene.bench.run(11.0 + 4.0)
    assert scene.registry.number != number
    assert len(scene.registry.table) == 3
    scene.bench.run(30.0)
    for name, rows in scene.told.items():
        assert all(len(nodes) == 2 for _, nodes in rows[told[name] :])
        assert len(scene.peers(name)) == 2


def test_a_node_that_ended_while_the_registry_was_away_is_forgotten_one_lease_later() -> None:
    scene = Scene(["t1", "t2"], lease=4.0)
    scene.join("t1")
    scene.join("t2")
    scene.bench.run(5.0)
    scene.kill("a")
    scene.kill("t2")
    scene.bench.run(6.0)
    scene.serve()
    scene.bench.run(9.0)
    assert scene.peers("t1") == ["t2"]
    scene.bench.run(6.0 + 2.0 + 4.0 + 0.1)
    assert scene.peers("t1") == []


def test_a_node_comes_while_the_registry_is_away_and_is_known_within_one_lease_of_its_return() -> None:
    scene = Scene(["t1", "t2"], lease=4.0)
    scene.join("t1")
    scene.bench.run(5.0)
    scene.kill("a")
    scene.join("t2")
    scene.bench.run(25.0)
    scene.serve()
    scene.bench.run(25.0 + 4.0)
    assert (scene.peers("t1"), scene.peers("t2")) == (["t2"], ["t1"])


def test_a_paused_node_is_reported_to_all_and_stays_paused_when_it_comes_again() -> None:
    scene = Scene(["t1", "t2"], state=1)
    scene.join("t1")
    scene.join("t2")
    scene.bench.run(3.0)
    number = scene.clients["t2"].enrolment.id
    assert number is not None
    answers: list[Answer] = []
    scene.bench["a"].call(scene.registry.pause, number, True, answers.append)
    scene.bench.run(5.0)
    assert [answer.status for answer in answers] == [200]
    assert [[node.paused for node in scene.told[name][-1][1]] for name in ("t1", "t2")] == [[True], [True]]
    scene.kill("a")
    scene.kill("t2")
    scene.serve()
    scene.join("t2")
    scene.bench.run(8.0)
    assert [node.paused for node in scene.registry.table.nodes] == [False, True]
    scene.bench["a"].call(scene.registry.pause, number, False, answers.append)
    scene.bench.run(10.0)
    assert not any(node.paused for node in scene.told["t1"][-1][1])
    assert [type(event) for event in scene.events if isinstance(event, NodeChanged)] == [NodeChanged, NodeChanged]


def test_advertisements_of_others_and_of_older_lists_are_counted_and_cause_no_question() -> None:
    scene = Scene(["t1", "t2"])
    client = scene.join("t1")
    scene.bench.run(2.0)
    asked = client.counts()["lists_received"]
    registry, stamp = scene.registry.number, scene.registry.table.stamp
    for number, forged in ((registry + 1, stamp + 1), (registry, stamp - 1)):
        scene.bench["t1"].deliver(Advertisement(number, forged), "x", "t1", scene.bench.now)
    scene.bench.run(3.0)
    assert client.counts()["lists_received"] == asked
    assert client.counts()["advertisements_ignored"] == 2
    for step in range(1000):
        scene.bench["t1"].deliver(Advertisement(registry, stamp + 1 + step), "x", "t1", scene.bench.now)
    scene.bench.run(6.0)
    assert client.counts()["lists_received"] == asked
    assert scene.registry.counts()["lists_current"] <= 4


def test_a_renewal_gives_rates() -> None:
    scene = Scene(["t1"], lease=4.0)
    scene.join("t1")
    scene.bench.run(5.0)
    (entry,) = scene.registry.table
    assert entry.rates["carried"] == pytest.approx(10.0)
    (tunnel,) = scene.registry.snapshot(scene.bench.now).parts
    assert (tunnel.part, tunnel.values["carried"]) == ("tunnel", entry.counters["carried"])


def test_a_client_is_served_over_connections_that_are_often_full() -> None:
    scene = Scene(["t1", "t2"], room=1)
    scene.join("t1")
    scene.join("t2")
    scene.bench.run(5.0)
    assert (scene.peers("t1"), scene.peers("t2")) == (["t2"], ["t1"])
    assert any(isinstance(event, NodeRegistered) for event in scene.events)
