"""Recorded traffic of the Java program, given to a subscriber: it delivers exactly what a correct receiver must."""

from ipaddress import IPv4Address
from typing import Any
from zlib import crc32

import pytest

from experiments.contract.recorder import Recorder
from protocols.distributor import DistributorConfig
from protocols.distributor.events import PublisherHeard, SegmentsLost, UpdatesReceived
from protocols.distributor.identity import Identity
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.distributor.wire import DistributorCodec
from protocols.machine import Group
from protocols.messaging import Subscription
from tests.support.distributor import CAPTURES, GROUP, payloads, vectors

IDENTITY = Identity(0x0A5800FE, 61299, 1, "ours", "host254")


def replayed(name: str, pattern: str = "/...") -> Recorder:
    """Give a capture to a subscriber at the times at which it was recorded."""
    ports, codec = Recorder(), DistributorCodec()
    ports.epoch = 1.7e9
    machine = DistributorSubscriber(ports, DistributorConfig(), IDENTITY, Group(GROUP))
    machine.start(0.0)
    machine.subscribe(Subscription(0, pattern), 0.0)
    for at, data in payloads(name):
        while machine.deadline <= at:
            machine.wake(machine.deadline)
        machine.receive(codec.decode(data), "other", Group(GROUP), at)
    return ports


def updates_of(ports: Recorder) -> dict[str, list[dict[str, Any]]]:
    """Return the updates delivered, in the words of the vectors."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in ports.events:
        if isinstance(event, UpdatesReceived):
            sender = f"{IPv4Address(event.source.host)}/{event.source.sender_id}"
            for content in event.contents:
                entry = {"subject": event.subject, "len": len(content), "crc32": crc32(bytes(content))}
                found.setdefault(sender, []).append(entry)
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_a_recorded_session_is_delivered_exactly_as_a_correct_receiver_must(name: str) -> None:
    wanted = {
        sender: [{key: update[key] for key in ("subject", "len", "crc32")} for update in updates]
        for sender, updates in vectors(name)["expected_updates_by_sender"].items()
    }
    ports = replayed(name)
    assert updates_of(ports) == wanted
    assert not [event for event in ports.events if isinstance(event, SegmentsLost)]
    assert ports.kinds()["request"] == 0, "the captures hold every segment, so nothing is missing"


def test_the_updates_of_three_segments_that_the_java_receiver_corrupted_are_among_them() -> None:
    assert max(update["segments"] for update in vectors("large")["expected_updates_by_sender"]["10.88.0.1/61234"]) >= 3
    corrupted = [update for update in vectors("large")["java"]["sub1"]["deliveries"] if update.get("java_corrupt")]
    assert corrupted


def test_the_name_of_the_application_is_reported_with_its_publisher() -> None:
    ports = replayed("startup")
    heard = [event for event in ports.events if isinstance(event, PublisherHeard)]
    assert [event.application for event in heard] == ["", "pub-alpha"]


@pytest.mark.parametrize(("pattern", "count"), [("/quote/*/ABB", 2), ("/quote/...", 4), ("/*", 2), ("/news", 2), ("/x", 0)])
def test_wildcards_select_among_the_recorded_subjects(pattern: str, count: int) -> None:
    found = updates_of(replayed("subs", pattern))
    assert sum(map(len, found.values())) == count
