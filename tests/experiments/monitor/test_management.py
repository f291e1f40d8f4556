"""A Java process as it was recorded, on our page; and ours, as the Java program reads it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import mcastlab
from experiments.contract.worlds import new_group
from experiments.monitor.management import ManagementSource
from experiments.monitor.sessions import SessionSource
from experiments.monitor.watcher import Watcher
from protocols.distributor.management import ManagementCodec, ManagementFraming
from protocols.distributor.management.messages import Announcement, ConnectionAnswer
from protocols.errors import WireError
from tests.protocols.distributor.test_management import recorded
from tests.support.distributor import vectors
from tests.support.sessions import run, sockets

CODEC = ManagementCodec()
PROCESS_QUERY = (0x00010002).to_bytes(4, "big")


def told(kind: int) -> dict[str, Any]:
    """Return the recorded fields of the Java program's answer of a kind."""
    found: dict[str, Any] = next(row for row in vectors("mgmt")["management"] if row["id"] == kind)["view"]
    return found


class JavaProcess:
    """Gives the recorded answers, byte for byte, as the Java program does: to questions on any number of connections."""

    def __init__(self) -> None:
        answers = {int.from_bytes(data[:4], "big"): data for data in recorded()}
        self.process, self.connection = answers[0x00010003], answers[0x00010007]
        self.announcement = next(data for data in recorded() if data[:4] == b"\0\1\0\1" and b"HSUB" in data)
        self.questions: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on one connection."""
        framing = ManagementFraming()
        with suppress(ConnectionResetError):
            while data := await reader.read(65536):
                questions: list[bytes] = []
                framing.unwrap(data, questions)
                self.questions += questions
                for question in questions:
                    writer.write(framing.wrap(self.process if question[:4] == PROCESS_QUERY else self.connection))
        writer.close()

    def announce(self, group: str, port: int) -> None:
        """Send the recorded announcement, with the port of this test."""
        message = CODEC.decode(self.announcement)
        assert isinstance(message, Announcement)
        send(group, CODEC.encode(replace(message, port=port)))


def send(group: str, data: bytes) -> None:
    """Send a datagram to a group on the loopback device."""
    address, _, port = group.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sock.sendto(data, (address, int(port)))


@asynccontextmanager
async def watching(group: str) -> AsyncIterator[Watcher]:
    """Watch a group, and no sessions."""
    watcher = Watcher(SessionSource(list), lambda: ManagementSource(asyncio.get_running_loop(), group, ("lo",)))
    await watcher.look()
    task = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_java_process_is_shown_with_the_numbers_that_were_recorded() -> None:
    async def main() -> None:
        group, java = new_group(), JavaProcess()
        server = await asyncio.start_server(java.serve, "127.0.0.1", 0)
        async with server, watching(group) as watcher:
            java.announce(group, server.sockets[0].getsockname()[1])
            await until(lambda: [row for row in watcher.domain.rows if row.connection != "-"])
            (row,) = watcher.whole()["rows"]
            process, view = told(65539), told(65543)
            assert (row["process"], row["started"]) == (process["application"], process["start_time"])
            assert row["place"] == f"{process['host']} {process['ip']}"
            assert row["connection"] == f"{view['mca']}:{view['port']}"
            assert (row["queue"], row["queue_peak"]) == (view["queue"]["size"], view["queue"]["peak"])
            assert [row[name] for name in ("publishers", "subscribers", "subscriptions")] == [0, 1, 1]
            requests = view["retransmissions"]
            assert [row["requests"][f"requests_{name}"] for name in ("in", "out", "seen")] == [
                requests[f"total_{name}"] for name in ("in", "out", "seen")
            ]
            for word, java_word in (("sent", "xta"), ("received", "rcv")):
                for unit, java_unit in (("bytes", "bytes"), ("packets", "segments"), ("messages", "updates")):
                    total, *rates = row["flows"][f"{unit}_{word}"]
                    assert total == view["traffic"][f"{java_word}_total_{java_unit}"]
                    for rate, window in zip(rates, ("", "_1min", "_5min"), strict=True):
                        theirs = view["traffic"][f"{java_word}_{java_unit}{window}"]
                        never = theirs["peak_time"] == "00:00:00.000"
                        assert rate == [theirs["current"], theirs["peak"], None if never else theirs["peak_time"]]
            assert row["members"] == view["topics"]
            # Each list of connections costs the Java program a collection of its garbage, so there is one.
            await until(lambda: java.questions.count(java.questions[1]) > 2)
            assert java.questions.count(PROCESS_QUERY) == 1

    asyncio.run(main())


def test_ours_is_what_the_java_program_reads() -> None:
    """Read our answer by the layout of the recording, with no code of the codec."""

    async def main() -> None:
        group, options = new_group(), {"management": new_group(), "application": "feed"}
        async with mcastlab.distributor(group, "127.0.0.1", **options) as connection:  # type: ignore[arg-type]
            connection.subscribe("/quotes/*")
            await connection.publish_many("/quotes/ABB", [bytes(50)] * 20)
            await asyncio.sleep(1.2)
            managed = connection._managed
            assert managed is not None
            (own,) = managed._connections.values()
            view = managed.connection(own.id)
            assert view is not None
            java = JavaFields(CODEC.encode(ConnectionAnswer(view)))
            found = java.connection()
            counts = connection.statistics()
            assert found["mca"] + f":{found['port']}" == group
            assert found["connection_id"] == own.id
            assert [found[name] for name in ("publishers", "subscribers", "subscriptions")] == [1, 1, 1]
            assert found["queue"]["size"] == 20
            traffic = found["traffic"]
            assert traffic["xta_total_updates"] == counts["messages_published"] == 20
            assert traffic["rcv_total_updates"] == counts["messages_received"] == 20
            assert traffic["xta_total_bytes"] == counts["bytes_sent"]
            assert traffic["xta_total_segments"] == counts["data_sent"]
            assert traffic["xta"][2]["total"] == 20
            assert [each["attribute"] for each in traffic["xta"]] == [
                told(65543)["traffic"][f"xta_{unit}{window}"]["attribute"]
                for window in ("", "_1min", "_5min")
                for unit in ("bytes", "segments", "updates")
            ]
            assert found["topics"] == ["Topic: /quotes/*                      References: 1"]
            assert java.at == len(java.data)

    before = sockets()
    run(main())
    assert sockets() == before


class JavaFields:
    """Reads fields one after the other, as the program's decoder does; written from the description of the recording."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "big", signed=True)

    def text(self) -> str | None:
        if not self.number(1):
            return None
        size = self.number(4)
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def nested(self, kind: int) -> None:
        assert self.number(1) == 1
        end = self.number(4) + self.at
        assert self.number(4) == 0x00010000 + kind
        assert end <= len(self.data)

    def rate(self) -> dict[str, Any]:
        self.nested(8)
        found: dict[str, Any] = {"attribute": self.text(), "total": self.number(8)}
        return found | {"current": self.number(4), "peak": self.number(4), "peak_time": self.text()}

    def texts(self) -> list[str | None] | None:
        return [self.text() for _ in range(self.number(4))] if self.number(1) else None

    def connection(self) -> dict[str, Any]:
        assert self.number(4) == 0x00010007
        self.nested(12)
        found: dict[str, Any] = {"mca": self.text(), "port": self.number(4), "connection_id": self.number(8)}
        found |= {name: self.number(4) for name in ("publishers", "subscribers", "subscriptions")}
        self.nested(9)
        found["queue"] = {"attribute": self.text(), "size": self.number(8), "peak": self.number(4), "peak_time": self.text()}
        self.nested(10)
        traffic: dict[str, Any] = {}
        for word in ("xta", "rcv"):
            traffic |= {f"{word}_total_{unit}": self.number(8) for unit in ("bytes", "segments", "updates")}
            traffic[word] = [self.rate() for _ in range(9)]
        self.nested(11)
        found["retransmissions"] = [self.number(4) for _ in range(3)] + [self.texts(), self.texts()]
        return found | {"traffic": traffic, "topics": self.texts()}


def test_a_java_process_that_dies_is_gone_within_three_seconds() -> None:
    async def main() -> None:
        group, java = new_group(), JavaProcess()
        tasks: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(writer)
            await java.serve(reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with watching(group) as watcher:
            java.announce(group, server.sockets[0].getsockname()[1])
            await until(lambda: [row for row in watcher.domain.rows if row.connection != "-"])
            server.close()
            for writer in tasks:
                writer.transport.abort()
            await until(lambda: watcher.domain.rows[0].state == "gone", 3.0)

    asyncio.run(main())


def test_hostile_datagrams_and_answers_leave_the_source_whole() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError):
            await reader.read(100)
            writer.write(b"POBE\x7f\xff\xff\xff" + bytes(1000))
            await reader.read()
        writer.close()

    async def main() -> None:
        group, java = new_group(), JavaProcess()
        bad = await asyncio.start_server(nonsense, "127.0.0.1", 0)
        good = await asyncio.start_server(java.serve, "127.0.0.1", 0)
        async with bad, good, watching(group) as watcher:
            for data in (b"", b"\0\1", java.announcement[:-1], java.announcement + b"x", bytes(60_000), java.connection):
                send(group, data)
                try:
                    CODEC.decode(data)
                except WireError:
                    continue
            message = CODEC.decode(java.announcement)
            assert isinstance(message, Announcement)
            for number in range(300):
                # Ports at which nobody answers, and one at which somebody answers nonsense.
                port = bad.sockets[0].getsockname()[1] if number % 2 else 1
                send(group, CODEC.encode(replace(message, process_id=number, port=port, application="<b>\x1b[2J" * 20)))
                if number % 50 == 0:
                    await asyncio.sleep(0)
            java.announce(group, good.sockets[0].getsockname()[1])
            await until(lambda: [row for row in watcher.domain.rows if row.process == "HSUB" and row.connection != "-"])

    asyncio.run(main())
