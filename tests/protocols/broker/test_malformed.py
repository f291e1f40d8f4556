"""Messages of strangers whose bodies are not what their headers say: a subscriber counts and drops them."""

import pytest

from experiments.contract.recorder import Recorder
from protocols.broker.config import BrokerConfig
from protocols.broker.files import FileSubscriber
from protocols.broker.messages import Ack, Connected, Receipt
from protocols.broker.subscriber import BrokerSubscriber
from protocols.broker.wire import StompCodec
from protocols.machine import Group, Message
from protocols.messaging import MessageReceived, Subscription
from protocols.roles import RoleContext

BODIES = [
    ("text", b"\xff"),
    ("map", b"\x00"),
    ("map", b"\x00\x01x\xff\xff\xff\xff"),
    ("stream", b"\x00\x00\x00\x01?"),
    ("object", b"{"),
    ("object", b"[" * 100_000),
    ("object", b"1" * 5000),
]


def delivery(kind: str, body: bytes, number: int) -> Message:
    head = f"MESSAGE\nsubscription:0\nmessage-id:m\nack:a{number}\ndestination:/topic/t\ncontent-length:{len(body)}\n"
    return StompCodec().decode(f"{head}mcastlab-message:7.1.{number}\nmcastlab-body:{kind}\n\n".encode() + body + b"\0")


@pytest.mark.parametrize("kind", [BrokerSubscriber, FileSubscriber])
def test_a_body_that_is_not_of_its_type_is_counted_and_dropped(kind: type[BrokerSubscriber]) -> None:
    ports = Recorder()
    machine = kind(ports, RoleContext(BrokerConfig(), 1, Group("239.0.0.1:6003"), addresses={"broker": ["b"]}))
    machine.start(0.0)
    (connection,) = ports.connections
    machine.opened(connection, 0.0)
    machine.subscribe(Subscription(0, "topic:t"), 0.0)
    messages = [delivery(*body, number) for number, body in enumerate(BODIES)]
    for message in (Connected(), Receipt("0"), *messages, delivery("text", b"abc", len(BODIES))):
        machine.receive(message, connection, connection, 0.0)
    received = [event.message for event in ports.events if isinstance(event, MessageReceived)]
    assert [message.content for message in received] == ["abc"]  # type: ignore[attr-defined]
    assert machine.counts()["messages_malformed"] == len(BODIES)
    acknowledged = [packet.message.ack for packet in ports.packets if isinstance(packet.message, Ack)]
    # The broker does not send them again.
    assert acknowledged == ([f"a{number}" for number in range(len(BODIES))] if kind is FileSubscriber else [])
