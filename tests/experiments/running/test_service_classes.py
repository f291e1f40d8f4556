"""`tos`: the priority of a message is the DSCP of its packets, in the simulator, in Mininet and at a real socket."""

import socket
from pathlib import Path
from typing import Any

import pytest

from emu.udp import SendQueue
from experiments.captures.capture_file import CaptureFile
from experiments.running.recording import Recording
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.fjm2.service_class import DSCP
from protocols.jms.wire import FIXED_SIZE

IP, DATA = 14, 14 + 20 + 8
"""Where the headers of IP and of NORM begin in a frame."""
WORLDS = ["sim", pytest.param("emu", marks=pytest.mark.emu)]


def captured(tmp_path: Path, world: str, role: str, **protocol: Any) -> dict[int, set[int]]:
    """Run publishers of ten priorities; return the DSCPs of the packets of each priority, and of others under -1."""
    scenario = {
        "name": "classes",
        "wire": "bytes",
        "topology": {"kind": "star", "receivers": 1, "link": {"rate": "10Mbit", "queue": 100}},
        "protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "10ms", **protocol},
        "nodes": {"sender": {"role": "both"}} if role == "both" else {},
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 200, "rate": "200/s", "count": 60}
            | {"priority": {str(priority): 1 for priority in range(10)}},
            {"kind": "subscribe", "hosts": ["r1", *(["sender"] if role == "both" else [])], "to": "topic:t"},
        ],
        "duration": "20s",
    }
    assert run(parse(scenario, "classes"), world, Recording(points=("sender",), captures=tmp_path)).ok
    found: dict[int, set[int]] = {}
    for frame in CaptureFile(next(tmp_path.glob("*.pcapng"))).frames():
        data = bytes(frame.data)
        if data[12:14] == b"\x08\x00" and data[IP + 9] == socket.IPPROTO_UDP and data[IP + 16] >= 224:
            is_data = data[DATA] & 15 == 2
            head = DATA + 4 * data[DATA + 1]
            priority = data[head + 1] & 15 if is_data else -1
            found.setdefault(priority, set()).add(data[IP + 1] >> 2)
    assert FIXED_SIZE == 14
    return found


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("role", ["publisher", "both"])
def test_packets_have_the_class_of_the_priority_and_others_that_of_the_host(tmp_path: Path, world: str, role: str) -> None:
    found = captured(tmp_path, world, role, tos=True)
    assert found.pop(-1) == {0}
    assert found == {priority: {dscp} for priority, dscp in enumerate(DSCP)}


@pytest.mark.parametrize("world", WORLDS)
def test_without_tos_all_packets_have_the_class_of_the_host(tmp_path: Path, world: str) -> None:
    assert set.union(*captured(tmp_path, world, "publisher").values()) == {0}


def latencies(world: str, queue: Any, tos: bool = True) -> tuple[float, float]:
    """Send more than a link carries, and urgent messages beside it; return the median latency of both in seconds."""
    links = [{"ends": ["p", "s1"]}, {"ends": ["q", "s1"]}, {"ends": ["s1", "s2"], "rate": "5Mbit", "queue": queue}]
    publish = {"kind": "publish", "at": "200ms"}
    scenario = {
        "name": "queues",
        "topology": {
            "kind": "graph",
            "nodes": {"p": {}, "q": {}, "s1": {"kind": "switch"}, "s2": {"kind": "switch"}, "r": {"count": 2}},
            "links": [*links, {"ends": ["s2", "r"]}],
        },
        "protocol": {"name": "fjm2", "rate": "6Mbit", "grtt": "10ms", "tos": tos},
        "workload": [
            publish | {"hosts": ["p"], "to": "topic:bulk", "size": "1kB", "rate": "700/s", "count": 700},
            publish | {"hosts": ["q"], "to": "topic:urgent", "size": 100, "rate": "50/s", "count": 40, "priority": 9},
            {"kind": "subscribe", "hosts": ["r1"], "to": "topic:bulk"},
            {"kind": "subscribe", "hosts": ["r2"], "to": "topic:urgent"},
        ],
        "duration": "20s",
    }
    result = run(parse(scenario, "queues"), world)
    assert result.ok
    assert result.messages is not None
    bulk, urgent = (row["latency_p50"] for row in result.messages["subscriptions"])
    return bulk, urgent


@pytest.mark.parametrize("world", WORLDS)
def test_a_queue_of_priorities_lets_urgent_messages_overtake(world: str) -> None:
    bulk, urgent = latencies(world, {"model": "priority", "packets": 50})
    assert urgent * 10 < bulk


@pytest.mark.parametrize(("queue", "tos"), [(50, True), ({"model": "priority", "packets": 50}, False)])
def test_nothing_overtakes_in_another_queue_or_without_a_mark(queue: Any, tos: bool) -> None:
    bulk, urgent = latencies("sim", queue, tos)
    assert urgent * 10 > bulk


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_packet_of_a_class_leaves_a_real_socket_with_it_and_the_next_one_without(
    family: socket.AddressFamily, address: str
) -> None:
    level, kind, told = socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS
    if family == socket.AF_INET6:
        level, kind, told = socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS
    with socket.socket(family, socket.SOCK_DGRAM) as into, socket.socket(family, socket.SOCK_DGRAM) as out:
        into.bind((address, 0))
        into.setsockopt(level, told, 1)
        into.settimeout(5.0)
        out.bind((address, 0))
        queue = SendQueue(out)
        for dscp in (46, 46, None, 0, 8):
            queue.push(b"x", into.getsockname(), 0, dscp)
        queue.flush()
        classes = []
        for _ in range(5):
            ancillary = into.recvmsg(10, 100)[1]
            classes.append(next(value[0] for found, what, value in ancillary if (found, what) == (level, kind)) >> 2)
    assert classes == [46, 46, 0, 0, 8]
