"""The registry: a machine that keeps the list of tunnels, answers them, and advertises when the list changed last.

It is asked by HTTP. In the simulator requests arrive as messages of its connections; a real HTTP server (`emu.admin`) calls the
verbs `register`, `renew`, `remove`, `pause` and `listing` instead, and the machine does not listen. A verb answers through a
function, since a change may first have to be durable.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from protocols.admin.config import MOST_NODES, AdminOptions
from protocols.admin.events import NodeChanged, NodeLeft, NodeRegistered, RegistryOpened, Why
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement, place_of
from protocols.admin.registration import (
    LARGEST_ID,
    LARGEST_PORT,
    LARGEST_STAMP,
    Registration,
    Renewal,
    encoded,
    nodes_of,
    plain_node,
    read_number,
    registration_of,
    renewal_of,
)
from protocols.admin.table import Entry, NodeTable
from protocols.admin.wire import ADVERTISEMENT_SIZE, size_of
from protocols.central.outbox import Outbox
from protocols.connection import Connection, Reason
from protocols.errors import StorageError, WireError
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.roles import RoleContext
from protocols.snapshot import Measure, Snapshot
from protocols.storage import Delete, Put, Record

__all__ = ["MEASURES", "MOST_CONNECTIONS", "MOST_WAITING", "REQUEST_LIMIT", "Answer", "Registry", "Reply", "make_registry"]

REQUEST_LIMIT: Final = 64 << 10
"""Bytes of the body of a request."""
MOST_CONNECTIONS: Final = 2 * MOST_NODES
MOST_WAITING: Final = 16
"""Responses that wait because a client does not read."""
_EAGER: Final = 4
"""A change is advertised at once, but not within this part of a period after the advertisement before."""
_NUMBERS: Final = 1 << 48
_FIRST_IDS: Final = 1 << 15
"""Ids of a registry begin behind a multiple of 65,536, one of so many, so that one that began anew has others."""
_HEAD: Final = b"registry"
_NODE: Final = b"node/"

MEASURES: Final = (
    Measure("nodes", "tunnels in the list", "", "gauge"),
    Measure("stamp", "time of the last change of the list, in milliseconds since 1970", "", "gauge"),
    Measure("age", "time since a tunnel registered", "seconds", "gauge"),
    Measure("paused", "1 for a tunnel that is paused", "", "gauge"),
    Measure("cpu", "processor time of a tunnel", "seconds"),
    Measure("memory", "memory of a tunnel", "bytes", "gauge"),
    Measure("ring_used", "packets in a tunnel's ring", "", "gauge"),
    Measure("ring_size", "packets that a tunnel's ring has room for", "", "gauge"),
    Measure("bytes_out", "bytes of datagrams to other tunnels", "bytes"),
    Measure("bytes_in", "bytes of datagrams from other tunnels", "bytes"),
)
"""Meanings of the counters of a registry and of its tunnels."""
_COUNTS: Final = (
    *("registrations", "renewals", "nodes_left", "nodes_silent", "lists_sent", "lists_current", "advertisements_sent"),
    *("requests_refused", "requests_malformed", "connections_refused"),
)


class Answer(NamedTuple):
    """Status and JSON of a response, and the stamp of the list in it."""

    status: int
    body: Mapping[str, Any] | None = None
    tag: str = ""


Reply: TypeAlias = Callable[[Answer], None]


def make_registry(ports: Ports, context: RoleContext) -> "Registry":
    """Make the registry of a scenario."""
    return Registry(ports, context.options or AdminOptions(), context.instance)


class Registry(Machine):
    """Keeps the list. `instance` differs at each start; `listens` is whether it serves connections itself."""

    __slots__ = (
        "_advertise_at",
        "_advertised_at",
        "_connections",
        "_counts",
        "_listens",
        "_loading",
        "_options",
        "_waiting",
        "number",
        "table",
    )

    def __init__(self, ports: Ports, options: AdminOptions, instance: int = 1, *, listens: bool = True) -> None:
        super().__init__(ports)
        self._options, self._listens = options, listens
        rng = ports.rng.fork("registry", instance)
        self.number = int(rng.uniform() * _NUMBERS)
        """By which clients recognise it; kept with its state."""
        self.table = NodeTable(options.lease, MOST_NODES, int(rng.uniform() * _FIRST_IDS) << 16)
        self._advertise_at, self._advertised_at = inf, -inf
        self._loading: int | None = None
        self._waiting: dict[int, tuple[Reply, Answer]] = {}
        """Answers to changes that are not durable yet, by ticket."""
        self._connections: dict[Connection, Outbox] = {}
        self._counts = dict.fromkeys(_COUNTS, 0)

    def start(self, now: float) -> None:
        """Read what the disk has, if it has anything, and serve."""
        if self._options.state:
            self._loading = self.ports.fetch()
        else:
            self._open(now)

    def _open(self, now: float) -> None:
        if self._listens:
            self.ports.listen()
        self._advertise_at = now
        self._plan(now)
        self.ports.notify(RegistryOpened(len(self.table)))

    @property
    def options(self) -> AdminOptions:
        """Its parameters."""
        return self._options

    # What is asked

    def register(self, registration: Registration, source: str, reply: Reply, now: float) -> None:
        """Put a tunnel in the list and answer with its id, its lease and the list; `source` is the address it asks from."""
        found = self.table.register(registration, source, now)
        if found is None:
            self._counts["requests_refused"] += 1
            reply(Answer(503, {"detail": f"the list has {MOST_NODES} nodes, and no room for another one"}))
            return
        entry, before = found
        changed = before is None or before.node != entry.node
        # Where it takes advertisements is not in the list, and the disk has it all the same.
        is_stored = before is not None and not changed and before.udp == entry.udp
        self._counts["registrations"] += 1
        if changed:
            self._touch(now)
            self.ports.notify(NodeRegistered(entry.node))
        self._plan(now)
        told = {"id": entry.node.id, "lease": self._options.lease, "registry": self.number, **self._list()}
        self._answer(reply, Answer(201, told), [] if is_stored else [entry])

    def renew(self, number: int, renewal: Renewal, reply: Reply, now: float) -> None:
        """Keep a tunnel in the list for another lease, and answer with the stamp."""
        entry = self.table.get(number)
        if entry is None:
            reply(_unknown(number))
            return
        self._counts["renewals"] += 1
        entry.take(renewal, now)
        reply(Answer(200, {"stamp": self.table.stamp, "lease": self._options.lease}))

    def remove(self, number: int, reply: Reply, now: float) -> None:
        """Take a tunnel out of the list."""
        if self.table.get(number) is None:
            reply(_unknown(number))
            return
        self._counts["nodes_left"] += 1
        self._drop(number, "left", now)
        self._answer(reply, Answer(204), [], [number])

    def pause(self, number: int, paused: bool, reply: Reply, now: float) -> None:
        """Pause or resume a tunnel, and answer with its entry."""
        entry = self.table.get(number)
        if entry is None:
            reply(_unknown(number))
            return
        changed = self.table.pause(number, paused)
        if changed:
            self._touch(now)
            self.ports.notify(NodeChanged(entry.node))
        self._answer(reply, Answer(200, plain_node(entry.node)), [entry] if changed else [])

    def listing(self, stamp: int | None, now: float) -> Answer:
        """Return the list, or that the one of `stamp` is current."""
        tag = str(self.table.stamp)
        if stamp == self.table.stamp:
            self._counts["lists_current"] += 1
            return Answer(304, None, tag)
        self._counts["lists_sent"] += 1
        return Answer(200, self._list(), tag)

    def _list(self) -> dict[str, Any]:
        return {"stamp": self.table.stamp, "nodes": [plain_node(node) for node in self.table.nodes]}

    # Changes

    def _touch(self, now: float) -> None:
        """Note that the list changed, and advertise it soon."""
        self.table.touch(int((self.ports.epoch + now) * 1000))
        self._advertise_at = min(self._advertise_at, max(now, self._advertised_at + self._options.period / _EAGER))
        self._plan(now)

    def _drop(self, number: int, why: Why, now: float) -> None:
        entry = self.table.remove(number)
        assert entry is not None
        self._touch(now)
        self.ports.notify(NodeLeft(entry.node, why))

    def _answer(self, reply: Reply, answer: Answer, stored: Sequence[Entry], removed: Sequence[int] = ()) -> None:
        """Answer, after the change is durable if it is to be."""
        if not self._options.state or not (stored or removed):
            reply(answer)
        else:
            self._waiting[self._store(stored, removed)] = reply, answer

    def _store(self, stored: Sequence[Entry], removed: Sequence[int]) -> int:
        head = {"registry": self.number, "stamp": self.table.stamp, "next": self.table.next_id}
        nodes = [Put(_key(entry.node.id), encoded(plain_node(entry.node) | {"udp": entry.udp})) for entry in stored]
        return self.ports.store([*nodes, *(Delete(_key(number)) for number in removed), Put(_HEAD, encoded(head))])

    def stored(self, ticket: int, now: float) -> None:
        """Answer what waited for a change to be durable."""
        waiting = self._waiting.pop(ticket, None)
        if waiting is not None:
            reply, answer = waiting
            reply(answer)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Take the list of the disk; each node has a new lease."""
        if ticket != self._loading:
            return
        self._loading = None
        try:
            for record in records:
                self._load(record, now)
        except (WireError, ValueError, RecursionError) as error:
            raise StorageError(f"the state of the registry can't be read: {error}") from error
        self._open(now)

    def _load(self, record: Record, now: float) -> None:
        plain = json.loads(record.value)
        if not isinstance(plain, dict):
            raise WireError("is not allowed; an object")
        if record.key == _HEAD:
            self.number = read_number(plain, "registry", LARGEST_STAMP)
            self.table.stamp = read_number(plain, "stamp", LARGEST_STAMP)
            self.table.continue_at(read_number(plain, "next", LARGEST_ID + 1))
        elif record.key.startswith(_NODE):
            udp = read_number(plain, "udp", LARGEST_PORT)
            (node,) = nodes_of([{key: value for key, value in plain.items() if key != "udp"}], 1)
            self.table.put(Entry(node, udp, now, now))
        else:
            raise WireError(f"{record.key!r} is no key of a registry")

    # Time

    def wake(self, now: float) -> None:
        """Forget nodes whose lease is over, and advertise."""
        silent = self.table.overdue(now)
        for number in silent:
            self._counts["nodes_silent"] += 1
            self._drop(number, "silent", now)
        if silent and self._options.state:
            self._store([], silent)
        if self._advertise_at <= now:
            self._advertise(now)
        self._plan(now)

    def _advertise(self, now: float) -> None:
        message = Advertisement(self.number, self.table.stamp)
        for entry in self.table:
            self._counts["advertisements_sent"] += 1
            self.ports.send(Packet(message, ADVERTISEMENT_SIZE, _endpoint(entry)))
        self._advertised_at, self._advertise_at = now, now + self._options.period

    def _plan(self, now: float) -> None:
        self._due(min(self._advertise_at, self.table.first_end))

    # Connections

    def opened(self, connection: Connection, now: float) -> None:
        """Serve a client; one too many is closed."""
        if len(self._connections) >= MOST_CONNECTIONS:
            self._counts["connections_refused"] += 1
            self.ports.hang_up(connection)
        else:
            self._connections[connection] = Outbox(self.ports, connection, size_of)

    def drained(self, connection: Connection, now: float) -> None:
        """Send the responses that wait."""
        if connection in self._connections:
            self._connections[connection].drain()

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Answer a request of a connection."""
        if not isinstance(to, Connection) or to not in self._connections:
            return
        if not isinstance(message, Request):
            self._counts["requests_malformed"] += 1
            del self._connections[to]
            self.ports.hang_up(to)
            return
        try:
            self._serve(message, place_of(to.peer)[0], lambda answer: self._respond(to, answer), now)
        except (WireError, ValueError, RecursionError) as error:
            self._counts["requests_malformed"] += 1
            self._respond(to, Answer(422, {"detail": str(error)}))

    def _serve(self, request: Request, source: str, reply: Reply, now: float) -> None:
        """Answer a request. WireError or ValueError for a body that is not allowed."""
        path, _, query = request.target.partition("?")
        if len(request.body) > REQUEST_LIMIT:
            reply(Answer(413, {"detail": f"a body has at most {REQUEST_LIMIT} bytes"}))
        elif path == "/nodes" and request.method == "POST":
            self.register(registration_of(json.loads(request.body)), source, reply, now)
        elif path == "/nodes" and request.method == "GET":
            known = query.removeprefix("stamp=")
            reply(self.listing(int(known) if known.isdecimal() and len(known) <= len(str(LARGEST_STAMP)) else None, now))
        elif path.startswith("/nodes/") and (number := _number(path.removeprefix("/nodes/"))) is not None:
            if request.method == "PUT":
                self.renew(number, renewal_of(json.loads(request.body)), reply, now)
            elif request.method == "DELETE":
                self.remove(number, reply, now)
            else:
                reply(Answer(405, {"detail": "Method Not Allowed"}))
        else:
            reply(Answer(405 if path == "/nodes" else 404, {"detail": "Not Found"}))

    def _respond(self, connection: Connection, answer: Answer) -> None:
        """Send a response, unless the client is gone; one that takes none is closed."""
        outbox = self._connections.get(connection)
        if outbox is not None and len(outbox.waiting) >= MOST_WAITING:
            self._counts["connections_refused"] += 1
            del self._connections[connection]
            self.ports.hang_up(connection)
        elif outbox is not None:
            outbox.send(Response(answer.status, b"" if answer.body is None else encoded(answer.body), answer.tag))

    # Statistics

    def counts(self) -> dict[str, int]:
        """Return what was asked and advertised, and which nodes left."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the nodes and the connections."""
        return {"nodes": (len(self.table), MOST_NODES), "connections": (len(self._connections), MOST_CONNECTIONS)}

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the registry, and of each tunnel as of its last renewal."""
        values = self.counts() | {"nodes": len(self.table), "stamp": self.table.stamp}
        return Snapshot("session", "", values, {"role": "registry"}, [_of_entry(entry, now) for entry in self.table])


def _of_entry(entry: Entry, now: float) -> Snapshot:
    """Return the statistics of a tunnel."""
    told = {"age": now - entry.since, "silence": now - entry.heard_at, "cpu": entry.cpu, "memory": entry.memory}
    node = entry.node
    values = {**entry.counters, **told, "paused": int(node.paused)}
    return Snapshot("tunnel", f"{node.name} ({node.id})", values, {}, ())


def _endpoint(entry: Entry) -> Address:
    """Return where a node takes advertisements."""
    return replace(entry.node, port=entry.udp).endpoint


def _unknown(number: int) -> Answer:
    return Answer(404, {"detail": f"no node {number}; register first"})


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None


def _key(number: int) -> bytes:
    return _NODE + number.to_bytes(8)
