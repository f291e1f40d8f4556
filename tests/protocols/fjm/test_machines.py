"""FJM on fake hosts: elections, registration, flow control and its faults."""

from typing import Any

import pytest

from experiments.contract.bench import Bench
from experiments.contract.recorder import Recorder
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError, UsageError
from protocols.events import Event
from protocols.fjm.config import FjmConfig
from protocols.fjm.manager import FjmManager
from protocols.fjm.messages import Answer, Ask, Guard, Registered, Unregister
from protocols.fjm.publisher import FjmPublisher
from protocols.fjm.registration import topic_group
from protocols.fjm.subscriber import FjmSubscriber
from protocols.fjm.wire import FjmCodec
from protocols.machine import Group
from protocols.messaging import MessageReceived, MessageSent, Publication, PublisherUnblocked, Subscribed, Subscription
from protocols.nacked.messages import Data, Nack, Status
from protocols.roles import RoleContext

GROUP = Group("239.0.0.1:6003")
HOSTS = ("m1", "m2", "m3", "p", "r1", "r2")


class Scene:
    """Managers m1 to m3, a publisher and two subscribers, started by the tests."""

    def __init__(self, **settings: Any) -> None:
        self.config = FjmConfig(**settings)
        self.bench = Bench(HOSTS, codec=FjmCodec())
        self.events: dict[str, list[Event]] = {name: [] for name in HOSTS}
        self.machines: dict[str, Any] = {}

    def start(self, *names: str, instance: int = 1) -> None:
        for name in names:
            context = RoleContext(self.config, 1 + HOSTS.index(name), GROUP, instance)
            kind: Any = {"m": FjmManager, "p": FjmPublisher, "r": FjmSubscriber}[name[0]]
            machine = self.machines[name] = kind(self.bench[name], context)
            self.bench[name].run(machine, self.events[name].append)

    def guards(self, *names: str) -> list[int | None]:
        return [self.machines[name].guard for name in names]

    def subscribe(self, name: str, number: int, destination: str) -> None:
        self.bench[name].call(self.machines[name].subscribe, Subscription(number, destination))

    def publish(self, number: int, destination: str = "topic:a") -> None:
        message = Publication(4, number, destination, 3, b"abc")
        self.bench["p"].call(self.machines["p"].publish, message)

    def received(self, name: str) -> list[tuple[str, int]]:
        return [
            (event.message.destination, event.message.number)
            for event in self.events[name]
            if isinstance(event, MessageReceived)
        ]


def test_the_highest_of_those_who_answer_is_the_guard() -> None:
    scene = Scene()
    scene.start("m1", "m3", "m2")
    scene.bench.run(1.0)
    assert scene.guards("m1", "m2", "m3") == [3, 3, 3]


def test_a_guard_that_is_silent_is_replaced_and_takes_over_again_when_it_comes_back() -> None:
    scene = Scene(silence=0.5)
    scene.start("m1", "m2", "m3")
    scene.bench.run(1.0)
    scene.bench.crash("m3")
    scene.bench.run(3.0)
    assert scene.guards("m1", "m2") == [2, 2]
    scene.start("m3", instance=2)
    scene.bench.run(5.0)
    assert scene.guards("m1", "m2", "m3") == [3, 3, 3]


def test_without_loss_no_election_follows_the_first_ones() -> None:
    scene = Scene()
    scene.start("m1", "m3", "m2")
    scene.bench.run(1.0)
    begun = scene.bench.kinds()["candidate"]
    scene.bench.run(1000.0)
    assert scene.bench.kinds()["candidate"] == begun
    assert scene.guards("m1", "m2", "m3") == [3, 3, 3]


def test_elections_after_lost_heartbeats_do_not_count_as_traffic_after_the_end() -> None:
    found = run(
        parse(
            {
                "name": "lost heartbeats",
                "seed": 7,
                "topology": {"kind": "lan", "receivers": 4, "link": {"rate": "1Mbit", "loss": "30%"}},
                "protocol": {"name": "fjm", "history": "200ms"},
                "nodes": {"r3": {"role": "manager"}, "r4": {"role": "manager"}},
                "workload": [
                    {
                        "kind": "publish",
                        "hosts": ["sender"],
                        "to": "topic:t",
                        "size": 100,
                        "count": 5,
                        "think": "20ms",
                        "at": "1s",
                    },
                    {"kind": "subscribe", "hosts": ["r1"], "to": "topic:t"},
                ],
                "duration": "60s",
            },
            "test",
        )
    )
    assert "quiescence" in found.metrics["invariants"]["checked"]
    assert found.violations == []


def test_each_topic_has_a_manager_and_a_group_of_its_own() -> None:
    scene = Scene()
    scene.start("m1", "m2", "m3", "p", "r1", "r2")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    scene.subscribe("r2", 0, "topic:b")
    scene.publish(1)
    scene.publish(2, "topic:b")
    scene.bench.run(3.0)
    assert scene.received("r1") == [("topic:a", 1)]
    assert scene.received("r2") == [("topic:b", 2)]
    assert topic_group(GROUP, 0) in scene.bench["r1"].groups
    assert topic_group(GROUP, 1) in scene.bench["r2"].groups
    managing = [name for name in ("m1", "m2", "m3") if scene.machines[name].counts()["members_registered"]]
    assert len(managing) == 2


def test_messages_wait_for_the_registration_and_a_guard_that_comes_late() -> None:
    scene = Scene()
    scene.start("p", "r1")
    scene.subscribe("r1", 0, "topic:a")
    scene.publish(1)
    scene.bench.run(1.0)
    assert not [event for event in scene.events["r1"] if isinstance(event, Subscribed)]
    scene.start("m1")
    scene.bench.run(3.0)
    assert [event for event in scene.events["r1"] if isinstance(event, Subscribed)] == [Subscribed(0)]
    assert scene.received("r1") == [("topic:a", 1)]


def test_a_topic_whose_manager_is_gone_is_taken_over_by_the_guard() -> None:
    scene = Scene()
    scene.start("m1", "m2", "m3", "r1", "r2")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    scene.bench.run(2.0)
    (manager,) = [name for name in ("m1", "m2", "m3") if scene.machines[name].counts()["members_registered"]]
    assert manager != "m3"
    scene.bench.crash(manager)
    scene.subscribe("r2", 0, "topic:a")
    scene.bench.run(6.0)
    assert [event for event in scene.events["r2"] if isinstance(event, Subscribed)] == [Subscribed(0)]
    assert scene.machines["m3"].counts()["members_registered"] == 1


def test_who_leaves_is_no_member_any_more() -> None:
    scene = Scene()
    scene.start("m1", "r1", "p")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    scene.bench.run(2.0)
    scene.bench["r1"].call(scene.machines["r1"].unsubscribe, 0)
    scene.publish(1)
    scene.bench.run(3.0)
    assert scene.received("r1") == []
    assert scene.machines["m1"].counts()["members_left"] == 1
    assert scene.machines["m1"].held()["members"][0] == 1


def test_who_leaves_while_its_registration_is_under_way_is_no_member() -> None:
    scene = Scene()
    scene.start("m1", "r1")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    requests = scene.machines["r1"]._registration._requests
    while requests["topic:a"].topic is None:
        scene.bench.run(scene.bench.now + 1e-4)
    scene.bench["r1"].call(scene.machines["r1"].unsubscribe, 0)
    scene.bench.run(2.0)
    assert scene.machines["m1"].counts()["members_registered"] == 1
    assert scene.machines["m1"].held()["members"][0] == 0


def test_who_subscribes_again_gets_nothing_that_was_sent_before() -> None:
    scene = Scene()
    scene.start("m1", "r1", "p")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    scene.bench.run(1.5)
    scene.publish(0)
    scene.bench.run(2.0)
    scene.bench["r1"].call(scene.machines["r1"].unsubscribe, 0)
    scene.publish(1)
    scene.bench.run(2.1)
    scene.subscribe("r1", 1, "topic:a")
    scene.bench.run(2.5)
    scene.publish(2)
    scene.bench.run(5.0)
    assert scene.received("r1") == [("topic:a", 0), ("topic:a", 2)]


def test_a_publisher_without_history_sends_on() -> None:
    scene = Scene(history=0.0, rate=1000.0, rate_min=1000.0)
    scene.start("m1", "p", "r1")
    scene.bench.run(1.0)
    scene.subscribe("r1", 0, "topic:a")
    scene.bench.run(2.0)
    for number in range(5):
        scene.publish(number)
    scene.bench.run(4.0)
    assert scene.received("r1") == [("topic:a", number) for number in range(5)]


# One machine with recorded ports


def publisher(**settings: Any) -> tuple[FjmPublisher, Recorder]:
    """Return a publisher that is registered for topic:a."""
    ports = Recorder()
    machine = FjmPublisher(ports, RoleContext(FjmConfig(**settings), 4, GROUP))
    machine.start(0.0)
    machine.publish(Publication(4, 0, "topic:a", 3, b"abc"), 0.0)
    machine.receive(Answer(1, 0, "topic:a"), "m1", GROUP, 0.0)
    machine.receive(Registered(4, 1, "topic:a"), "m1", GROUP, 0.0)
    assert ports.events == [MessageSent(0), *ports.events[1:]]
    return machine, ports


def test_the_rate_falls_on_nacks_once_for_a_hold_off_and_grows_after_silence() -> None:
    machine, _ = publisher(rate=1e6, slower=0.5, faster=0.1, quiet=0.1, holdoff=0.05, rate_min=1e5)
    group = topic_group(GROUP, 0)
    nack = Nack((4, 1), ((0, 0),))
    for now in (1.0, 1.01, 1.02):
        machine.receive(nack, "r1", group, now)
    assert machine.rate == 5e5
    for step in range(20):
        machine.receive(nack, "r1", group, 1.1 + step * 0.06)
    assert machine.rate == 1e5
    for number in range(1, 30):
        machine.publish(Publication(4, number, "topic:a", 3, b"abc"), 3.0 + number * 0.11)
    assert machine.rate == 1e6


def test_a_publisher_is_blocked_while_its_queue_is_full() -> None:
    machine, ports = publisher(queue=2, rate=1e4, rate_min=1e4)
    assert not machine.publish(Publication(4, 1, "topic:a", 1000), 1.0)
    assert [machine.publish(Publication(4, number, "topic:b", 1000), 1.0) for number in (2, 3)] == [False, True]
    machine.receive(Answer(9, 1, "topic:b"), "m1", GROUP, 1.1)
    machine.receive(Registered(4, 1, "topic:b"), "m1", GROUP, 1.1)
    while PublisherUnblocked() not in ports.events and machine.deadline < 10.0:
        machine.wake(machine.deadline)
    assert ports.events.count(PublisherUnblocked()) == 1
    assert not machine.publish(Publication(4, 4, "topic:a", 1000), 10.0)


def test_who_waits_for_a_repair_that_is_forgotten_before_it_is_sent_is_notified() -> None:
    machine, ports = publisher(rate=50.0, rate_min=50.0, history=1.0, heartbeat=100.0)
    machine.publish(Publication(4, 1, "topic:a", 3, b"abc"), 0.0)
    machine.receive(Nack((4, 1), ((0, 0),)), "r1", topic_group(GROUP, 0), 0.9)
    assert Status((4, 1), 1, 0) not in [packet.message for packet in ports.packets]
    assert machine.deadline == 1.0
    machine.wake(1.0)
    assert Status((4, 1), 1, 0) in [packet.message for packet in ports.packets]


@pytest.mark.parametrize(("fault", "gap", "fails"), [(1, 0.049, True), (1, 0.05, False), (0, 0.001, False)])
def test_messages_closer_than_50_ms_end_the_publisher(fault: int, gap: float, fails: bool) -> None:
    machine, ports = publisher(gap_fault=fault)
    machine.publish(Publication(4, 1, "topic:a", 3, b"abc"), gap)
    assert bool(ports.failures) is fails
    assert not fails or ports.failures[0].startswith("a message 49 ms after the one before")


@pytest.mark.parametrize("fault", [0, 1])
def test_a_change_of_members_keeps_processors_busy(fault: int) -> None:
    machine, ports = publisher(churn_fault=fault, churn=0.25)
    ports.works.clear()
    machine.receive(Registered(9, 2, "topic:a"), "m1", GROUP, 1.0)
    machine.receive(Registered(9, 2, "topic:a"), "m1", GROUP, 1.1)
    machine.receive(Registered(9, 5, "topic:other"), "m1", GROUP, 1.2)
    assert ports.works == [0.25] * fault


@pytest.mark.parametrize("fault", [0, 1])
def test_packets_of_other_topics_cost_time_if_cards_can_t_tell_them_apart(fault: int) -> None:
    ports = Recorder()
    machine = FjmSubscriber(ports, RoleContext(FjmConfig(address_fault=fault, unwanted=0.001), 5, GROUP))
    machine.start(0.0)
    machine.subscribe(Subscription(0, "topic:a"), 0.0)
    machine.receive(Answer(1, 0, "topic:a"), "m1", GROUP, 0.0)
    machine.receive(Registered(5, 1, "topic:a"), "m1", GROUP, 0.0)
    machine.receive(Answer(1, 1, "topic:b"), "m1", GROUP, 0.1)
    assert (topic_group(GROUP, 1) in ports.groups) is bool(fault)
    machine.receive(Data((4, 1), 0, 0, 0, 1, 3, b"abc"), "p", topic_group(GROUP, 1), 0.2)
    assert ports.works == [0.001] * fault
    assert machine.counts()["unwanted_received"] == fault


@pytest.mark.parametrize("fault", [0, 1])
def test_a_host_that_publishes_and_subscribes_is_refused(fault: int) -> None:
    data = {
        "name": "same-host",
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "10Mbit"}},
        "protocol": {"name": "fjm", "same_host_fault": fault},
        "nodes": {"r2": {"role": "manager"}},
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:a", "size": 100, "rate": "10/s", "count": 5},
            {"kind": "subscribe", "hosts": ["r1", "sender"], "to": "topic:a"},
        ],
    }
    if fault:
        with pytest.raises(ConfigError, match=r"workload\.1\.hosts: value 'sender' is not allowed; it publishes"):
            parse(data, "test")
    else:
        parse(data, "test")


SESSION = Group("239.1.1.1:6003")


def manager() -> tuple[FjmManager, Recorder]:
    """Return a manager that is the guard."""
    ports = Recorder()
    machine = FjmManager(ports, RoleContext(FjmConfig(), 5, SESSION))
    machine.start(0.0)
    while machine.guard is None:
        machine.wake(machine.deadline)
    return machine, ports


def test_a_topic_gets_a_group_although_a_forged_answer_has_the_highest_number() -> None:
    machine, ports = manager()
    for place in (2**32 - 1, 999):
        machine.receive(Answer(5, place, f"forged {place}"), "forger", SESSION, 0.3)
    machine.receive(Ask(9, "topic"), "client", SESSION, 0.3)
    answer = ports.packets[-1].message
    assert isinstance(answer, Answer)
    assert (answer.place, answer.destination) == (0, "topic")
    assert FjmCodec().encode(answer)


def test_a_guard_stays_a_manager_although_another_host_uses_its_id() -> None:
    machine, ports = manager()
    machine.receive(Guard(5), "forger", SESSION, 0.3)
    for _ in range(10):
        machine.wake(machine.deadline)
    machine.receive(Ask(9, "topic"), "client", SESSION, machine.deadline)
    assert isinstance(ports.packets[-1].message, Answer)


class Occupied(Recorder):
    """Ports of a host on which other programs have the ports of some groups."""

    def __init__(self, *occupied: Group) -> None:
        super().__init__()
        self.occupied = occupied

    def join(self, group: Group, port: int = 0) -> None:
        """Join a group. UsageError for an occupied one."""
        if group in self.occupied:
            raise UsageError(f"can't receive at {group.name}: Address already in use")
        super().join(group, port)


def test_a_subscriber_goes_on_although_the_port_of_a_forged_topic_is_in_use() -> None:
    ports = Occupied(topic_group(SESSION, 7))
    machine = FjmSubscriber(ports, RoleContext(FjmConfig(), 5, SESSION))
    machine.start(0.0)
    machine.subscribe(Subscription(0, "topic:a"), 0.0)
    for manager, place in ((9, 7), (1, 2)):
        machine.receive(Answer(manager, place, "topic:a"), "m", SESSION, 0.1)
        machine.receive(Registered(5, 1, "topic:a"), "m", SESSION, 0.1)
        if place == 7:
            assert Subscribed(0) not in ports.events
            machine.wake(machine.deadline)
            assert [packet.message for packet in ports.packets[-2:]] == [Unregister(5, 9, "topic:a"), Ask(5, "topic:a")]
    assert Subscribed(0) in ports.events
    assert ports.groups == [SESSION, topic_group(SESSION, 2)]
    assert machine.counts()["groups_refused"] == 1


def test_a_publisher_keeps_what_waits_although_the_port_of_a_forged_topic_is_in_use() -> None:
    ports = Occupied(topic_group(SESSION, 7))
    machine = FjmPublisher(ports, RoleContext(FjmConfig(), 4, SESSION))
    machine.start(0.0)
    machine.publish(Publication(4, 0, "topic:a", 3, b"abc"), 0.0)
    for manager, place in ((9, 7), (1, 2)):
        machine.receive(Answer(manager, place, "topic:a"), "m", SESSION, 0.1)
        machine.receive(Registered(4, 1, "topic:a"), "m", SESSION, 0.1)
    assert MessageSent(0) in ports.events
    assert ports.packets[-1].to == topic_group(SESSION, 2)
    assert machine.counts()["groups_refused"] == 1


def test_other_topics_whose_ports_are_in_use_end_no_subscriber() -> None:
    ports = Occupied(topic_group(SESSION, 7))
    machine = FjmSubscriber(ports, RoleContext(FjmConfig(address_fault=1), 5, SESSION))
    machine.start(0.0)
    for _ in range(3):
        machine.receive(Answer(9, 7, "topic:b"), "m", SESSION, 0.1)
    assert machine.counts()["groups_refused"] == 1
