"""Segments that wait to leave their own host: a kernel sends no second copy of them."""

import socket
import subprocess
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from tests.sim.tcp.scenes import ENGINES, Scene, star

SAID_AT = 5.0


def served(engine: str, **link: Any) -> Scene:
    """Let a server say 1000 bytes to each of 20 clients at once, which takes its link 1.8 s."""
    link = {"rate": "100kbit", "delay": "1ms", **link}
    scene = Scene(star(21, **link), engine)
    server = scene.listener("r1")
    for number in range(20):
        # One after the other, so that no segment waits before.
        scene.at(0.1 * number, lambda name=f"r{number + 2}": scene.caller(name, "r1"))  # type: ignore[misc]
    scene.at(SAID_AT, lambda: scene.network.host("r1").call(server.say, 1000))
    scene.network.run(until=SAID_AT + 1.5)
    assert len(server.openings) == 20
    return scene


@pytest.mark.parametrize("engine", ENGINES)
def test_a_segment_that_waits_to_leave_its_host_for_longer_than_its_time_out_is_not_sent_again(engine: str) -> None:
    scene = served(engine)
    # Those of three clients have just left when their time-outs come; as they waited, each had one time-out or more.
    assert scene.tcp.retransmissions <= 3
    scene.network.run(until=30)
    assert all(talker.heard[talker.connections[0]] == [0] for name, talker in scene.talkers.items() if name != "r1")


def test_a_segment_that_left_its_host_and_was_lost_is_sent_again_although_others_wait() -> None:
    scene = served("fast", down={"loss": "10%"})
    scene.network.run(until=60)
    assert scene.tcp.retransmissions > 3
    assert all(talker.heard[talker.connections[0]] == [0] for name, talker in scene.talkers.items() if name != "r1")


def test_both_engines_have_equal_fingerprints_where_segments_wait_at_their_host() -> None:
    found = {served(engine, down={"loss": "10%"}).network.fingerprint() for engine in ENGINES}
    assert len(found) == 1


SHAPED = """
qdisc add dev lo root handle 1: htb default 2
class add dev lo parent 1: classid 1:1 htb rate 100kbit burst 1600
class add dev lo parent 1: classid 1:2 htb rate 1gbit
filter add dev lo parent 1: protocol ip u32 match ip sport {port} 0xffff flowid 1:1
"""
"""Input of tc(8): what a server sends on the loopback device leaves at 100 kbit/s, and what its clients send at once."""


def served_by_the_kernel() -> dict[str, int]:
    """Do what `served` does with real sockets; returns what the kernel counted."""
    with socket.create_server(("127.0.0.1", 0), backlog=20) as server:
        commands = SHAPED.format(port=server.getsockname()[1])
        subprocess.run(["tc", "-batch", "-"], input=commands, text=True, check=True)
        pairs = []
        for _ in range(20):
            client = socket.create_connection(server.getsockname())
            pairs.append((client, server.accept()[0]))
            time.sleep(0.1)
        for _, connection in pairs:
            connection.send(bytes(1000))
        for client, _ in pairs:
            client.recv(1000, socket.MSG_WAITALL)
        counts = kernel_counts()
        for end in chain(*pairs):
            end.close()
    return {name: counts[name] for name in ("RetransSegs", "TCPTimeouts", "TCPSpuriousRtxHostQueues")}


def kernel_counts() -> dict[str, int]:
    """Return the counters of TCP in this network namespace."""
    counts: dict[str, int] = {}
    for file in ("snmp", "netstat"):
        lines = Path("/proc/net", file).read_text().splitlines()
        for names, numbers in zip(lines[::2], lines[1::2], strict=True):
            counts |= dict(zip(names.split()[1:], map(int, numbers.split()[1:]), strict=True))
    return counts


@pytest.mark.emu
def test_the_kernel_sends_no_second_copy_either() -> None:
    counts = run_isolated(served_by_the_kernel)
    assert counts["TCPTimeouts"] > 0
    assert counts["TCPSpuriousRtxHostQueues"] > 10
    assert counts["RetransSegs"] <= 3
