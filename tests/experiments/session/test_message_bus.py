"""The asyncio API for messages, over the loopback device."""

import asyncio
from typing import Any

import pytest

from mcastlab.messaging import CallbackFailed, DeliveryOverflowed, JmsMessage, MessageBus, Properties, Typed, connect
from protocols.errors import ConfigError, TransferError, UsageError
from protocols.selector import SelectorError

QUICK: dict[str, Any] = {"rate": "200Mbit", "grtt": "2ms", "robust": 3}


def bus(port: int, **settings: Any) -> MessageBus:
    """Return a bus of its own group."""
    return connect(f"239.7.7.62:{port}", "lo", **{**QUICK, **settings})


async def _until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def test_messages_of_all_types_reach_iterators_and_callbacks_of_other_programs_and_of_the_own() -> None:
    async def main() -> None:
        heard: list[JmsMessage] = []
        async with bus(6201) as ours, bus(6201) as theirs:
            own = ours.subscribe("t")
            theirs.subscribe("t", heard.append, selector="n > 1")
            await ours.announce()
            await asyncio.sleep(0.1)
            contents = [b"bytes", "text", {"a": 1, "b": b"x"}, [1, {"c": None}]]
            for number, content in enumerate(contents):
                sent = await ours.publish("t", content, priority=9, ttl=60, properties={"n": number}, correlation_id="c")
                assert sent.number == number
            await ours.flush()
            found = [await anext(own) for _ in contents]
            assert [each.content for each in found] == contents
            assert [each.body_type for each in found] == ["bytes", "text", "map", "object"]
            assert {each.correlation_id for each in found} == {"c"}
            await _until(lambda: len(heard) == 2)
            assert [each.content for each in heard] == contents[2:]
            assert heard[0].message_id == found[2].message_id
            assert ours.statistics()["messages_published"] == 4
            (host,) = ours.snapshots()
            (node,) = host.only("session")
            assert (node.states["role"], node.values["messages_received"]) == ("publisher and subscriber", 4)
            assert [part.name for part in node.only("queue")] == ["priority 9"]
            # What NORM counts is told once, by the sender and the receiver of which this node consists.
            assert "data_sent" not in node.values
            assert [part.states["role"] for part in node.only("session")] == ["sender", "receiver"]

    asyncio.run(main())


def test_a_bus_is_one_node_with_one_publisher_and_one_subscriber() -> None:
    async def main() -> None:
        async with bus(6207) as ours, bus(6207) as theirs:
            own, others = ours.subscribe("t"), theirs.subscribe("t")
            host = ours.host
            await asyncio.gather(ours.announce(), theirs.announce())
            await asyncio.sleep(0.1)
            sent = [await ours.publish("t", "1"), await theirs.publish("t", "2")]
            for stream in (own, others):
                found = [await anext(stream) for _ in sent]
                assert {(each.publisher, each.content) for each in found} == {(each.publisher, each.content) for each in sent}
            assert ours.host is host
            counts = ours.statistics()
            # Its own message came from the publisher beside it, and not from the network.
            assert (counts["messages_published"], counts["messages_received"], counts["objects_received"]) == (1, 2, 1)

    asyncio.run(main())


def test_a_bus_of_one_role_does_nothing_else() -> None:
    async def main() -> None:
        group = {"group": "239.7.7.62:6208", "iface": "lo", **QUICK}
        async with connect(**group, subscribe=False) as publishing, connect(**group, publish=False) as subscribing:
            stream = subscribing.subscribe("t")
            with pytest.raises(UsageError, match="opened as a publisher, which does not subscribe"):
                publishing.subscribe("t")
            with pytest.raises(UsageError, match="opened as a subscriber, which does not publish"):
                await subscribing.publish("t", "x")
            await publishing.announce()
            await asyncio.sleep(0.1)
            await publishing.publish("t", "x")
            assert (await anext(stream)).content == "x"
        with pytest.raises(UsageError, match="publish, subscribe: False is not allowed for both"):
            connect(**group, publish=False, subscribe=False)

    asyncio.run(main())


def test_properties_keep_their_types() -> None:
    async def main() -> None:
        async with bus(6202) as ours:
            stream = ours.subscribe("t")
            await ours.announce()
            await asyncio.sleep(0.1)
            await ours.publish("t", b"", properties={"a": Typed("byte", 5), "b": 0.5})
            properties = (await anext(stream)).properties
            assert isinstance(properties, Properties)
            assert (properties.type_of("a"), properties.get_string("a"), properties.get_double("b")) == ("byte", "5", 0.5)

    asyncio.run(main())


def test_a_callback_that_raises_stops_nobody_and_a_slow_program_is_told() -> None:
    async def main() -> None:
        heard: list[Any] = []

        def fail(message: JmsMessage) -> None:
            raise ValueError(message.number)

        async with bus(6203) as ours:
            ours.subscribe("t", fail)
            ours.subscribe("t", lambda message: heard.append(message.number))
            slow = ours.subscribe("t", most=2)
            await ours.announce()
            await asyncio.sleep(0.1)
            for number in range(5):
                await ours.publish("t", str(number))
            await _until(lambda: len(heard) == 5)
            events = [await anext(ours) for _ in range(6)]
            assert sum(isinstance(event, CallbackFailed) for event in events) == 5
            assert [event.dropped for event in events if isinstance(event, DeliveryOverflowed)] == [1]
            assert (slow.waiting, slow.dropped) == (2, 3)
            assert ours.statistics()["messages_dropped"] == 3
            slow.close()
            assert [message.content async for message in slow] == ["0", "1"]

    asyncio.run(main())


def test_a_publisher_that_gets_no_room_tells_the_limit() -> None:
    async def main() -> None:
        async with bus(6204, rate="1kbit", queue=2, max_wait="50ms") as ours:
            for _ in range(10):
                await ours.publish("t", b"x" * 200)

    with pytest.raises(TransferError, match=r"within 0.05 s; queue: 2 messages of priority 4 wait to be sent"):
        asyncio.run(main())


def test_what_is_not_allowed_is_refused_in_one_line() -> None:
    async def main() -> None:
        async with bus(6205, pool="4kB") as ours:
            for arguments, problem in (
                ({"priority": 10}, "priority: 10 is not allowed"),
                ({"ttl": 0}, "ttl: 0 is not allowed; seconds above 0"),
                ({"ttl": float("nan")}, "ttl: nan is not allowed"),
                ({"is_persistent": True}, "PERSISTENT is not allowed"),
                ({"properties": {"a": Typed("decimal", 1)}}, "type 'decimal' is not allowed"),
                ({"body_type": "map"}, "map: 'x' is not allowed"),
                ({"correlation_id": 5}, "correlation_id: 5 is not allowed; a text"),
                ({"type": "\ud800"}, "type: .* is not allowed; a text that UTF-8 can hold"),
            ):
                with pytest.raises(UsageError, match=problem):
                    await ours.publish("t", "x", **arguments)
            for topic, problem in (("", "topic:NAME"), ("x" * 256, "1 to 255 bytes"), ("queue:q", "no queues")):
                with pytest.raises(UsageError, match=problem):
                    await ours.publish(topic, "x")
                with pytest.raises(UsageError, match=problem):
                    ours.subscribe(topic)
            with pytest.raises(UsageError, match="pool: value 4000 is not allowed; at least 5120 for a message of 5016 bytes"):
                await ours.publish("t", b"x" * 5000)
            with pytest.raises(UsageError, match="most: value 0 is not allowed"):
                ours.subscribe("t", most=0)
            with pytest.raises(SelectorError, match="column 4"):
                ours.subscribe("t", selector="a >")
            await ours.flush()

    asyncio.run(main())
    with pytest.raises(ConfigError, match="order: value 'lifo' is not allowed; one of none, fifo"):
        connect("239.7.7.62:6206", order="lifo")
    with pytest.raises(UsageError, match="group"):
        connect("nowhere")
    with pytest.raises(UsageError, match="waiting: value 0 is not allowed; a whole number of at least 1"):
        connect("239.7.7.62:6206", waiting=0)
    with pytest.raises(UsageError, match="ttl: value 300 is not allowed; a whole number from 0 to 255"):
        connect("239.7.7.62:6206", ttl=300)


def test_nothing_is_an_object_that_json_writes_as_null() -> None:
    async def main() -> None:
        async with connect("239.7.7.62:6207", "lo") as bus:
            stream = bus.subscribe("t")
            message = await bus.publish("t", None)
            assert (message.body_type, message.body) == ("object", b"null")
            async with asyncio.timeout(20):
                assert (await anext(stream)).content is None
        with pytest.raises(UsageError, match="a bus is entered once; make another one"):
            await bus.__aenter__()

    asyncio.run(main())
