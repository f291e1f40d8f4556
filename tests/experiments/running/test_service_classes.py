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
