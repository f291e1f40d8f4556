"""A host serves packets and its own work in the order they come (`fifo`), and pays for the frames of a connection."""

from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UsageError

COST = 100e-6


def loop(protocol: dict[str, Any], host: dict[str, Any], size: int = 1000, roles: dict[str, Any] | None = None) -> Any:
    """Run a publisher and a subscriber on one host for 0.2 s; return the plain result."""
    written = {
        "name": "loop",
        "topology": {
            "kind": "graph",
            "nodes": {"h": host, "s": {"kind": "switch"}, "x": {}},
            "links": [{"ends": ["h", "s"]}, {"ends": ["s", "x"]}],
        },
        "protocol": protocol,
        "nodes": roles or {},
        "workload": [
            {
                "kind": "publish",
                "hosts": ["h"],
                "to": "topic:t",
                "size": size,
                "rate": "saturated",
                "at": "100ms",
                "until": "300ms",
            },
            {"kind": "subscribe", "hosts": ["h"], "to": "topic:t"},
        ],
        "duration": "2s",
    }
    return run(parse(written, "loop")).plain()


def per_second(result: Any) -> float:
    (row,) = result["messages"]["subscriptions"]
    return float((row["delivered"] - 1) / (row["last_at"] - row["first_at"]))


FIFO = {"fifo": True, "cpu": "100us", "cpu_send": "100us"}


@pytest.mark.parametrize(
    "protocol", [{"name": "datagram", "rate": "10Gbit"}, {"name": "fjm2", "rate": "1Gbit", "grtt": "10ms"}]
)
def test_two_programs_of_a_host_share_its_processor(protocol: dict[str, Any]) -> None:
    found = loop(protocol, FIFO)
    assert per_second(found) == pytest.approx(1 / (2 * COST), rel=0.02)
    assert found["metrics"]["messages"]["lost"] == 0


def test_without_it_the_own_work_of_a_publisher_that_never_stops_goes_first() -> None:
    found = loop({"name": "datagram", "rate": "10Gbit"}, {**FIFO, "fifo": False})
    (row,) = found["messages"]["subscriptions"]
    assert row["first_at"] > 0.25


def test_a_host_of_a_broker_serves_all_three_programs_and_loses_nothing() -> None:
    """Once a delayed write reported a full connection too late, so that the broker waited for ever."""
    costs = {"fifo": True, "cpu_send": "39us", "cpu_byte": "19.2ns"}
    found = loop({"name": "broker"}, costs, 8192, {"h": {"role": "broker"}})
    messages = found["metrics"]["messages"]
    assert messages["delivered"] == messages["published"] > 200
    assert found["completed"]


def test_a_full_buffer_drops_what_would_have_to_wait() -> None:
    nodes = {"r": {"fifo": True, "cpu": "1ms", "buffer": "5kB"}}
    written = {
        "name": "overrun",
        "topology": {"kind": "star", "receivers": 1, "link": {"rate": "1Gbit"}, "nodes": nodes},
        "protocol": {"name": "datagram", "rate": "100Mbit"},
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 1000, "rate": "2000/s", "count": 400},
            {"kind": "subscribe", "hosts": ["r1"], "to": "topic:t"},
        ],
        "duration": "5s",
    }
    found = run(parse(written, "overrun")).plain()
    (node,) = found["metrics"]["nodes"]
    assert node["offered"] == 400
    assert node["dropped"] == pytest.approx(200, abs=6)
    assert found["metrics"]["messages"]["delivered"] == 400 - node["dropped"]


@pytest.mark.parametrize(("frame", "least"), [("0us", 0.0), ("50us", 0.004)])
def test_the_frames_of_a_connection_are_those_of_its_segments(frame: str, least: float) -> None:
    """Two hundred small messages travel in few segments; each costs its frame once at either end."""
    costs = {"cpu_frame": frame, "cpu_send": "1us"}
    written = {
        "name": "frames",
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "100Mbit"}, "nodes": {"sender": costs}},
        "protocol": {"name": "broker"},
        "nodes": {"r1": {"role": "broker"}},
        "workload": [
            {
                "kind": "publish",
                "hosts": ["sender"],
                "to": "topic:t",
                "size": 100,
                "rate": "saturated",
                "at": "100ms",
                "count": 1000,
            },
            {"kind": "subscribe", "hosts": ["r2"], "to": "topic:t"},
        ],
        "duration": "5s",
    }
    found = run(parse(written, "frames")).plain()
    row = next(each for each in found["metrics"]["processors"] if each["host"] == "sender")
    segments = 1000 * 300 / 1460
    assert least <= row["busy"] - 1e-3 < 4 * segments * 50e-6


def test_pause_frames_need_a_buffer_that_own_work_does_not_pass() -> None:
    with pytest.raises(UsageError, match=r"nodes.h.pause: value True is not allowed; False with fifo"):
        loop({"name": "datagram"}, {"fifo": True, "pause": True})
