"""`mcastlab sub` says so, by its exit code and in its summary, when it ends while messages that it requested are missing."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import IPv4Address
from threading import Thread

import pytest

from tests.experiments.running.test_pub_sub import ENVIRONMENT, command, publisher, subscriber
from tests.tidy.tree import ROOT

LOOPBACK = IPv4Address("127.0.0.1").packed
THERE = "239.7.7.43"
"""The group of the publisher and the subscriber; what is published to `HERE` is copied to it."""
HERE = "239.7.7.44"
FURTHER = 100
"""By so much the port of that group is higher."""
LOST = b"second"


def member_of(group: str, port: int) -> socket.socket:
    """Return a socket that hears a group on the loopback device."""
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    heard.bind((group, port))
    heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, IPv4Address(group).packed + LOOPBACK)
    heard.settimeout(30)
    return heard


@contextmanager
def copied(port: int) -> Iterator[None]:
    """Copy datagrams from one group to the other, but those with `LOST`; nothing goes the other way, so nothing is repaired."""
    with closing(member_of(HERE, port + FURTHER)) as heard:
        heard.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, LOOPBACK)

        def copy() -> None:
            while data := heard.recv(65536):
                if LOST not in data:
                    heard.sendto(data, (THERE, port))

        copying = Thread(target=copy, daemon=True)
        copying.start()
        yield
        heard.sendto(b"", (HERE, port + FURTHER))
        copying.join(10)


PROTOCOLS = [("fjm2", "t", "", 6301), ("distributor", "/t", "/t ", 6302)]


@pytest.mark.parametrize(("protocol", "topic", "prefix", "port"), PROTOCOLS)
def test_a_message_that_was_requested_and_did_not_come_is_told(protocol: str, topic: str, prefix: str, port: int) -> None:
    with copied(port):
        waiting = subscriber(port, topic, "--protocol", protocol, "--timeout", "5")
        lines = "".join(f"{prefix}{word}\n" for word in ("first", "second", "third"))
        named = [topic] if protocol == "fjm2" else []
        sent = publisher(port, *named, "--protocol", protocol, "--group", f"{HERE}:{port + FURTHER}", lines=lines)
        out, told = waiting.communicate(timeout=40)
    assert sent.returncode == 0, sent.stderr
    assert out.startswith(f"{topic} first\n")
    assert (waiting.returncode, ", 1 missing" in told or ", 1 gap " in told) == (1, True), told


@pytest.mark.parametrize(("protocol", "topic", "prefix", "port"), [("fjm2", "t", "", 6304), ("distributor", "/t", "/t ", 6305)])
def test_a_message_whose_publisher_was_killed_in_its_middle_is_told(protocol: str, topic: str, prefix: str, port: int) -> None:
    waiting = subscriber(port, topic, "--protocol", protocol, "--timeout", "6")
    named = [topic] if protocol == "fjm2" else []
    sending = [*command("pub", port, *named, "--protocol", protocol, "--bandwidth", "4Mbit")]
    with (
        closing(member_of(THERE, port)) as heard,
        subprocess.Popen(sending, stdin=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT) as publishing,
    ):
        assert publishing.stdin is not None
        publishing.stdin.write(f"{prefix}first\n{prefix}{'x' * 1_000_000}\n".encode())
        publishing.stdin.flush()
        octets = 0
        while octets < 300_000:
            octets += len(heard.recv(65536))
        publishing.kill()
    out, told = waiting.communicate(timeout=40)
    assert out == f"{topic} first\n"
    assert (waiting.returncode, ", 1 incomplete, whose publisher is silent" in told) == (1, True), told


def test_messages_that_came_not_in_time_are_told() -> None:
    waiting = subscriber(6303, "t", "--protocol", "fjm2", "--timeout", "3", "--count", "5")
    publisher(6303, "t", "--protocol", "fjm2", lines="one\ntwo\n")
    _, told = waiting.communicate(timeout=40)
    assert waiting.returncode == 1
    assert "received: 2 of 5 messages in" in told
