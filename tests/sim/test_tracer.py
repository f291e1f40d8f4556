"""The trace contains everything that happens, in an order that depends only on time and node."""

import io
import json
from collections import Counter
from typing import Any

import pytest

from protocols.registry import protocol
from sim.tracer import FORMAT, Tracer
from tests.sim.looks import Notes, watched
from tests.sim.test_fingerprint import ANY, PROTOCOLS

NORM = protocol("norm")
TREE = {
    "kind": "tree",
    "depth": 2,
    "receivers": 2,
    "trunk": {"rate": "20Mbit", "delay": "5ms", "down": {"loss": "2%"}},
    "link": {"rate": "10Mbit", "down": {"loss": "5%"}},
}


def trace(name: str = "norm", nodes: tuple[str, ...] | None = None, **options: Any) -> tuple[str, Notes, Any]:
    """The text of a session's trace, what a watcher beside it saw, and the session."""
    topology, file, notes = ANY.validate_python(TREE).build(), io.StringIO(), Notes()
    tracer = Tracer(topology, file, {"scenario": "tree"}, nodes)
    session = watched(topology, PROTOCOLS[name], [notes, tracer], **options)
    return file.getvalue(), notes, session


def rows(text: str) -> list[dict[str, Any]]:
    """Every line but the first."""
    return [json.loads(line) for line in text.splitlines()[1:]]


def test_every_packet_decision_and_event_has_its_line() -> None:
    text, notes, session = trace()
    head = json.loads(text.splitlines()[0])
    assert head["format"] == FORMAT
    assert head["hosts"] == list(session.network.topology.hosts)
    names = Counter(row["name"] for row in rows(text))
    counts = session.network.links()
    assert names["packet_sent"] == len(notes.packets) == sum(session.network.traffic.packets.values())
    assert names["packet_dropped"] == sum(count.lost + count.dropped for count in counts) > 0
    assert names["packet_received"] >= session.network.deliveries
    assert names["object_received"] == len(session.received)
    assert sum(names[name] for _, _, name, _ in notes.decisions) > 0
    assert rows(text)[-1] == {"time": session.network.env.now, "node": None, "name": "end", "data": {}}


def test_lines_are_in_order_of_time_and_then_of_node() -> None:
    text, _, session = trace()
    places = {name: place for place, name in enumerate([*session.network.topology.hosts, *session.network.topology.switches])}
    keys = [(row["time"], places[row["node"]]) for row in rows(text)[:-1]]
    assert keys == sorted(keys)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_objects_and_bytes_leave_the_same_trace(name: str) -> None:
    assert trace(name)[0] == trace(name, wire=True)[0]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_both_engines_leave_the_same_trace(name: str) -> None:
    assert trace(name, engine="strict")[0] == trace(name, engine="fast")[0]


def test_a_trace_may_be_of_some_hosts() -> None:
    whole, some = rows(trace()[0]), rows(trace(nodes=("sender", "r2_1"))[0])
    switches = {"s1", "s2", "s3"}
    assert some == [row for row in whole if row["node"] in {"sender", "r2_1", None, *switches}]
    assert len(some) < len(whole)


def test_repairs_and_requests_say_what_they_are() -> None:
    found = rows(trace()[0])
    repairs = [row["data"] for row in found if row["data"].get("repair")]
    assert all(data["kind"] in ("data", "info") for data in repairs)
    asked = [row["data"]["brief"] for row in found if row["name"] == "packet_sent" and row["data"]["kind"] == "nack"]
    assert repairs
    assert asked
    assert all(asked)
