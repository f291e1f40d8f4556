"""What NRL NORM was recorded sending, to our receiver; what its receivers asked for, to our sender."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from protocols.fec import MAX_SYMBOLS
from protocols.machine import Message
from protocols.norm.config import NormConfig
from protocols.norm.demand import Demand, demand_of
from protocols.norm.messages import FLAG_STREAM, Data, Flush, Fti, Info, Nack, NormMessage, Squelch
from protocols.norm.wire import NormCodec
from tests.protocols.norm.scenes import Listener, Talker
from tests.support.captures import CAPTURES, VECTORS, expected, udp_payloads

NODE = 1
"""The sender of every capture."""


@cache
def recorded(capture: str) -> list[tuple[float, Any]]:
    """(seconds since the first frame, message) of the capture."""
    codec = NormCodec()
    stamps = [meta.sec + meta.usec * 1e-6 for _, meta in RawPcapReader(str(VECTORS / f"{capture}.pcap"))]
    messages = [codec.decode(data) for data in udp_payloads(capture)]
    return [(stamp - stamps[0], message) for stamp, message in zip(stamps, messages, strict=True)]


def spoken(capture: str) -> list[tuple[float, Any]]:
    """What the sender said."""
    return [(when, message) for when, message in recorded(capture) if getattr(message, "origin", None) is not None]


def ftis(capture: str) -> dict[int, Fti]:
    """How the objects are coded, where it is said."""
    content = [message for _, message in spoken(capture) if isinstance(message, Data | Info)]
    return {message.object_id: message.fti for message in content if message.fti is not None}


def is_object_session(capture: str) -> bool:
    """Does the capture carry objects, not streams, of codes that we can decode?"""
    content = [message for _, message in spoken(capture) if isinstance(message, Data | Info)]
    return bool(content) and not any(message.flags & FLAG_STREAM for message in content)


SESSIONS = [capture for capture in CAPTURES if is_object_session(capture)]


def hear(capture: str, dropped: frozenset[int] = frozenset()) -> Listener:
    """A receiver that heard the capture, but for the messages with these places."""
    listener = Listener()
    for place, (when, message) in enumerate(spoken(capture)):
        listener.until(when)
        if place not in dropped:
            listener.hear(message, now=when)
    return listener


def check(capture: str, listener: Listener) -> None:
    """Everything the sender sent has the recorded content."""
    sent = {message.object_id for _, message in spoken(capture) if isinstance(message, Data | Info)}
    assert sorted(listener.received()) == sorted(sent)
    assert not listener.aborted()
    known = {entry["object_transport_id"]: entry for entry in expected()[capture]["objects"]}
    for object_id in sent:
        assert sha256(listener.content(object_id)).hexdigest() == known[object_id]["sha256"]


def test_most_captures_are_sessions_of_objects() -> None:
    assert len(SESSIONS) >= 20


@pytest.mark.parametrize("capture", SESSIONS)
def test_all_that_was_recorded_is_received(capture: str) -> None:
    listener = hear(capture)
    check(capture, listener)
    assert listener.machine.counts()["ignored"] == 0
    assert not listener.nacks


def droppable(capture: str) -> frozenset[int]:
    """Places of first transmissions whose loss the rest of the capture makes good: as many of a block as it has repairs."""
    first: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    parity: dict[tuple[int, int], set[int]] = defaultdict(set)
    again: set[tuple[int, int, int]] = set()
    coding = ftis(capture)
    for place, (_, message) in enumerate(spoken(capture)):
        if not isinstance(message, Data):
            continue
        key = message.object_id, message.block
        if message.symbol >= coding[message.object_id].partition.length(message.block):
            parity[key].add(message.symbol)
        elif message.symbol in first[key]:
            again.add((*key, message.symbol))
        else:
            first[key][message.symbol] = place
    dropped = []
    for key, places in first.items():
        fti = coding[key[0]]
        decodable = len(parity[key]) if fti.m == 8 and fti.block + fti.parity <= MAX_SYMBOLS else 0
        named = [place for symbol, place in places.items() if (*key, symbol) in again]
        # The first symbol of an object is kept: it may be the only one to join at.
        others = [place for symbol, place in places.items() if (*key, symbol) not in again and (key[1] or symbol)]
        dropped += named[1:] + others[:: max(1, len(others) // max(decodable, 1))][:decodable]
    return frozenset(dropped)


REPAIRED = [capture for capture in SESSIONS if droppable(capture)]


def test_many_captures_carry_repairs() -> None:
    assert len(REPAIRED) >= 10


@pytest.mark.parametrize("capture", REPAIRED)
def test_what_was_lost_is_made_good_by_the_recorded_repairs(capture: str) -> None:
    listener = hear(capture, droppable(capture))
    check(capture, listener)
    lost = listener.machine.counts()["data_lost"]
    dropped = len(droppable(capture))
    # Sequence numbers that NRL's sender left out are counted as lost too.
    assert lost >= dropped
