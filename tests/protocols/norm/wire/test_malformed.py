"""Any bytes decode to a message or raise WireError, and nothing else.

With FUZZ_EXAMPLES=100000 in the environment the search is that much longer, and different each time.
"""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import WireError
from protocols.norm.messages import NormMessage
from protocols.norm.wire.codec import NormCodec
from tests.support.captures import CAPTURES, udp_payloads
from tests.support.norm_strategies import messages

FUZZ = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "400")), derandomize="FUZZ_EXAMPLES" not in os.environ, deadline=None
)
ORIGIN = "01020304 0007 78 42"
PROBE = f"13 06 0009 {ORIGIN} 04 00 0001 00000001 00000002"
NACK = "14 06 0000 00000002 00000001 0001 0000 00000000 00000000"
DATA = f"12 08 0009 {ORIGIN} 00 05 0000 00000000"
INFO_129 = f"11 08 0009 {ORIGIN} 00 81 0000"


def survives(data: bytes, codec: NormCodec) -> None:
    """Decode without another error; what decodes can be encoded and decoded again."""
    try:
        message = codec.decode(data)
    except WireError:
        return
    assert isinstance(message, NormMessage)
    again = codec.encode(message)
    assert codec.decode(again) == message


@FUZZ
@given(st.binary(max_size=80))
def test_any_bytes_give_a_message_or_a_wire_error(data: bytes) -> None:
    survives(data, NormCodec())


@FUZZ
@given(st.sampled_from((1, 2, 3, 4, 5, 6)), st.integers(0, 16), st.binary(min_size=6, max_size=90))
def test_any_bytes_after_a_valid_first_word_give_a_message_or_a_wire_error(type: int, words: int, rest: bytes) -> None:
    survives(bytes((0x10 | type, words)) + rest, NormCodec())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a recorded or generated message with bytes changed, removed or added."""
    if draw(st.booleans()):
        data = bytearray(draw(st.sampled_from(udp_payloads(draw(st.sampled_from(CAPTURES)))))[:200])
    else:
        data = bytearray(NormCodec().encode(draw(messages())))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, min(len(data) - 1, 60)))
        data[at] = draw(st.sampled_from((0, 1, 2, 3, 4, 5, 16, 64, 127, 128, 129, 255)) | st.integers(0, 255))
    end = draw(st.integers(0, len(data)) | st.just(len(data)))
    return bytes(data[:end]) + draw(st.just(b"") | st.binary(max_size=9))


@FUZZ
@given(mutated())
def test_mutated_messages_give_a_message_or_a_wire_error(data: bytes) -> None:
    survives(data, NormCodec())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "0 bytes; a NORM header has at least 8"),
        ("12 08 0000 00 00 00", "7 bytes"),
        ("22 02 0000 00000001", "version 2, type 2"),
        ("10 02 0000 00000001", "version 1, type 0"),
        ("17 02 0000 00000001", "version 1, type 7"),
        ("16 01 0000 00000001", "header of 4 bytes; this kind of message has at least 8"),
        ("16 03 0000 00000001", "header of 12 bytes in a message of 8"),
        (DATA.replace("12 08", "12 04"), "header of 16 bytes"),
        (DATA + "40 00 0000 00000000 00000000", "extension 64 of 0 bytes where 12 are left"),
        (DATA + "40 04 0000 00000000 00000000", "extension 64 of 16 bytes where 12 are left"),
        (DATA.replace("00 05", "00 06") + "41 03" + "00" * 10, "unknown fec_id 6"),
        (DATA.replace("00 05", "00 81") + "00" * 12, "extension 0 of 0 bytes"),
        (DATA.replace("12 08", "12 05").replace("00 05", "00 81"), "DATA with fec_id 129 has 24"),
        (DATA + "40 03 0000 00000100 0000 40 10", "segments of 0 bytes in blocks of 64"),
        (DATA + "40 03 0000 00000100 0578 00 10", "in blocks of 0"),
        (DATA + "40 03 0000 00000100 0578 f0 10", "in blocks of 240 [+] 16"),
        (DATA + "40 03 ffff ffffffff 0001 01 00", "their numbers do not fit fec_id 5"),
        (DATA.replace("12 08", "12 09") + "40 04" + "00" * 14, "EXT_FTI of 16 bytes; fec_id 5 has 12"),
        (INFO_129 + "40 04 0000 00000100 0001 0578 0040 0000", "instance 1"),
        (INFO_129.replace("81", "02") + "40 04 0000 00000100 0c 01 0578 0040 0010", "elements of 12 bits"),
        (INFO_129.replace("81", "02") + "40 04 0000 00000100 08 02 0578 0040 0010", "2 symbols per packet"),
        (f"13 04 0009 {ORIGIN} 08 00 0000", "unknown flavour 8"),
        (f"13 04 0009 {ORIGIN} 01 05 0000", "names a symbol of fec_id 5 has 20"),
        (f"13 05 0009 {ORIGIN} 01 05 0000 00000000 0000", "list of 2 bytes with entries of 4"),
        (f"13 05 0009 {ORIGIN} 03 05 0000 00000000 00", "list of 1 bytes with entries of 2"),
        (PROBE.replace("13 06", "13 05"), "header of 20 bytes"),
        (PROBE + "00000001 00 00 00", "list of 7 bytes with entries of 8"),
        (NACK.replace("14 06", "14 05"), "header of 20 bytes"),
        (NACK + "01 01 00", "repair request cut off after 3 bytes"),
        (NACK + "04 01 0000", "unknown form 4"),
        (NACK + "01 01 0008 05 00 0000", "repair request of 8 bytes where 4 are left"),
        (NACK + "01 01 0006 05 00 0000 0000", "repair item cut off after 6 bytes"),
        (NACK + "01 01 0008 07 00 0000 00000000", "unknown fec_id 7"),
        (NACK + "02 01 0008 05 00 0000 00000000", "1 ends of ranges"),
        (NACK.replace("14 06", "14 08") + "03 02 0000 00 00 0000", "EXT_CC of 8 bytes"),
    ],
)
def test_malformed_messages_are_refused_with_the_reason(data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        NormCodec().decode(bytes.fromhex(data))
