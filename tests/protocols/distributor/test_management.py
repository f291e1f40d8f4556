"""Management messages against recorded traffic of the Java program, and the agent on fake hosts."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from struct import pack, unpack_from
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.contract.bench import Bench
from protocols.connection import Connection
from protocols.distributor.management import GROUP, ManagementAgent, ManagementCodec, ManagementFraming, ManagementObserver
from protocols.distributor.management.messages import (
    Announcement,
    ConnectionAnswer,
    ConnectionQuery,
    ConnectionSummary,
    ConnectionView,
    DirectionView,
    ProcessAnswer,
    ProcessQuery,
    ProcessView,
    QueueView,
    RateView,
    RetransmissionView,
    TrafficView,
)
from protocols.distributor.management.observer import MOST_AT_ONCE, MOST_ATTEMPTS
from protocols.distributor.management.wire import size_of
from protocols.errors import UsageError, WireError
from protocols.machine import Group, Machine, Message, Packet, Ports
from tests.support.distributor import VECTORS, vectors

CODEC = ManagementCodec()


def recorded() -> Iterator[bytes]:
    """Yield the announcements of the recording, and the messages of its connections, in order."""
    data = (VECTORS / "mgmt.pcap").read_bytes()
    at = 24
    streams: dict[tuple[int, int], ManagementFraming] = {}
    while at < len(data):
        (captured,) = unpack_from("<I", data, at + 8)
        frame = data[at + 16 : at + 16 + captured]
        at += 16 + captured
        packet = frame[14 : 14 + unpack_from("!H", frame, 16)[0]]
        begin = (packet[0] & 15) * 4
        source, target = unpack_from("!HH", packet, begin)
        if packet[9] == 17 and target == 4242:
            yield packet[begin + 8 :]
        elif packet[9] == 6:
            found: list[bytes] = []
            octets = packet[begin + (packet[begin + 12] >> 4) * 4 :]
            streams.setdefault((source, target), ManagementFraming()).unwrap(octets, found)
            yield from found


def words_of(message: Any) -> dict[str, Any]:
    """Return a message in the words of the vectors."""
    if isinstance(message, Announcement):
        counts = {"publishers": message.publishers, "subscribers": message.subscribers, "connections": message.connections}
        counts |= {"retrans_in": message.requests_received, "retrans_out": message.requests_sent}
        counts |= {"subscriptions": message.subscriptions, "distributor_id": message.process_id}
        return {
            "id": 65537,
            "ip": message.address,
            "host": message.host_name,
            "mgmt_port": message.port,
            **names_of(message),
            **counts,
        }
    if isinstance(message, ProcessQuery):
        return {"id": 65538}
    if isinstance(message, ProcessAnswer):
        view = message.view
        memory = {"mem_max": view.memory_most, "mem_used": view.memory_used, "mem_free": view.memory_free}
        place = {"ip": view.address, "host": view.host_name, "mgmt_port": view.port, "distributor_id": view.process_id}
        connections = [summary_of(connection) for connection in view.connections or ()]
        return {"id": 65539, "view": {**names_of(view), **place, **memory, "connections": connections}}
    if isinstance(message, ConnectionQuery):
        return {"id": 65542, "connection_id": message.connection_id}
    assert isinstance(message, ConnectionAnswer)
    return {"id": 65543, "view": connection_of(message.view)}


def names_of(message: Any) -> dict[str, Any]:
    return {"application": message.application, "start_time": message.started_at}


def summary_of(connection: ConnectionSummary) -> dict[str, Any]:
    requests = {"in_retransmissions": connection.requests_received, "out_retransmissions": connection.requests_sent}
    updates = {"update_in": connection.updates_received, "update_out": connection.updates_sent}
    counts = {
        name: getattr(connection, name) for name in ("connection_id", "port", "subscribers", "publishers", "subscriptions")
    }
    return {"mca": connection.group, **counts, **updates, **requests}


def connection_of(view: ConnectionView) -> dict[str, Any]:
    queue, traffic, requests = view.queue, view.traffic, view.retransmissions
    told: dict[str, Any] = {}
    for prefix, direction in (("xta", traffic.sent), ("rcv", traffic.received)):
        told |= {f"{prefix}_total_bytes": direction.octets, f"{prefix}_total_segments": direction.segments}
        told[f"{prefix}_total_updates"] = direction.updates
        for place, rate in enumerate(direction.rates):
            name = f"{prefix}_{('bytes', 'segments', 'updates')[place % 3]}{('', '_1min', '_5min')[place // 3]}"
            told[name] = {"attribute": rate.name, "total": rate.total, "current": rate.current}
            told[name] |= {"peak": rate.peak, "peak_time": rate.peak_at}
    lists = {"in_hosts": requests.received_from, "out_hosts": requests.sent_to}
    counts = {name: getattr(view, name) for name in ("connection_id", "port", "publishers", "subscribers", "subscriptions")}
    return {
        "mca": view.group,
        **counts,
        "queue": {"attribute": queue.name, "size": queue.size, "peak": queue.peak, "peak_time": queue.peak_at},
        "traffic": told,
        "retransmissions": {"total_in": requests.received, "total_out": requests.sent, "total_seen": requests.seen, **lists},
        "topics": list(view.topics or ()),
    }


def test_every_recorded_message_decodes_to_its_fields_and_encodes_to_its_bytes() -> None:
    found, wanted = list(recorded()), vectors("mgmt")["management"]
    assert len(found) == len(wanted) == 8
    for data, fields in zip(found, wanted, strict=True):
        message = CODEC.decode(data)
        ours = words_of(message)
        assert ours == {key: fields[key] for key in ours}
        assert CODEC.encode(message) == data
        assert size_of(message) == len(data)


def test_cut_and_changed_messages_are_wire_errors_or_messages() -> None:
    for data in recorded():
        for cut in range(len(data)):
            with pytest.raises(WireError):
                CODEC.decode(data[:cut])
        for place in range(0, len(data), 3):
            try:
                CODEC.encode(CODEC.decode(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]))
            except (WireError, UsageError):
                continue


@given(st.binary(max_size=60), st.integers(0, 13))
def test_any_bytes_are_a_message_or_a_wire_error(rest: bytes, number: int) -> None:
    for data in (rest, (0x00010000 + number).to_bytes(4, "big") + rest):
        try:
            CODEC.decode(data)
        except WireError:
            continue


@given(st.lists(st.binary(max_size=30), max_size=6), st.integers(1, 9))
def test_frames_are_found_however_the_stream_is_cut(messages: list[bytes], piece: int) -> None:
    framing, found = ManagementFraming(), list[bytes]()
    stream = b"".join(map(framing.wrap, messages))
    for start in range(0, len(stream), piece):
        framing.unwrap(stream[start : start + piece], found)
    assert found == messages
    assert framing.waiting == 0
    with pytest.raises(WireError):
        framing.unwrap(b"GET / HTTP/1.1", found)


# The agent

RATES = tuple(RateView(f"rate{n}", n, n, n, "00:00:00.000") for n in range(9))
CONNECTION = ConnectionView(
    *("239.0.0.1", 5656, 77, 1, 1, 2),
    QueueView(None, 0, 3, "00:00:00.000"),
    TrafficView(DirectionView(1, 2, 3, RATES), DirectionView(4, 5, 6, RATES)),
    RetransmissionView(1, 2, 3, ("h",), None),
    ("/a",),
)


class Process:
    """The values that the agent of a test reports."""

    def __init__(self, process_id: int) -> None:
        self.process_id = process_id

    def announcement(self) -> Announcement:
        return Announcement("test", self.process_id, "10:00:00.000", "10.0.0.1", "h", 1234, 1, 1, 1, 0, 0, 2)

    def process(self) -> ProcessView:
        summary = ConnectionSummary(77, "239.0.0.1", 5656, 1, 1, 2, 3, 4, 0, 0)
        return ProcessView("test", self.process_id, "10:00:00.000", "10.0.0.1", "h", 1234, 1.0, 0.5, 0.5, (summary,))

    def connection(self, connection_id: int) -> ConnectionView | None:
        return CONNECTION if connection_id == 77 else None


class Asker(Machine):
    """Asks the agent at a peer, and keeps what it answers."""

    def __init__(self, ports: Ports, questions: list[Message]) -> None:
        super().__init__(ports)
        self.questions = questions
        self.answers: list[Message] = []
        self.is_closed = False

    def start(self, now: float) -> None:
        self.ports.connect("p")

    def opened(self, connection: Connection, now: float) -> None:
        for question in self.questions:
            self.ports.send(Packet(question, size_of(question), connection))

    def receive(self, message: Message, source: object, to: object, now: float) -> None:
        self.answers.append(message)

    def closed(self, connection: Connection, reason: object, now: float) -> None:
        self.is_closed = True

    def wake(self, now: float) -> None:
        """Do nothing."""

    def counts(self) -> dict[str, int]:
        return {}


def test_processes_hear_of_each_other_and_forget_who_is_gone() -> None:
    bench = Bench(("p", "q"), delay=0.001, codec=CODEC)
    agents = {name: ManagementAgent(bench[name], Group(GROUP), Process(number)) for number, name in enumerate("pq", 1)}
    for name, agent in agents.items():
        bench[name].run(agent)
    bench.run(25.0)
    assert [process.process_id for process in agents["p"].processes(bench.now)] == [2]
    assert [process.process_id for process in agents["q"].processes(bench.now)] == [1]
    assert bench.kinds()["announcement"] == 6
    bench.crash("q")
    bench.run(70.0)
    assert agents["p"].processes(bench.now) == []


def test_questions_are_answered_on_their_connection_and_wrong_ones_end_it() -> None:
    bench = Bench(("p", "a", "b"), delay=0.001, codec=CODEC)
    bench["p"].run(ManagementAgent(bench["p"], Group(GROUP), Process(9)))
    asker = Asker(bench["a"], [ProcessQuery(), ConnectionQuery(77)])
    wrong = Asker(bench["b"], [ConnectionQuery(78)])
    bench["a"].run(asker)
    bench["b"].run(wrong)
    bench.run(1.0)
    assert asker.answers == [ProcessAnswer(Process(9).process()), ConnectionAnswer(CONNECTION)]
    assert (wrong.answers, wrong.is_closed, asker.is_closed) == ([], True, False)


# The observer


def test_an_announcement_has_requests_sent_before_requests_received() -> None:
    data = CODEC.encode(
        Announcement("a", 1, None, None, None, 2, 3, 4, 5, requests_sent=6, requests_received=7, subscriptions=8)
    )
    assert [int.from_bytes(data[place : place + 4], "big") for place in range(len(data) - 28, len(data), 4)] == [
        2,
        3,
        4,
        5,
        6,
        7,
        8,
    ]


class Changing(Process):
    """A process whose connections change, and which counts what it is asked for."""

    def __init__(self, process_id: int) -> None:
        super().__init__(process_id)
        self.publishers = 1
        self.lists = 0
        self.ids = [77]

    def announcement(self) -> Announcement:
        return replace(super().announcement(), publishers=self.publishers)

    def process(self) -> ProcessView:
        self.lists += 1
        view = super().process()
        return replace(view, connections=tuple(replace((view.connections or ())[0], connection_id=each) for each in self.ids))

    def connection(self, connection_id: int) -> ConnectionView | None:
        return replace(CONNECTION, connection_id=connection_id) if connection_id in self.ids else None


def observed(names: str = "po", **options: Any) -> tuple[Bench, ManagementObserver, Changing]:
    """Return a bench with an agent at "p" and an observer at "o"."""
    bench, process = Bench(tuple(names), delay=0.001, codec=CODEC), Changing(5)
    observer = ManagementObserver(bench["o"], Group(GROUP), lambda source, _: source, **options)
    bench["o"].run(observer)
    bench["p"].run(ManagementAgent(bench["p"], Group(GROUP), process))
    return bench, observer, process


def test_an_observer_asks_for_connections_every_second_and_for_their_list_when_it_changes() -> None:
    bench, observer, process = observed()
    bench.run(0.1)
    (known,) = observer.processes.values()
    assert known.connections == {77: replace(CONNECTION, connection_id=77)}
    bench.run(9.5)
    assert (process.lists, observer.counts()["answers_received"]) == (1, 11)
    process.ids, process.publishers = [77, 78], 2
    bench.run(12.5)
    assert process.lists == 2
    assert list(known.connections) == [77, 78]
    assert known.announcement.publishers == 2


def test_a_connection_that_is_gone_leads_to_a_new_list() -> None:
    bench, observer, process = observed()
    bench.run(1.5)
    process.ids = [79]
    bench.run(3.5)
    (known,) = observer.processes.values()
    assert list(known.connections) == [79]
    assert known.connections[79] is not None


def test_a_process_that_dies_is_gone_at_once() -> None:
    bench, observer, _ = observed()
    bench.run(5.5)
    bench.crash("p")
    bench.run(6.0)
    assert observer.processes == {}


def test_a_process_that_does_not_answer_is_silent_and_is_forgotten_with_its_announcements() -> None:
    bench, observer, _ = observed(names="po")
    bench.run(5.5)
    bench.silent.add("p")
    bench.run(5.9)
    (known,) = observer.processes.values()
    assert not known.is_silent(5.9)
    bench.connections.timeout = inf
    bench.run(9.0)
    assert known.is_silent(9.0)
    bench.run(60.0)
    assert observer.processes == {}
    assert observer.counts()["processes_gone"] == 1


def test_who_answers_nonsense_or_too_much_changes_nothing() -> None:
    bench, observer, process = observed()
    bench.run(0.5)
    (known,) = observer.processes.values()
    assert known.stream is not None
    observer.receive(ConnectionAnswer(CONNECTION), known.stream, known.stream, 0.6)
    observer.receive(ProcessAnswer(process.process()), known.stream, known.stream, 0.6)
    observer.receive(ProcessQuery(), known.stream, known.stream, 0.6)
    observer.receive(ConnectionAnswer(CONNECTION), "elsewhere", "o", 0.6)
    assert list(known.connections) == [77]
    bench.run(5.0)
    assert list(known.connections) == [77]


def test_equal_ids_of_two_hosts_are_two_processes_and_observers_share_them() -> None:
    bench = Bench(("p", "q", "o", "r"), delay=0.001, codec=CODEC)
    owners: dict[Any, object] = {}
    observers = [ManagementObserver(bench[name], Group(GROUP), lambda source, _: source, owners=owners) for name in ("o", "r")]
    for name, observer in zip(("o", "r"), observers, strict=True):
        bench[name].run(observer)
    for name in "pq":
        bench[name].run(ManagementAgent(bench[name], Group(GROUP), Changing(5)))
    bench.run(3.0)
    assert [len(observer.processes) for observer in observers] == [2, 0]
    bench.crash("p")
    bench.run(4.0)
    assert len(observers[0].processes) == len(owners) == 1


def test_an_agent_announces_a_change_within_a_second_and_not_more_often() -> None:
    bench, process = Bench(("p", "o"), delay=0.001, codec=CODEC), Changing(5)
    agent = ManagementAgent(bench["p"], Group(GROUP), process)
    bench["p"].run(agent)
    bench["o"].run(ManagementObserver(bench["o"], Group(GROUP), lambda source, _: source))
    bench.run(5.0)
    for _ in range(5):
        bench["p"].call(agent.changed)
    bench.run(5.5)
    assert bench.kinds()["announcement"] == 2
    bench["p"].call(agent.changed)
    bench.run(5.9)
    assert bench.kinds()["announcement"] == 2
    bench.run(6.5)
    assert bench.kinds()["announcement"] == 3


def test_many_processes_take_turns_so_that_observing_them_costs_no_more() -> None:
    count = 2 * MOST_AT_ONCE + 10
    names = [f"p{number}" for number in range(count)]
    bench = Bench((*names, "o"), delay=0.001, codec=CODEC)
    observer = ManagementObserver(bench["o"], Group(GROUP), lambda source, _: source)
    bench["o"].run(observer)
    for number, name in enumerate(names):
        bench[name].run(ManagementAgent(bench[name], Group(GROUP), Process(number)))
    bench.run(0.5)
    before = observer.counts()["queries_sent"]
    bench.run(6.5)
    # Three turns of a second, twice.
    assert observer.counts()["queries_sent"] - before == 2 * count
    assert all(process.connections[77] is not None for process in observer.processes.values())


class Reluctant(ManagementAgent):
    """An agent that announces its process and hangs up on everybody."""

    def opened(self, connection: Connection, now: float) -> None:
        self._counts["clients_refused"] += 1
        self.ports.hang_up(connection)


def test_a_process_that_hangs_up_is_tried_some_times_after_each_announcement() -> None:
    bench = Bench(("p", "o"), delay=0.001, codec=CODEC)
    observer = ManagementObserver(bench["o"], Group(GROUP), lambda source, _: source)
    bench["o"].run(observer)
    agent = Reluctant(bench["p"], Group(GROUP), Process(5))
    bench["p"].run(agent)
    bench.run(9.5)
    assert agent.counts()["clients_refused"] == MOST_ATTEMPTS
    assert len(observer.processes) == 1
    bench.run(19.5)
    assert agent.counts()["clients_refused"] == 2 * MOST_ATTEMPTS
    bench.crash("p")
    bench.run(21.5)
    assert len(observer.processes) == 1
    bench.run(60.0)
    assert observer.processes == {}


def test_messages_nested_in_one_another_are_refused_before_they_are_decoded() -> None:
    data = pack("!i", 0x00010002)
    for _ in range(300):
        data = pack("!i", 0x00010003) + b"\1" + pack("!i", len(data)) + data
    with pytest.raises(WireError, match="are no process"):
        CODEC.decode(data)


@pytest.mark.parametrize("port", [-1, 0, 65_536, 99_999])
def test_a_process_that_announces_no_port_is_not_asked(port: int) -> None:
    bench, observer, _ = observed()
    announcement = next(each for each in map(CODEC.decode, recorded()) if isinstance(each, Announcement))
    bench["o"].deliver(replace(announcement, port=4243), "q", Group(GROUP), bench.now)
    bench["o"].deliver(replace(announcement, port=port), "r", Group(GROUP), bench.now)
    heard = [source for source, _ in observer.processes]
    assert "q" in heard
    assert "r" not in heard


@pytest.mark.parametrize("name", ["x" * 5000, "ü" * 2500])
def test_an_announcement_fits_the_buffer_of_a_receiver(name: str) -> None:
    class Named(Process):
        def announcement(self) -> Announcement:
            return replace(super().announcement(), application=name)

    bench, heard = Bench(("p", "q"), delay=0.001, codec=CODEC), list[Announcement]()
    bench["q"].run(ManagementAgent(bench["q"], Group(GROUP), Process(2), heard.append))
    bench["p"].run(ManagementAgent(bench["p"], Group(GROUP), Named(1)))
    bench.run(1.0)
    (announced,) = heard
    assert announced.application
    assert name.startswith(announced.application)
    assert 510 < size_of(announced) <= 512
