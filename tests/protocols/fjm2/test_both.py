"""A publisher and a subscriber as one machine: they hear each other, and others hear one session of NORM."""

from experiments.contract.bench import Bench
from protocols.events import Event
from protocols.fjm2 import PROTOCOL, Fjm2Config
from protocols.fjm2.both import Fjm2Both
from protocols.jms import jms_message
from protocols.messaging import MessageReceived, Subscription
from protocols.roles import RoleContext
from tests.protocols.fjm2.scene import GROUP, QUICK


def pair() -> tuple[Bench, dict[str, Fjm2Both], dict[str, list[Event]]]:
    """Run two nodes, which publish and subscribe to the topic t."""
    bench, config = Bench(["a", "b"], delay=0.002), Fjm2Config(**QUICK)
    nodes, told = dict[str, Fjm2Both](), dict[str, list[Event]]()
    for number, name in enumerate(("a", "b"), 1):
        machine = PROTOCOL.roles["both"].make(bench[name], RoleContext(config, number, GROUP))
        assert isinstance(machine, Fjm2Both)
        nodes[name], told[name] = machine, []
        bench[name].run(machine, told[name].append)
        bench[name].call(machine.subscribe, Subscription(0, "topic:t", "n > 0" if name == "a" else ""))
    return bench, nodes, told


def received(events: list[Event]) -> list[tuple[int, int]]:
    """Return publisher and number of each message that was delivered."""
    return [(event.message.publisher, event.message.number) for event in events if isinstance(event, MessageReceived)]


def test_publisher_and_subscriber_of_one_node_hear_each_other_and_the_others() -> None:
    bench, nodes, told = pair()
    for number in range(3):
        for node, name in enumerate(("a", "b"), 1):
            own = jms_message(node, number, "topic:t", "x", properties={"n": number})
            bench[name].call(nodes[name].publish, own)
    bench.run(5.0)
    assert sorted(received(told["b"])) == [(node, number) for node in (1, 2) for number in range(3)]
    assert sorted(received(told["a"])) == [(node, number) for node in (1, 2) for number in (1, 2)]
    counts = nodes["a"].counts()
    assert (counts["messages_published"], counts["messages_received"], counts["messages_filtered"]) == (3, 4, 2)
    assert counts["pool_taken"] - counts["pool_returned"] == nodes["a"].held()["bytes of containers"][0] // 256


def test_other_nodes_hear_one_session_of_norm() -> None:
    bench, nodes, _ = pair()
    bench["a"].call(nodes["a"].publish, jms_message(1, 0, "topic:t", b""))
    bench.run(5.0)
    from_a = [packet.message for packet in bench["a"].packets]
    assert {message.origin.source_id for message in from_a if hasattr(message, "origin")} == {1}


def test_an_own_message_that_expires_before_it_is_sent_is_reported_once() -> None:
    bench, nodes, told = pair()
    bench["a"].call(nodes["a"].publish, jms_message(1, 0, "topic:t", b"", properties={"n": 1}, expires_at=0.0))
    bench.run(5.0)
    assert received(told["a"]) == []
    assert [type(event).__name__ for event in told["a"]] == ["Subscribed", "MessageExpired", "PublisherIdle"]
