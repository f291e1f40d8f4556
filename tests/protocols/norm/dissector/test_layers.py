"""The scapy layers decode recorded traffic like the codec and an independent decoder, and encode it to the same bytes."""

from typing import Any

import pytest
from hypothesis import given

from experiments.inspection.dissector_check import differences, dissected
from protocols.norm.dissector.layers import (
    ExtFti,
    ExtFtiGeneral,
    ExtRate,
    Norm,
    NormAck,
    NormCc,
    NormCcNode,
    NormData,
    NormEot,
    NormFlush,
    NormNack,
    NormSquelch,
    NormStream,
    RepairItem,
    RepairRequest,
)
from protocols.norm.messages import Data, Fti, Nack, NormMessage, Report
from protocols.norm.wire.codec import NormCodec
from tests.support.captures import CAPTURES, expected, udp_payloads
from tests.support.norm_strategies import messages

SELECTED = [(capture, entry) for capture in CAPTURES for entry in expected()[capture]["selected"]]


def element_bits(capture: str) -> int:
    """Return m of the sessions that use fec_id 2."""
    return 8 if capture == "fec2_m8_loss" else 16


def cleared(layer: Any) -> Any:
    """Remove the cached bytes and computed fields of a layer, so that scapy builds it from its fields."""
    layer.hdr_len = None
    for request in layer.fields.get("repair_requests", ()):
        request.length = None
    for extension in layer.fields.get("extensions", ()):
        if type(extension).__name__ in ("ExtVariable", "ExtAppAck"):
            extension.hel = None
    layer.clear_cache()
    return layer


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_recorded_packet_has_the_fields_of_the_codec(capture: str) -> None:
    codec = NormCodec()
    for data in udp_payloads(capture):
        assert differences(codec.decode(data), dissected(data, element_bits(capture))) == []


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_recorded_packet_is_rebuilt_byte_by_byte(capture: str) -> None:
    for data in udp_payloads(capture):
        assert bytes(cleared(Norm(data, element_bits=element_bits(capture)))) == data


PLAIN_KEYS = ("version", "hdr_len", "sequence", "source_id", "instance_id", "grtt", "backoff", "gsize", "fec_id", "reserved")
SAME_KEYS = (
    *PLAIN_KEYS,
    *("object_transport_id", "sender_id", "cc_sequence", "send_time_sec", "send_time_usec", "adv_flags", "ack_type", "ack_id"),
    *("grtt_response_sec", "grtt_response_usec", "acking_nodes", "invalid_objects"),
)
PARTS = {"fec_payload_id", "extensions", "repair_requests", "cc_nodes", "ack_payload", "stream_header"}
FRAME = {"frame", "time", "sport", "dport", "length", "header_hex", "flags", "payload_length", "payload_sha256"}
OTHERS = {"type", "flavor", "flags_raw", "payload_hex", "content"}


@pytest.mark.parametrize(("capture", "entry"), SELECTED, ids=[f"{capture}-{entry['frame']}" for capture, entry in SELECTED])
def test_fields_equal_those_of_an_independent_decoder(capture: str, entry: dict[str, Any]) -> None:
    data = udp_payloads(capture)[entry["frame"] - 1]
    layer = Norm(data, element_bits=element_bits(capture))
    assert set(entry) <= {*SAME_KEYS, *PARTS, *FRAME, *OTHERS}, "nothing of the expectation is forgotten"
    assert layer.get_field("type").i2repr(layer, layer.type) == entry["type"]
    if "flavor" in entry:
        assert layer.get_field("flavor").i2repr(layer, layer.flavor) == entry["flavor"]
    for key in SAME_KEYS:
        if key in entry:
            assert layer.fields[key] == entry[key], key
    if "flags_raw" in entry:
        assert int(layer.flags) == entry["flags_raw"]
    if entry.get("payload_hex") and not layer.fields.get("acking_nodes"):
        assert data[layer.hdr_len * 4 :].hex() == entry["payload_hex"]
    check_parts(layer, entry)


def check_parts(layer: Any, entry: dict[str, Any]) -> None:
    check_fields(layer, entry.get("fec_payload_id", {}))
    if "stream_header" in entry:
        check_stream(layer, entry["stream_header"])
    if "ack_payload" in entry:
        check_fields(layer.payload, entry["ack_payload"])
    found = layer.fields.get("extensions", [])
    assert len(found) == len(entry.get("extensions", []))
    for extension, wanted in zip(found, entry.get("extensions", ()), strict=True):
        check_extension(extension, wanted)
    for name, key in (("repair_requests", "repair_requests"), ("cc_nodes", "cc_nodes")):
        assert len(layer.fields.get(name, ())) == len(entry.get(key, ()))
    for request, wanted in zip(layer.fields.get("repair_requests", ()), entry.get("repair_requests", ()), strict=True):
        assert request.get_field("form").i2repr(request, request.form) == wanted["form"]
        assert str(request.flags).split("+") == wanted["flags"]
        assert request.length == wanted["length"]
        for item, names in zip(request.items, wanted["items"], strict=True):
            check_fields(item, names)
    for node, wanted in zip(layer.fields.get("cc_nodes", ()), entry.get("cc_nodes", ()), strict=True):
        values = node.node, int(node.cc_flags), node.cc_rtt, node.cc_rate
        assert values == (wanted["node"], wanted["flags_raw"], wanted["rtt"], wanted["rate"])


def check_fields(layer: Any, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        assert layer.fields[name] == value, name


def check_stream(layer: Any, wanted: dict[str, Any]) -> None:
    # That decoder also reads a header in parity, which is a combination of headers; we show it in source segments only.
    if layer.encoding_symbol_id >= layer.extensions[0].max_block_len:
        assert NormStream not in layer
    segment = NormStream(bytes(layer.payload))
    for name in ("payload_len", "payload_msg_start", "payload_offset"):
        assert segment.fields[name] == wanted[name], name


SPELLED = {"cc_loss_ext": "loss_low", "cc_flags_raw": "cc_flags", "g": "group"}


def check_extension(extension: Any, wanted: dict[str, Any]) -> None:
    assert bytes(extension).hex() == wanted["hex"]
    for name, value in wanted.items():
        if name not in ("het", "length", "hex", "name", "cc_flags", "content", "reserved"):
            assert int(extension.fields[SPELLED.get(name, name)]) == value, name
    if "content" in wanted:
        assert extension.content.hex() == wanted["content"]


# -- beyond recorded traffic -------------------------------------------------------------------------------------------


@given(messages())
def test_any_message_of_the_codec_has_its_fields_and_is_rebuilt(message: NormMessage) -> None:
    codec = NormCodec()
    data = codec.encode(message)
    layer = dissected(data)
    assert differences(codec.decode(data), layer) == []
    if not isinstance(message, Report):
        layer = cleared(layer)
    assert bytes(layer) == data


BUILT: list[Any] = [
    NormData(sequence=7, source_id=1, fec_id=129, source_block_number=3, source_block_length=20, encoding_symbol_id=4) / b"abc",
    NormData(source_id=1, extensions=[ExtFti(object_size=9000, segment_size=500, max_block_len=20)]) / b"abc",
    NormCc(source_id=1, extensions=[ExtRate(send_rate=0x4005)], cc_nodes=[NormCcNode(node=2, cc_rate=9)]),
    NormFlush(source_id=1, encoding_symbol_id=5, acking_nodes=[2, 3]),
    NormSquelch(source_id=1, object_transport_id=9, invalid_objects=[10, 12]),
    NormEot(source_id=1),
    NormNack(source_id=2, sender_id=1, repair_requests=[RepairRequest(items=[RepairItem(), RepairItem(encoding_symbol_id=2)])]),
    NormAck(source_id=2, sender_id=1),
]


@pytest.mark.parametrize("layer", BUILT, ids=lambda layer: type(layer).__name__)
def test_layers_built_from_fields_are_decoded_by_the_codec(layer: Any) -> None:
    data = bytes(layer)
    message = NormCodec().decode(data)
    assert differences(message, dissected(data)) == []
    assert NormCodec().encode(message) == data


def test_the_payload_id_of_fec_id_2_is_split_by_the_fti_or_by_given_element_bits() -> None:
    fti = ExtFtiGeneral(object_size=9000, segment_size=500, max_block_len=20, num_parity=4, m=8)
    built = NormData(source_id=1, fec_id=2, source_block_number=70_000, encoding_symbol_id=5, extensions=[fti]) / b"x"
    layer = Norm(bytes(built))
    assert (layer.source_block_number, layer.encoding_symbol_id) == (70_000, 5)
    flush = bytes.fromhex("1305003d00000001000178420102000000000213")
    assert Norm(flush).encoding_symbol_id == 0x213
    assert Norm(flush, element_bits=8).encoding_symbol_id == 0x13
    assert bytes(cleared(Norm(flush, element_bits=8))) == flush


def test_codes_are_shown_with_their_meaning() -> None:
    shown = str(NormCc(source_id=1, grtt=127, extensions=[ExtRate(send_rate=0x4005)]).show(dump=True))
    assert "127 (0.05295 s)" in shown
    assert "0x4005 (2.5e+05 bytes/s)" in shown


# -- the comparison detects differences --------------------------------------------------------------------------------


def first(capture: str, kind: type[Any]) -> tuple[Any, Any]:
    """Return (message, layer) of the first packet of a kind."""
    codec = NormCodec()
    for data in udp_payloads(capture):
        message = codec.decode(data)
        if isinstance(message, kind):
            return message, dissected(data)
    raise AssertionError(f"{capture} has no {kind.__name__}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("sequence", 4711), ("symbol", 63), ("block", 5), ("payload", b"else"), ("fti", Fti(5, 1, 1, 1, 0)), ("flags", 0x80)],
)
def test_a_difference_is_found_by_field_name(name: str, value: object) -> None:
    message, layer = first("data_noloss", Data)
    assert differences(message, layer) == []
    setattr(message, name, value)
    assert [each.partition(":")[0] for each in differences(message, layer)] == [name]


def test_a_difference_in_a_request_is_found() -> None:
    nack, layer = first("file_loss5", Nack)
    layer.repair_requests[0].items[0].encoding_symbol_id ^= 1
    assert [each.partition(":")[0] for each in differences(nack, layer)] == ["requests"]
