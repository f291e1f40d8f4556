"""The wire format against recorded traffic of the Java program, and against arbitrary bytes."""

import time
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.distributor.messages import (
    FIRST,
    LAST,
    MIDDLE,
    WHOLE,
    Batch,
    Configuration,
    Fragment,
    Heartbeat,
    Nak,
    Request,
    Segment,
    Source,
    SubjectUpdates,
)
from protocols.distributor.wire import OVERHEAD, DistributorCodec, size_of, write_text
from protocols.errors import UsageError, WireError
from protocols.machine import Message
from tests.support.distributor import CAPTURES, expected, payloads

CODEC = DistributorCodec()
SOURCE = Source(0x0A580001, 61234, -85250184, 94756)


def fields_of(message: Any) -> dict[str, Any]:
    """Return a message in the words of the vectors."""
    source = message.source
    found: dict[str, Any] = {"host": str(IPv4Address(source.host)), "sender_id": source.sender_id}
    found |= {"start_time32": source.start, "app_id": source.application, "flags": WHOLE, "length": size_of(message)}
    if isinstance(message, Segment):
        found |= {"type": 2 if message.is_retransmission else 1, "seqno": message.seqno}
    if isinstance(message, Batch):
        updates = [(run.subject, content) for run in message.subjects for content in run.contents]
        found["update_count"] = message.updates
        found["updates"] = [{"subject": s, "len": len(c), "crc32": crc32(bytes(c))} for s, c in updates]
    elif isinstance(message, Fragment):
        found |= {"flags": message.flags, "chunk_len": len(message.content), "chunk_crc32": crc32(message.content)}
        if message.subject is not None:
            found |= {"subject": message.subject, "total_size": message.total}
    elif isinstance(message, (Heartbeat, Configuration)):
        found |= {"mca": str(IPv4Address(message.group)), "mca_port": message.port, "start_time64": message.start}
        if isinstance(message, Heartbeat):
            return found | {"type": 3, "seqno": message.last}
        intervals = {"heartbeat_interval_ms": message.heartbeat_ms, "configuration_interval_ms": message.configuration_ms}
        return found | {"type": 4, "application_name": message.application, **intervals}
    elif isinstance(message, Request):
        found |= {"type": 5, "requestor": str(IPv4Address(message.requestor)), "target_sender_id": message.target_id}
        found |= {"target_start_time32": message.target_start, "low_seqno": message.low, "high_seqno": message.high}
        found |= {"host_name": message.host_name, "application_name": message.application}
    elif isinstance(message, Nak):
        found |= {"type": 6, "nak_seqnos": list(message.seqnos), "nak_count": len(message.seqnos)}
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_every_recorded_datagram_decodes_to_its_fields_and_encodes_to_its_bytes(name: str) -> None:
    wanted = expected(name)
    found = [data for _, data in payloads(name)]
    assert len(found) == len(wanted) > 0
    for data, fields in zip(found, wanted, strict=True):
        message = CODEC.decode(data)
        ours = fields_of(message)
        assert ours == {key: fields[key] for key in ours}
        assert CODEC.encode(message) == data
        assert size_of(message) == len(data)


def test_all_six_types_and_all_forms_of_a_segment_were_recorded() -> None:
    seen = {(fields["type"], fields["flags"]) for name in CAPTURES for fields in expected(name)}
    assert {kind for kind, _ in seen} == {1, 2, 3, 4, 5, 6}
    assert {flags for kind, flags in seen if kind == 1} == {FIRST, MIDDLE, LAST, WHOLE}


numbers = st.integers(-(1 << 31), (1 << 31) - 1)
texts = st.text(max_size=12)
sources = st.builds(Source, st.integers(0, (1 << 32) - 1), numbers, numbers, numbers)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    runs = draw(
        st.lists(
            st.tuples(texts, st.lists(st.binary(max_size=8), min_size=1, max_size=5)),
            min_size=1,
            max_size=5,
            unique_by=lambda r: r[0],
        )
    )
    subjects = [SubjectUpdates(subject, contents) for subject, contents in runs]
    size = OVERHEAD + sum(10 + len(subject.encode()) + len(content) for subject, contents in runs for content in contents)
    updates = sum(len(contents) for _, contents in runs)
    return Batch(draw(sources), draw(numbers), subjects, updates, size, draw(st.booleans()))


fragments = st.one_of(
    st.builds(
        Fragment, sources, numbers, st.sampled_from([MIDDLE, LAST]), st.binary(max_size=30), is_retransmission=st.booleans()
    ),
    st.builds(
        Fragment, sources, numbers, st.just(FIRST), st.binary(max_size=30), texts, st.integers(31, 1 << 24), st.booleans()
    ),
)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
words = st.integers(0, (1 << 32) - 1)
others = st.one_of(
    st.builds(Heartbeat, sources, words, numbers, longs, numbers),
    st.builds(Configuration, sources, words, numbers, longs, numbers, numbers, texts),
    st.builds(Request, sources, words, numbers, numbers, numbers, numbers, texts, texts),
    st.builds(Nak, sources, words, numbers, st.lists(numbers, max_size=5).map(tuple)),
)


@given(st.one_of(batches(), fragments, others))
def test_decoding_inverts_encoding_and_the_size_is_that_of_the_bytes(message: Message) -> None:
    data = CODEC.encode(message)
    assert CODEC.decode(data) == message
    assert size_of(message) == len(data)


@given(st.binary(max_size=80), st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7]), st.sampled_from([0, 1, 2, 3, 4, 5]))
def test_any_bytes_are_a_message_or_a_wire_error(rest: bytes, kind: int, flags: int) -> None:
    for data in (rest, b"\x01\x00" + bytes([kind, flags]) + rest):
        with suppress(WireError):
            CODEC.encode(CODEC.decode(data))


@pytest.mark.parametrize("name", ["large", "loss", "nak", "startup"])
def test_a_datagram_that_is_cut_is_a_wire_error_or_a_shorter_part_of_an_update(name: str) -> None:
    for _, data in list(payloads(name))[:25]:
        whole = CODEC.decode(data)
        for cut in {*range(0, min(len(data), 80)), len(data) - 1}:
            try:
                message = CODEC.decode(data[:cut])
            except WireError:
                continue
            assert isinstance(message, Fragment)
            assert isinstance(whole, Fragment)
            assert whole.content.startswith(message.content)


def test_contents_that_hold_the_bytes_before_an_update_are_kept_apart() -> None:
    trap = write_text("/s") + b"\x01\x00\x00\x00\x20"
    contents = [trap.ljust(32, b"\0"), b"x" * 32, trap.rjust(32, b"\0")]
    batch = Batch(SOURCE, 1, [SubjectUpdates("/s", contents)], 3, OVERHEAD + 3 * 44)
    assert CODEC.decode(CODEC.encode(batch)) == batch


def test_a_subject_in_latin_1_is_read_as_the_java_program_writes_it() -> None:
    batch = Batch(SOURCE, 1, [SubjectUpdates("/öre", [b"a"])], 1, OVERHEAD + 16)
    data = (
        CODEC.encode(batch).replace("/öre".encode(), "/öre".encode("latin-1")).replace(b"\x01\0\0\0\x05/", b"\x01\0\0\0\x04/")
    )
    assert CODEC.decode(data).subjects == batch.subjects  # type: ignore[attr-defined]


def test_a_value_out_of_the_range_of_its_field_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="out of its field's range"):
        CODEC.encode(Heartbeat(SOURCE, 1, 2, 3, 1 << 31))


def test_hostile_counts_cost_no_more_than_the_bytes_that_are_there() -> None:
    head = CODEC.encode(Batch(SOURCE, 1, [SubjectUpdates("/s", [b""])], 1, OVERHEAD + 12))[:OVERHEAD]
    for count in (-1, 0, 5000, (1 << 31) - 1):
        data = head[:24] + count.to_bytes(4, "big", signed=True) + b"\0" * 65_000
        began = time.process_time()
        with pytest.raises(WireError):
            CODEC.decode(data)
        assert time.process_time() - began < 0.05
