"""Every message survives encoding and decoding, and values that do not fit are refused when encoding."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError
from protocols.norm.messages import Application, Data, Extension, Flush, Fti, Info, Nack, NormMessage, Origin
from protocols.norm.requests import (
    FORM_ITEMS,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.codec import NormCodec
from protocols.norm.wire.sizes import size_of
from tests.support.norm_strategies import data, messages

ORIGIN = Origin(0x01020304, 7, 120, 4, 2)
NO_CODE = Fti(0, 3000, 1000, 64, 0)
GENERAL = Fti(2, 100_000, 500, 20, 6, m=8)


def data_of(fec_id: int, fti: Fti | None, block: int = 1, symbol: int = 2) -> Data:
    return Data(ORIGIN, 9, 0, fec_id, 5, block, symbol, 0, fti, b"payload", 7)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(messages())
def test_a_message_survives_encoding_and_decoding(message: NormMessage) -> None:
    codec = NormCodec()
    encoded = codec.encode(message)
    assert size_of(message) == len(encoded)
    assert NormCodec().decode(encoded) == message
    assert codec.decode(encoded) == message


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.lists(data(), min_size=2, max_size=6))
def test_the_cache_of_a_codec_does_not_affect_later_messages(several: list[Data]) -> None:
    encoder, decoder = NormCodec(), NormCodec()
    m_of_source: dict[int, int] = {}
    for message in several * 2:
        if message.fec_id == 2 and message.fti is not None:
            m_of_source[message.origin.source_id] = message.fti.m
        if message.fec_id == 2 and message.fti is None and m_of_source.get(message.origin.source_id) == 8:
            continue
        assert decoder.decode(encoder.encode(message)) == message


def test_origin_and_fti_are_shared_between_messages() -> None:
    encoder, decoder = NormCodec(), NormCodec()
    fti = Fti(5, 100_000, 500, 20, 6)
    one = decoder.decode(encoder.encode(data_of(5, fti, symbol=3)))
    two = decoder.decode(encoder.encode(data_of(5, fti, block=2)))
    info = decoder.decode(encoder.encode(Info(ORIGIN, 9, 4, 5, 6, fti, b"name")))
    assert isinstance(one, Data)
    assert isinstance(two, Data)
    assert isinstance(info, Info)
    assert one.origin is two.origin is info.origin
    assert one.fti is two.fti is info.fti


def test_the_cache_of_a_codec_is_bounded() -> None:
    encoder, decoder = NormCodec(), NormCodec()
    for source in range(3000):
        for object_id in range(2):
            origin = Origin(source, 1, source & 255, 4, 2)
            fti = Fti(5, source, 500, 20, 6)
            message = Data(origin, 0, 0, 5, object_id, 0, 0, 0, fti, b"", 0)
            decoder.decode(encoder.encode(message))
    content = decoder._content
    assert max(len(content._flows), len(content._extended)) <= 1024
    assert len(content._origins) <= 4096


def test_layout_of_the_no_code_scheme() -> None:
    encoded = NormCodec().encode(data_of(0, NO_CODE, block=0, symbol=2))
    fixed = "12090009010203040007784200000005"
    assert encoded.hex() == fixed + "00000002" + "4004000000000bb8000003e800000040" + b"payload".hex()
    message = NormCodec().decode(encoded)
    assert isinstance(message, Data)
    assert (message.block, message.symbol, message.block_length, message.fti) == (0, 2, 3, NO_CODE)
    flush = NormCodec().encode(Flush(ORIGIN, 9, 0, 5, 0x0102, 0x0304))
    assert flush.hex() == "1305000901020304000778420100000501020304"


def test_elements_of_fec_id_2_have_16_bits_until_an_fti_is_known() -> None:
    encoder, decoder = NormCodec(), NormCodec()
    flush = Flush(ORIGIN, 9, 2, 5, block=0x0102, symbol=0x0304)
    assert decoder.decode(encoder.encode(flush)) == flush
    decoder.decode(encoder.encode(data_of(2, GENERAL)))
    assert decoder.decode(encoder.encode(replace(flush, block=0x010203, symbol=0x04))) == replace(
        flush, block=0x010203, symbol=0x04
    )
    request = Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(2, 5, 0x010203, 0x04),))
    nack = Nack(3, 0, ORIGIN.source_id, 7, 0, 0, (request,))
    packet = encoder.encode(nack)
    assert decoder.decode(packet) == nack
    # An item that has only one layout has it, whatever is known of the sender.
    assert encoder.encode(replace(nack, sender_id=99))[-8:] == packet[-8:]
    wide = replace(request, items=(Item(2, 5, 0x010203, 0x0405),))
    for sender_id in (ORIGIN.source_id, 99):
        with pytest.raises(UsageError, match="does not fit"):
            encoder.encode(replace(nack, sender_id=sender_id, requests=(wide,)))


def test_counted_content_has_a_size_but_no_bytes() -> None:
    message = Data(ORIGIN, 9, 0, 5, 5, 0, 0, 1, Fti(5, 800, 1000, 64, 0), None, 800)
    assert size_of(message) == 20 + 12 + 800
    with pytest.raises(UsageError, match="only accounted for"):
        NormCodec().encode(message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (data_of(5, None, symbol=256), "symbol 256 does not fit fec_id 5"),
        (data_of(5, None, block=1 << 24), "does not fit the wire"),
        (data_of(129, None, symbol=1 << 16), "does not fit the wire"),
        (data_of(3, None), "fec_id 3; known are"),
        (data_of(5, Fti(129, 100, 10, 5, 5)), "FTI of fec_id 129 in a message of fec_id 5"),
        (data_of(5, Fti(5, 1 << 48, 10, 5, 5)), "carries 48 bits"),
        (data_of(5, Fti(5, 100, 10, 256, 0)), "does not fit the wire"),
        (data_of(2, Fti(2, 100, 10, 5, 5, m=4)), "elements of 4 bits"),
        (replace(data_of(5, None), sequence=1 << 16), "does not fit the wire"),
        (replace(data_of(5, None), origin=Origin(1, 1, 1, 16, 1)), "4 bits each"),
        (Application(ORIGIN, 9, b"", (Extension(65, b"123"),)), "do not fill whole words"),
        (Application(ORIGIN, 9, b"", (Extension(200, b"12"),)), "do not fill whole words"),
        (Application(ORIGIN, 9, b"", (Extension(65, bytes(1018)),)), "does not fit the wire"),
        (Application(ORIGIN, 9, b"", (Extension(65, bytes(1022)),)), "do not fill whole words"),
    ],
    ids=str,
)
def test_a_message_that_does_not_fit_the_format_is_refused(message: NormMessage, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        NormCodec().encode(message)
