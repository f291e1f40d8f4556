"""What NRL NORM was recorded sending, to our receiver; what its receivers asked for, to our sender."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from protocols.fec import MAX_SYMBOLS
from protocols.norm.messages import FLAG_STREAM, Data, Flush, Fti, Info, Nack, Squelch
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import Listener, Talker
from tests.support.captures import CAPTURES, VECTORS, expected, udp_payloads

LOST_AT_SENDER = "nack_suppression"
"""The capture whose sender dropped packets itself, so that its file shows exactly what every receiver missed."""


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
    assert bool(listener.nacks) == (capture == LOST_AT_SENDER)


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


REPAIRED = [capture for capture in SESSIONS if capture != LOST_AT_SENDER and droppable(capture)]


def test_many_captures_carry_repairs() -> None:
    assert len(REPAIRED) >= 10


@pytest.mark.parametrize("capture", REPAIRED)
def test_what_was_lost_is_made_good_by_the_recorded_repairs(capture: str) -> None:
    listener = hear(capture, droppable(capture))
    check(capture, listener)
    assert listener.machine.counts()["data_lost"] == len(droppable(capture))


# -- our receiver's requests beside those of NRL's ---------------------------------------------------------------------


def first_nack(capture: str) -> tuple[float, Nack]:
    """The first NACK of the capture."""
    return next((when, message) for when, message in recorded(capture) if isinstance(message, Nack))


def implied(capture: str) -> set[tuple[int, int, int]]:
    """A loss after which the first NACK is what is to be asked for: source symbols by name; for e parity symbols any e of the
    block, and as many more as parity came unasked.
    """
    moment, nack = first_nack(capture)
    coding = ftis(capture)
    demand = requested_repairs(nack.requests, next(iter(coding.values())).fec_id)
    heard = [message for when, message in spoken(capture) if when < moment and isinstance(message, Data)]
    lost = set()
    for (object_id, block), mask in demand.symbols.items():
        length = coding[object_id].partition.length(block)
        unasked = {
            data.symbol for data in heard if (data.object_id, data.block) == (object_id, block) and data.symbol >= length
        }
        short = (mask >> length).bit_count()
        spare = sum(not mask >> symbol & 1 for symbol in unasked)
        lost |= {(object_id, block, symbol) for symbol in range(mask.bit_length()) if mask >> symbol & 1}
        lost |= {(object_id, block, symbol) for symbol in range(short + spare if short else 0)}
    for first, last in demand.objects:
        for object_id in range(first, last + 1):
            partition = coding[object_id].partition
            lost |= {(object_id, b, s) for b in range(partition.blocks) for s in range(partition.length(b))}
    return lost


def asked_like(capture: str, lost: set[tuple[int, int, int]]) -> tuple[Nack, Nack]:
    """(NRL's first NACK, ours at the same moment when the first transmissions `lost` did not come)."""
    moment, theirs = first_nack(capture)
    listener = Listener()
    for when, message in spoken(capture):
        if when >= moment:
            break
        if not isinstance(message, Data) or (message.object_id, message.block, message.symbol) not in lost:
            listener.hear(message, now=when)
    # Woken no earlier than now, it speaks of what NRL's receiver spoke of.
    listener.until(moment + 10.0)
    return theirs, listener.nacks[0]


NACKED = [capture for capture in SESSIONS if any(isinstance(message, Nack) for _, message in recorded(capture))]
NOT_COMPARABLE = {
    "fec2_m16_loss",  # We have no arithmetic of GF(2^16) and ask by name.
    "nack_suppression",  # Its loss is known, and has a test of its own.
    "squelch_hole",  # Its NACK asks for what was before its receiver joined, a policy we do not have.
    "squelch_late_join",  # The same.
}
COMPARABLE = [capture for capture in NACKED if capture not in NOT_COMPARABLE]


def test_a_loss_that_is_known_is_asked_for_as_nrl_does() -> None:
    theirs, ours = asked_like(LOST_AT_SENDER, set())
    assert requested_repairs(ours.requests, 5).symbols == requested_repairs(theirs.requests, 5).symbols
    assert (ours.sender_id, ours.instance_id) == (theirs.sender_id, theirs.instance_id)


def test_many_captures_have_nacks_to_compare_with() -> None:
    assert len(COMPARABLE) >= 9


@pytest.mark.parametrize("capture", COMPARABLE)
def test_an_equal_loss_is_asked_for_as_nrl_does(capture: str) -> None:
    theirs, ours = asked_like(capture, implied(capture))
    fec_id = next(iter(ftis(capture).values())).fec_id
    wanted, found = requested_repairs(theirs.requests, fec_id), requested_repairs(ours.requests, fec_id)
    assert found.symbols == wanted.symbols
    assert (found.blocks, expand(found.objects), found.infos) == (wanted.blocks, expand(wanted.objects), wanted.infos)
    # The same runs in the same forms; NRL begins a new request with every block.
    assert spans(ours) == spans(theirs)


def expand(runs: Iterable[tuple[int, int]]) -> list[int]:
    """Ranges of objects one by one."""
    return [object_id for first, last in runs for object_id in range(first, last + 1)]


def spans(nack: Nack) -> list[tuple[int, int, int, int, int]]:
    """(form, level, object, block, symbol) of every item."""
    return [(r.form, r.level, item.object_id, item.block, item.symbol) for r in nack.requests for item in r.items]


# -- our sender and the requests of NRL's receivers --------------------------------------------------------------------

REQUESTS = [
    (capture, place)
    for capture in NACKED
    if capture != "fec2_m16_loss"
    for place, (_, message) in enumerate(recorded(capture))
    if isinstance(message, Nack)
]


def settings_of(fti: Fti) -> dict[str, Any]:
    """Our parameters for objects coded like this; 2 with m = 8 is the same code as 5."""
    fec = 5 if fti.fec_id == 2 else fti.fec_id
    return {"segment": fti.segment, "block": fti.block, "parity": fti.parity, "fec": fec}


@pytest.mark.parametrize(("capture", "place"), REQUESTS)
def test_what_nrl_asks_for_is_sent(capture: str, place: int) -> None:
    nack = recorded(capture)[place][1]
    coding = ftis(capture)
    some = coding[min(coding)]
    talker = Talker(**settings_of(some), backoff=1, auto_parity=4 if capture == "file_autoparity" else 0)
    talker.submit(*(coding.get(object_id, some).object_size for object_id in range(max(coding) + 1)))
    talker.until(60.0, lambda: bool(talker.of(Flush)))
    first = len(talker.of(Data))
    fec = talker.config.fec
    requests = [replace(r, items=tuple(item._replace(fec_id=fec) for item in r.items)) for r in nack.requests]
    talker.nack(*requests)
    talker.until(talker.now + 10.0)
    check_repairs(requested_repairs(tuple(requests), fec), talker, first)


def check_repairs(demand: RequestedRepairs, talker: Talker, first: int) -> None:
    """Everything asked for was sent again: parity by count and never sent before, the rest by name."""
    sent = set(talker.symbols()[:first])
    again = talker.symbols(first)
    assert len(again) == len(set(again)), "nothing is sent twice for one NACK"
    partition = talker.of(Data)[0].fti.partition  # type: ignore[union-attr]
    for (object_id, block), mask in demand.symbols.items():
        length = partition.length(block)
        named = {(object_id, block, symbol) for symbol in range(length) if mask >> symbol & 1}
        assert named <= set(again)
        fresh = [key for key in again if key[:2] == (object_id, block) and key[2] >= length and key not in sent]
        assert len(fresh) == (mask >> length).bit_count()
    for low, high in demand.objects:
        span = [key % 0x10000 for key in range(low, low + (high - low) % 0x10000 + 1)]
        for object_id in span:
            expected_again = {key for key in sent if key[0] == object_id}
            assert expected_again <= set(again)
        refused = any(object_id >= 0x8000 for object_id in span)
        assert [squelch.object_id for squelch in talker.of(Squelch)] == [0] * refused
