"""Recorded NRL NORM messages decode to the fields of an independent decoder, and encode to the same bytes."""

from collections import Counter
from hashlib import sha256
from typing import Any

import pytest

from protocols.machine import Message
from protocols.norm.identity import info_identity, symbol_identity
from protocols.norm.messages import Ack, CcFeedback, CcNode, Data, Extension, Flush, Fti, Info, Origin
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.codec import NormCodec
from protocols.norm.wire.sizes import size_of
from tests.support.captures import CAPTURES, expected, udp_payloads

COUNTED_AS = {"data": "DATA", "info": "INFO", "nack": "NACK", "ack": "ACK"}
FORMS = {"ITEMS": FORM_ITEMS, "RANGES": FORM_RANGES}
LEVELS = {"SEGMENT": LEVEL_SEGMENT, "OBJECT": LEVEL_OBJECT}
# Keys of the expected values, and the attributes of our messages.
FIELDS = {
    "sequence": "sequence",
    "flags_raw": "flags",
    "adv_flags": "flags",
    "fec_id": "fec_id",
    "object_transport_id": "object_id",
    "sender_id": "sender_id",
    "cc_sequence": "cc_sequence",
    "send_time_sec": "send_sec",
    "send_time_usec": "send_usec",
    "grtt_response_sec": "response_sec",
    "grtt_response_usec": "response_usec",
    "ack_type": "ack_type",
    "ack_id": "ack_id",
}
# Fields of the frame, or checked separately below.
OTHER_KEYS = {
    *("frame", "time", "sport", "dport", "version", "type", "flavor", "hdr_len", "length", "header_hex", "reserved", "flags"),
    *("source_id", "instance_id", "grtt", "backoff", "gsize", "fec_payload_id", "extensions", "repair_requests"),
    *("acking_nodes", "invalid_objects", "cc_nodes", "content", "ack_payload", "stream_header"),
    *("payload_hex", "payload_length", "payload_sha256"),
}
SELECTED = [(capture, entry) for capture in CAPTURES for entry in expected()[capture]["selected"]]


def decoded(capture: str) -> list[Message]:
    codec = NormCodec()
    return [codec.decode(data) for data in udp_payloads(capture)]


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_message_decodes_and_encodes_back_to_the_same_bytes(capture: str) -> None:
    codec = NormCodec()
    for data in udp_payloads(capture):
        message = codec.decode(data)
        assert codec.encode(message) == data
        assert size_of(message) == len(data)


@pytest.mark.parametrize("capture", CAPTURES)
def test_message_types_occur_as_often_as_expected(capture: str) -> None:
    counts = Counter(COUNTED_AS.get(message.kind, "CMD/" + message.kind.upper()) for message in decoded(capture))
    assert counts == expected()[capture]["counts"]
    assert counts.total() == expected()[capture]["messages"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_descriptions_of_content_match_its_identity_and_share_objects(capture: str) -> None:
    origins: dict[Origin, Origin] = {}
    ftis: dict[Fti | None, Fti | None] = {}
    for message in decoded(capture):
        if isinstance(message, Data):
            names = message.origin.source_id, message.object_id, message.block, message.symbol
            assert message.identity == symbol_identity(*names, message.fti)
        elif isinstance(message, Info):
            assert message.identity == info_identity(message.origin.source_id, message.object_id)
        else:
            assert message.identity is None
        if isinstance(message, Data | Info):
            assert origins.setdefault(message.origin, message.origin) is message.origin
            assert ftis.setdefault(message.fti, message.fti) is message.fti


@pytest.fixture(scope="module")
def messages() -> dict[str, list[Message]]:
    return {capture: decoded(capture) for capture in CAPTURES}


@pytest.mark.parametrize(("capture", "entry"), SELECTED, ids=[f"{capture}-{entry['frame']}" for capture, entry in SELECTED])
def test_fields_equal_those_of_an_independent_decoder(
    capture: str, entry: dict[str, Any], messages: dict[str, list[Message]]
) -> None:
    message: Any = messages[capture][entry["frame"] - 1]
    assert set(entry) <= set(FIELDS) | OTHER_KEYS, "nothing of the expectation is forgotten"
    for key, name in FIELDS.items():
        if key in entry:
            assert getattr(message, name) == entry[key], key
    check_node(message, entry)
    check_symbol(message, entry)
    check_lists(message, entry)
    check_extensions(message, entry.get("extensions", []))
    check_payload(message, entry)


def check_node(message: Any, entry: dict[str, Any]) -> None:
    if "grtt" not in entry:
        assert message.source_id == entry["source_id"]
        assert message.instance_id == entry["instance_id"]
        return
    origin = message.origin
    assert (origin.source_id, origin.instance_id) == (entry["source_id"], entry["instance_id"])
    assert (origin.grtt, origin.backoff, origin.gsize) == (entry["grtt"], entry["backoff"], entry["gsize"])


def check_symbol(message: Any, entry: dict[str, Any]) -> None:
    if "fec_payload_id" in entry:
        symbol = entry["fec_payload_id"]
        assert message.block == symbol["source_block_number"]
        assert message.symbol == symbol["encoding_symbol_id"]
        if "source_block_length" in symbol:
            assert message.block_length == symbol["source_block_length"]


def item_of(item: dict[str, int]) -> Item:
    assert item["reserved"] == 0
    names = item["fec_id"], item["object_transport_id"], item["source_block_number"], item["encoding_symbol_id"]
    return Item(*names, item.get("source_block_length", 0))


def check_lists(message: Any, entry: dict[str, Any]) -> None:
    if "repair_requests" in entry:
        assert message.requests == tuple(
            Request(FORMS[r["form"]], sum(LEVELS[flag] for flag in r["flags"]), tuple(map(item_of, r["items"])))
            for r in entry["repair_requests"]
        )
    if "acking_nodes" in entry:
        assert list(message.acking) == entry["acking_nodes"]
    if "invalid_objects" in entry:
        assert list(message.invalid) == entry["invalid_objects"]
    if "cc_nodes" in entry:
        nodes = entry["cc_nodes"]
        assert message.nodes == tuple(CcNode(n["node"], n["flags_raw"], n["rtt"], n["rate"]) for n in nodes)
        assert message.reserved == entry["reserved"]


def check_extensions(message: Any, extensions: list[dict[str, Any]]) -> None:
    fti = cc = rate = None
    others = []
    for e in extensions:
        if e["name"] == "EXT_FTI":
            sizes = e["object_size"], e["segment_size"], e["max_block_len"], e["num_parity"]
            fti = Fti(message.fec_id, *sizes, e.get("m", 8))
        elif e["name"] == "EXT_CC":
            loss = e["cc_loss"], e["cc_rate"], e["cc_loss_ext"]
            cc = CcFeedback(e["cc_sequence"], e["cc_flags_raw"], e["cc_rtt"], *loss)
        elif e["name"] == "EXT_RATE":
            rate = e["send_rate"]
        else:
            others.append(Extension(e["het"], bytes.fromhex(e["content"])))
    # `rate` is that of EXT_RATE in Probe only.
    assert getattr(message, "fti", None) == fti
    assert getattr(message, "cc", None) == cc
    assert getattr(message, "rate", None) == rate
    assert getattr(message, "extensions", ()) == tuple(others)


def check_payload(message: Any, entry: dict[str, Any]) -> None:
    if "payload_length" in entry:
        assert len(message.payload) == entry["payload_length"]
    if isinstance(message, Data | Info | Ack) and message.payload:
        assert sha256(message.payload).hexdigest() == entry["payload_sha256"]
    if "content" in entry:
        assert message.content == bytes.fromhex(entry["content"])


def test_a_flush_of_an_empty_object_names_the_largest_symbol_id() -> None:
    flushes = [message for message in decoded("info_only_object") if isinstance(message, Flush)]
    assert {(flush.block, flush.symbol) for flush in flushes} == {(0xFFFFFF, 0xFF)}
