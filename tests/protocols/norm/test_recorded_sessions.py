"""Recorded NRL NORM senders with our receiver, and recorded NRL NORM receivers' requests with our sender."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from protocols.norm.messages import FLAG_STREAM, Data, Flush, Fti, Info, Nack, Squelch
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import ReceiverHarness, SenderHarness
from tests.support.captures import CAPTURES, VECTORS, expected, udp_payloads

LOST_AT_SENDER = "nack_suppression"
"""Capture whose sender dropped packets itself, so that the losses of every receiver are known exactly."""


@cache
def recorded(capture: str) -> list[tuple[float, Any]]:
    """Return (seconds since the first frame, message) of the capture."""
    codec = NormCodec()
    stamps = [meta.sec + meta.usec * 1e-6 for _, meta in RawPcapReader(str(VECTORS / f"{capture}.pcap"))]
    messages = [codec.decode(data) for data in udp_payloads(capture)]
    return [(stamp - stamps[0], message) for stamp, message in zip(stamps, messages, strict=True)]


def sender_messages(capture: str) -> list[tuple[float, Any]]:
    """Return the messages of the sender."""
    return [(when, message) for when, message in recorded(capture) if getattr(message, "origin", None) is not None]


def ftis(capture: str) -> dict[int, Fti]:
    """Return the FTI of each object, where the capture has it."""
    content = [message for _, message in sender_messages(capture) if isinstance(message, Data | Info)]
    return {message.object_id: message.fti for message in content if message.fti is not None}


def is_object_session(capture: str) -> bool:
    """Return whether the capture carries objects, not streams, with codes that we can decode."""
    content = [message for _, message in sender_messages(capture) if isinstance(message, Data | Info)]
    return bool(content) and not any(message.flags & FLAG_STREAM for message in content)


SESSIONS = [capture for capture in CAPTURES if is_object_session(capture)]


def received_by(capture: str, dropped: frozenset[int] = frozenset()) -> ReceiverHarness:
    """Return a receiver that received the capture except the messages with these indices."""
    receiver = ReceiverHarness()
    for place, (when, message) in enumerate(sender_messages(capture)):
        receiver.run_until(when)
        if place not in dropped:
            receiver.receive(message, now=when)
    return receiver


def check(capture: str, receiver: ReceiverHarness) -> None:
    """Check that every object of the sender has the recorded content."""
    sent = {message.object_id for _, message in sender_messages(capture) if isinstance(message, Data | Info)}
    assert sorted(receiver.received()) == sorted(sent)
    assert not receiver.aborted()
    known = {entry["object_transport_id"]: entry for entry in expected()[capture]["objects"]}
    for object_id in sent:
        assert sha256(receiver.content(object_id)).hexdigest() == known[object_id]["sha256"]


def test_most_captures_are_sessions_of_objects() -> None:
    assert len(SESSIONS) >= 20


@pytest.mark.parametrize("capture", SESSIONS)
def test_every_recorded_session_is_received(capture: str) -> None:
    receiver = received_by(capture)
    check(capture, receiver)
    assert receiver.machine.counts()["ignored"] == 0
    assert bool(receiver.nacks) == (capture == LOST_AT_SENDER)


def droppable(capture: str) -> frozenset[int]:
    """Return indices of first transmissions whose loss the capture repairs: at most as many of a block as it has repairs."""
    first: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    parity: dict[tuple[int, int], set[int]] = defaultdict(set)
    again: set[tuple[int, int, int]] = set()
    coding = ftis(capture)
    for place, (_, message) in enumerate(sender_messages(capture)):
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
        decodable = len(parity[key]) if fti.usable else 0
        named = [place for symbol, place in places.items() if (*key, symbol) in again]
        # The first symbol of an object is kept, since it may be the only point to synchronise at.
        others = [place for symbol, place in places.items() if (*key, symbol) not in again and (key[1] or symbol)]
        dropped += named[1:] + others[:: max(1, len(others) // max(decodable, 1))][:decodable]
    return frozenset(dropped)


REPAIRED = [capture for capture in SESSIONS if capture != LOST_AT_SENDER and droppable(capture)]


def test_many_captures_carry_repairs() -> None:
    assert len(REPAIRED) >= 10


@pytest.mark.parametrize("capture", REPAIRED)
def test_losses_are_repaired_by_the_recorded_repairs(capture: str) -> None:
    receiver = received_by(capture, droppable(capture))
    check(capture, receiver)
    assert receiver.machine.counts()["data_lost"] == len(droppable(capture))


# -- our receiver's requests compared with those of NRL NORM -----------------------------------------------------------


def first_nack(capture: str) -> tuple[float, Nack]:
    """Return the first NACK of the capture with its time."""
    return next((when, message) for when, message in recorded(capture) if isinstance(message, Nack))


def implied(capture: str) -> set[tuple[int, int, int]]:
    """Return losses that explain the first NACK: source symbols by name; for e parity symbols any e of the block,
    and as many more as proactive parity symbols arrived.
    """
    moment, nack = first_nack(capture)
    coding = ftis(capture)
    requested = requested_repairs(nack.requests, next(iter(coding.values())).fec_id)
    received = [message for when, message in sender_messages(capture) if when < moment and isinstance(message, Data)]
    lost = set()
    for (object_id, block), mask in requested.units():
        length = coding[object_id].partition.length(block)
        unasked = {
            data.symbol for data in received if (data.object_id, data.block) == (object_id, block) and data.symbol >= length
        }
        short = (mask >> length).bit_count()
        spare = sum(not mask >> symbol & 1 for symbol in unasked)
        lost |= {(object_id, block, symbol) for symbol in range(mask.bit_length()) if mask >> symbol & 1}
        lost |= {(object_id, block, symbol) for symbol in range(short + spare if short else 0)}
    for first, last in requested.objects:
        for object_id in range(first, last + 1):
            partition = coding[object_id].partition
            lost |= {(object_id, b, s) for b in range(partition.blocks) for s in range(partition.length(b))}
    return lost


def nacks_after(capture: str, lost: set[tuple[int, int, int]]) -> tuple[Nack, Nack]:
    """Return NRL's first NACK, and ours at the same time when the first transmissions `lost` are missing."""
    moment, theirs = first_nack(capture)
    receiver = ReceiverHarness()
    for when, message in sender_messages(capture):
        if when >= moment:
            break
        if not isinstance(message, Data) or (message.object_id, message.block, message.symbol) not in lost:
            receiver.receive(message, now=when)
    # An earlier wake-up is excluded, so that both NACKs describe the same state.
    receiver.run_until(moment + 10.0)
    return theirs, receiver.nacks[0]


NACKED = [capture for capture in SESSIONS if any(isinstance(message, Nack) for _, message in recorded(capture))]
NOT_COMPARABLE = {
    "nack_suppression",  # Its loss is known and tested separately.
    "squelch_hole",  # Its NACK requests objects sent before the receiver joined, a policy we do not have.
    "squelch_late_join",  # The same.
}
COMPARABLE = [capture for capture in NACKED if capture not in NOT_COMPARABLE]


def test_a_known_loss_is_requested_as_by_nrl_norm() -> None:
    theirs, ours = nacks_after(LOST_AT_SENDER, set())
    assert requested_repairs(ours.requests, 5).symbols == requested_repairs(theirs.requests, 5).symbols
    assert (ours.sender_id, ours.instance_id) == (theirs.sender_id, theirs.instance_id)


def test_many_captures_have_nacks_for_comparison() -> None:
    assert len(COMPARABLE) >= 9


@pytest.mark.parametrize("capture", COMPARABLE)
def test_an_equal_loss_is_requested_as_by_nrl_norm(capture: str) -> None:
    theirs, ours = nacks_after(capture, implied(capture))
    fec_id = next(iter(ftis(capture).values())).fec_id
    wanted, found = requested_repairs(theirs.requests, fec_id), requested_repairs(ours.requests, fec_id)
    assert found.symbols == wanted.symbols
    assert (found.blocks, expand(found.objects), found.infos) == (wanted.blocks, expand(wanted.objects), wanted.infos)
    # The same ranges in the same forms; NRL starts a new request with every block.
    assert spans(ours) == spans(theirs)


def expand(runs: Iterable[tuple[int, int]]) -> list[int]:
    """Expand ranges of objects."""
    return [object_id for first, last in runs for object_id in range(first, last + 1)]


def spans(nack: Nack) -> list[tuple[int, int, int, int, int]]:
    """Return (form, level, object, block, symbol) of every item."""
    return [(r.form, r.level, item.object_id, item.block, item.symbol) for r in nack.requests for item in r.items]


# -- our sender and the requests of NRL's receivers --------------------------------------------------------------------

REQUESTS = [
    (capture, place) for capture in NACKED for place, (_, message) in enumerate(recorded(capture)) if isinstance(message, Nack)
]


def settings_of(fti: Fti) -> dict[str, Any]:
    """Return our parameters for objects with this coding."""
    return {"segment": fti.segment, "block": fti.block, "parity": fti.parity, "fec": fti.fec_id, "fec_m": fti.m}


@pytest.mark.parametrize(("capture", "place"), REQUESTS)
def test_every_repair_requested_by_nrl_norm_is_sent(capture: str, place: int) -> None:
    nack = recorded(capture)[place][1]
    coding = ftis(capture)
    some = coding[min(coding)]
    sender = SenderHarness(**settings_of(some), backoff=1, auto_parity=4 if capture == "file_autoparity" else 0)
    sender.submit(*(coding.get(object_id, some).object_size for object_id in range(max(coding) + 1)))
    sender.run_until(60.0, lambda: bool(sender.messages_of(Flush)))
    first = len(sender.messages_of(Data))
    fec = sender.config.fec
    requests = [replace(r, items=tuple(item._replace(fec_id=fec) for item in r.items)) for r in nack.requests]
    sender.nack(*requests)
    sender.run_until(sender.now + 10.0)
    check_repairs(requested_repairs(tuple(requests), fec), sender, first)


def check_repairs(requested: RequestedRepairs, sender: SenderHarness, first: int) -> None:
    """Check that all requested repairs were sent: parity by count and never sent before, other symbols by name."""
    sent = set(sender.symbols()[:first])
    again = sender.symbols(first)
    assert len(again) == len(set(again)), "nothing is sent twice for one NACK"
    partition = sender.messages_of(Data)[0].fti.partition  # type: ignore[union-attr]
    for (object_id, block), mask in requested.units():
        length = partition.length(block)
        named = {(object_id, block, symbol) for symbol in range(length) if mask >> symbol & 1}
        assert named <= set(again)
        fresh = [key for key in again if key[:2] == (object_id, block) and key[2] >= length and key not in sent]
        assert len(fresh) == (mask >> length).bit_count()
    for low, high in requested.objects:
        span = [key % 0x10000 for key in range(low, low + (high - low) % 0x10000 + 1)]
        for object_id in span:
            expected_again = {key for key in sent if key[0] == object_id}
            assert expected_again <= set(again)
        refused = any(object_id >= 0x8000 for object_id in span)
        assert [squelch.object_id for squelch in sender.messages_of(Squelch)] == [0] * refused
