"""The registry alone: what it answers, what it keeps, and what it makes of clients that lie."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from experiments.contract.recorder import Recorder
from protocols.admin.config import MOST_NODES, AdminOptions
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.admin.registration import Registration, Renewal
from protocols.admin.registry import MOST_CONNECTIONS, MOST_WAITING, REQUEST_LIMIT, Answer, Registry
from protocols.connection import Connection
from protocols.errors import StorageError
from protocols.storage import Put, Record

LEASE = 10.0
PLAIN: Mapping[str, Any] = {"name": "t1", "site": 1, "port": 7000, "group": "all"}


class Served:
    """A registry with recorded ports, and connections of clients that send what they like."""

    def __init__(self, **options: Any) -> None:
        self.ports = Recorder()
        self.registry = Registry(self.ports, AdminOptions(**options))
        self.registry.start(0.0)

    def client(self, peer: object = "t1") -> Connection:
        connection = Connection(peer)
        self.registry.opened(connection, 0.0)
        return connection

    def ask(self, connection: Connection, method: str, target: str, body: object = b"", now: float = 0.0) -> Response | None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        before = len(self.ports.packets)
        self.registry.receive(Request(method, target, data), connection, connection, now)
        found = [packet.message for packet in self.ports.packets[before:] if packet.to is connection]
        return found[0] if found and isinstance(found[0], Response) else None


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("POST", "/nodes", PLAIN, 201),
        ("POST", "/nodes", b"{", 422),
        ("POST", "/nodes", b"[" * 60_000, 422),
        ("POST", "/nodes", [], 422),
        ("POST", "/nodes", {**PLAIN, "name": "x" * 201}, 422),
        ("POST", "/nodes", {**PLAIN, "port": 1 << 32}, 422),
        ("POST", "/nodes", {**PLAIN, "odd": 1}, 422),
        ("POST", "/nodes", b" " * (REQUEST_LIMIT + 1), 413),
        ("PUT", "/nodes", PLAIN, 405),
        ("PATCH", "/nodes/7", b"", 405),
        ("PUT", "/nodes/7", {}, 404),
        ("PUT", "/nodes/7", {"cpu": -1}, 422),
        ("DELETE", "/nodes/7", b"", 404),
        ("DELETE", "/nodes/x", b"", 404),
        ("DELETE", "/nodes/" + "9" * 5000, b"", 404),
        ("GET", "/nodes", b"", 200),
        ("GET", "/nodes?stamp=" + "9" * 5000, b"", 200),
        ("GET", "/elsewhere", b"", 404),
    ],
)
def test_every_request_has_an_answer(method: str, target: str, body: object, status: int) -> None:
    served = Served()
    answer = served.ask(served.client(), method, target, body)
    assert answer is not None
    assert answer.status == status
    if status >= 400:
        assert json.loads(answer.body)["detail"]


def test_a_tunnel_that_names_no_address_has_that_of_its_connection() -> None:
    served = Served()
    answer = served.ask(served.client(("10.0.0.7", 5555)), "POST", "/nodes", PLAIN)
    assert answer is not None
    assert json.loads(answer.body)["nodes"][0]["address"] == "10.0.0.7"


def test_what_is_no_request_ends_its_connection() -> None:
    served = Served()
    connection = served.client()
    served.registry.receive(Response(200), connection, connection, 0.0)
    assert served.ports.hung_up == [connection]
    assert served.registry.counts()["requests_malformed"] == 1
    assert served.ask(connection, "GET", "/nodes") is None


def test_connections_nodes_and_responses_that_wait_are_bounded() -> None:
    served = Served()
    connections = [served.client() for _ in range(MOST_CONNECTIONS + 1)]
    assert served.ports.hung_up == [connections[-1]]
    statuses = []
    for port in range(MOST_NODES + 5):
        served.registry.register(Registration("x", 1, port, "all"), "h", lambda told: statuses.append(told.status), 0.0)
    assert statuses == [201] * MOST_NODES + [503] * 5
    slow = connections[0]
    served.ports.rooms[slow] = 1
    for _ in range(MOST_WAITING + 2):
        served.ask(slow, "GET", "/nodes")
    assert served.ports.hung_up == [connections[-1], slow]


def test_an_answer_to_a_change_waits_until_it_is_durable() -> None:
    served = Served(state=1)
    served.registry.fetched(1, [], 0.0)
    connection = served.client()
    assert served.ask(connection, "POST", "/nodes", PLAIN) is None
    served.registry.stored(2, 0.1)
    answer = served.ports.packets[-1].message
    assert isinstance(answer, Response)
    assert answer.status == 201


def test_a_restarted_registry_advertises_to_the_port_that_a_tunnel_named_last() -> None:
    served = Served(state=1)
    served.registry.fetched(1, [], 0.0)
    for udp in (40_000, 50_000, 50_000):
        served.registry.register(Registration("x", 1, 7000, "all", "h", udp), "h", lambda told: None, 0.0)
    assert len(served.ports.stores) == 2
    disk = {change.key: change for _, changes in served.ports.stores for change in changes if isinstance(change, Put)}
    again = Served(state=1)
    again.registry.fetched(1, [Record(put.key, put.value) for put in disk.values()], 0.0)
    again.registry.wake(again.registry.deadline)
    assert [packet.to for packet in again.ports.packets] == [("h", 50_000)]


@pytest.mark.parametrize("record", [Put(b"registry", b"{}"), Put(b"node/1", b"{"), Put(b"odd", b"{}"), Put(b"node/1", b"[]")])
def test_a_state_that_is_damaged_ends_the_registry_with_one_line(record: Put) -> None:
    served = Served(state=1)
    with pytest.raises(StorageError, match="the state of the registry can't be read") as caught:
        served.registry.fetched(1, [record], 0.0)
    assert "\n" not in str(caught.value)


def test_a_change_is_advertised_soon_and_everything_every_period() -> None:
    served = Served(period=1.0)
    served.registry.register(Registration("x", 1, 0, "all"), "h", lambda told: None, 0.5)
    times = []
    for step in range(400):
        now = 0.5 + step / 100
        if served.registry.deadline <= now:
            before = len(served.ports.packets)
            served.registry.wake(now)
            times += [now] * (len(served.ports.packets) - before)
    assert times == pytest.approx([0.5, 1.5, 2.5, 3.5], abs=0.05)
    assert {type(packet.message) for packet in served.ports.packets} == {Advertisement}


class Leases(RuleBasedStateMachine):
    """Registrations, renewals, departures, pauses and time in any order, against a list of what has to be true."""

    def __init__(self) -> None:
        super().__init__()
        self.ports = Recorder()
        self.registry = Registry(self.ports, AdminOptions(lease=LEASE))
        self.now = 0.0
        self.registry.start(self.now)
        self.heard: dict[int, float] = {}
        self.places: dict[int, int] = {}
        self.paused: set[int] = set()
        self.seen: tuple[int, object] = (-1, None)

    @rule(port=st.integers(0, 5), site=st.integers(0, 2))
    def register(self, port: int, site: int) -> None:
        answers: list[Answer] = []
        self.registry.register(Registration(f"t{port}", site, port, "all"), "h", answers.append, self.now)
        assert answers[0].body is not None
        number = answers[0].body["id"]
        known = {place: each for each, place in self.places.items()}
        assert known.get(port, number) == number
        assert number in self.places or number not in self.heard
        self.heard[number], self.places[number] = self.now, port

    @precondition(lambda self: self.places)
    @rule(data=st.data(), counters=st.dictionaries(st.sampled_from("ab"), st.floats(0, 1e6)))
    def renew(self, data: st.DataObject, counters: dict[str, float]) -> None:
        number = data.draw(st.sampled_from(sorted(self.places)))
        answers: list[Answer] = []
        self.registry.renew(number, Renewal(counters), answers.append, self.now)
        assert answers[0].status == 200
        self.heard[number] = self.now

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.places)))
        self.registry.remove(number, lambda told: None, self.now)
        self._forget(number)

    @precondition(lambda self: self.places)
    @rule(data=st.data(), paused=st.booleans())
    def pause(self, data: st.DataObject, paused: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.places)))
        self.registry.pause(number, paused, lambda told: None, self.now)
        (self.paused.add if paused else self.paused.discard)(number)

    @rule(seconds=st.floats(0.001, 15.0))
    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.registry.deadline <= end:
            self.now = max(self.now, self.registry.deadline)
            self.registry.wake(self.now)
            assert self.registry.deadline > self.now
        self.now = end
        for number in list(self.places):
            if self.heard[number] + LEASE <= self.now:
                self._forget(number)

    def _forget(self, number: int) -> None:
        del self.places[number]
        self.paused.discard(number)

    @invariant()
    def the_list_has_who_renewed_within_a_lease(self) -> None:
        nodes = self.registry.table.nodes
        assert {node.id: node.port for node in nodes} == self.places
        assert {node.id for node in nodes if node.paused} == self.paused

    @invariant()
    def the_stamp_grows_with_every_change_and_only_then(self) -> None:
        stamp, listed = self.registry.table.stamp, self.registry.listing(None, self.now).body
        assert listed is not None
        nodes = listed["nodes"]
        if self.seen[1] != nodes:
            assert stamp > self.seen[0]
        self.seen = (stamp, nodes)
        assert self.registry.listing(stamp, self.now).status == 304


Leases.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
test_leases = Leases.TestCase


@given(
    bodies=st.lists(
        st.tuples(st.sampled_from(["GET", "POST", "PUT", "DELETE"]), st.sampled_from(["/nodes", "/nodes/1", "/"]), st.binary()),
        max_size=5,
    )
)
def test_no_request_makes_it_raise(bodies: list[tuple[str, str, bytes]]) -> None:
    served = Served()
    connection = served.client()
    for method, target, body in bodies:
        assert served.ask(connection, method, target, body) is not None
