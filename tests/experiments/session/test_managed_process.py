"""What a program tells consoles and monitors of its connections, asked as the Java program asks."""

import asyncio

import mcastlab
from experiments.contract.worlds import new_group
from protocols.distributor.management import ManagementCodec, ManagementFraming
from protocols.distributor.management.messages import ConnectionAnswer, ConnectionQuery, ProcessAnswer, ProcessQuery
from protocols.machine import Message
from tests.support.sessions import run, sockets

CODEC = ManagementCodec()


async def asked(port: int, question: Message) -> Message | None:
    """Ask by TCP; None when the connection is closed without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    framing, found = ManagementFraming(), list[bytes]()
    writer.write(framing.wrap(CODEC.encode(question)))
    while not found and (data := await reader.read(65536)):
        framing.unwrap(data, found)
    writer.close()
    await writer.wait_closed()
    return CODEC.decode(found[0]) if found else None


def test_a_program_answers_with_the_counters_of_its_connections() -> None:
    async def main() -> None:
        management = new_group()
        options = {"management": management, "application": "feed", "heartbeat": "50ms"}
        group = new_group()
        async with (
            mcastlab.distributor(group, "127.0.0.1", **options) as one,  # type: ignore[arg-type]
            mcastlab.distributor(new_group(), "127.0.0.1", **options) as other,  # type: ignore[arg-type]
        ):
            prices = one.subscribe("/quotes/*")
            one.subscribe("/quotes/*")
            await one.publish_many("/quotes/ABB", [bytes(50)] * 20)
            for _ in range(20):
                await anext(prices)
            await asyncio.sleep(1.1)
            managed = one._managed
            assert managed is not None
            assert managed is other._managed
            port = managed.port
            answer = await asked(port, ProcessQuery())
            assert isinstance(answer, ProcessAnswer)
            assert (answer.view.application, answer.view.port, answer.view.address) == ("feed", port, "127.0.0.1")
            first, second = answer.view.connections or ()
            assert f"{first.group}:{first.port}" == group
            assert (first.publishers, first.subscribers, first.subscriptions) == (1, 1, 2)
            assert (first.updates_sent, first.updates_received) == (20, 20)
            assert (second.publishers, second.subscribers, second.updates_sent) == (0, 0, 0)
            detail = await asked(port, ConnectionQuery(first.connection_id))
            assert isinstance(detail, ConnectionAnswer)
            traffic = detail.view.traffic
            assert (traffic.sent.updates, traffic.received.updates) == (20, 20)
            assert traffic.sent.octets >= 20 * 50
            assert [rate.name for rate in traffic.sent.rates[:3]] == ["XtaBytes", "XtaMsgs", "XtaUpdates"]
            assert traffic.sent.rates[2].total == 20
            assert traffic.sent.rates[2].peak > 0
            assert detail.view.topics == ("Topic: /quotes/*                      References: 2",)
            assert detail.view.queue.size == 20
            assert await asked(port, ConnectionQuery(1)) is None
            announced = managed.announcement()
            assert (announced.connections, announced.publishers, announced.subscriptions) == (2, 1, 2)

    before = sockets()
    run(main())
    assert sockets() == before


def test_programs_hear_of_each_other() -> None:
    management = new_group()

    async def other() -> None:
        async with mcastlab.distributor(new_group(), "127.0.0.1", application="other", management=management) as connection:
            while not connection.processes:
                await asyncio.sleep(0.01)
            assert connection.processes[0].application == "one"

    async def main() -> None:
        async with mcastlab.distributor(new_group(), "127.0.0.1", application="one", management=management) as connection:
            # An agent belongs to an event loop; another thread with its own is another program to it.
            finding = asyncio.create_task(asyncio.to_thread(asyncio.run, other()))
            while not connection.processes:
                await asyncio.sleep(0.01)
            assert connection.processes[0].application == "other"
            connection._managed.agent._due(0.0)  # type: ignore[union-attr]
            await finding

    run(main())
