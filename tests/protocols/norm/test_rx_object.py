"""Reception of one object: gaps, decoding, and buffer limits."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.content import CheckedSink, FailingSink, pattern
from protocols.norm.messages import Fti
from protocols.norm.nack_process import is_block_covered
from protocols.norm.rx_object import RxObject
from tests.protocols.norm.scenes import MessageBuilder

PLENTY = 10**9


def incoming(builder: MessageBuilder, *, wants_info: bool = False) -> tuple[RxObject, CheckedSink]:
    sink = CheckedSink(len(builder.content))
    return RxObject(0, builder.fti, sink, wants_info), sink


def deliver(item: RxObject, builder: MessageBuilder, block: int, symbol: int, limit: int = PLENTY) -> bool:
    length = builder.fti.partition.length(block)
    payload = builder.payload(block, symbol)
    return item.fill(block, symbol, payload) if symbol < length else item.fill_parity(block, symbol - length, payload, limit)


@pytest.mark.parametrize("lost", list(combinations(range(5), 2)), ids=str)
def test_any_parity_symbols_replace_any_lost_symbols(lost: tuple[int, ...]) -> None:
    builder = MessageBuilder(pattern(460), block=5, parity=3)
    for chosen in combinations(range(5, 8), 2):
        item, sink = incoming(builder)
        item.skip(0, 0, 1, 0)
        for symbol in (*(s for s in range(5) if s not in lost), *chosen):
            assert deliver(item, builder, 0, symbol)
        assert item.has_no_gaps
        assert bytes(sink.content) == builder.content


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_symbols_in_any_order_give_the_content(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 1500))
    builder = MessageBuilder(
        pattern(size), segment=data.draw(st.integers(8, 120)), block=data.draw(st.integers(1, 9)), parity=4
    )
    partition = builder.fti.partition
    item, sink = incoming(builder)
    item.skip(0, 0, partition.blocks, 0)
    symbols = [(b, s) for b in range(partition.blocks) for s in range(partition.length(b) + 4)]
    for block, symbol in data.draw(st.permutations(symbols)):
        deliver(item, builder, block, symbol)
    assert item.has_no_gaps
    assert bytes(sink.content) == builder.content


def test_a_duplicate_symbol_is_not_useful() -> None:
    builder = MessageBuilder(pattern(800))
    item, _ = incoming(builder)
    item.skip(0, 0, 1, 0)
    assert deliver(item, builder, 0, 3)
    assert not deliver(item, builder, 0, 3)
    assert deliver(item, builder, 0, 9)
    assert not deliver(item, builder, 0, 9)


def test_a_block_received_not_at_all_needs_no_bitmap() -> None:
    item, _ = incoming(MessageBuilder(pattern(80_000)))
    item.skip(0, 0, 100, 0)
    assert item.missing_blocks == [[0, 99]]
    assert not item.missing_symbols


def test_a_symbol_inside_a_range_of_missing_blocks_splits_it() -> None:
    builder = MessageBuilder(pattern(80_000))
    item, _ = incoming(builder)
    item.skip(0, 0, 100, 0)
    deliver(item, builder, 40, 2)
    assert item.missing_blocks == [[0, 39], [41, 99]]
    assert dict(item.missing_symbols.items() if item.missing_symbols else ()) == {40: 0xFF ^ 1 << 2}


def test_a_gap_across_blocks_is_recorded_in_each_block() -> None:
    item, _ = incoming(MessageBuilder(pattern(80_000)))
    item.skip(3, 6, 6, 2)
    assert dict(item.missing_symbols.items() if item.missing_symbols else ()) == {3: 0b11000000, 6: 0b11}
    assert item.missing_blocks == [[4, 5]]


@pytest.mark.parametrize("with_bytes", [True, False])
def test_buffered_parity_is_limited_and_released_when_its_block_is_complete(with_bytes: bool) -> None:
    builder = MessageBuilder(pattern(1600))
    item, _ = incoming(builder)
    item.skip(0, 0, 2, 0)

    def parity(block: int) -> bool:
        return item.fill_parity(block, 0, builder.payload(block, 8) if with_bytes else None, 150)

    assert parity(0)
    assert not parity(1)
    assert item.held == 100
    for symbol in range(7):
        item.fill(0, symbol, builder.payload(0, symbol) if with_bytes else None)
    assert dict(item.missing_symbols.items() if item.missing_symbols else ()) == {1: 0xFF}
    assert item.held == 0
    assert parity(1)


@pytest.mark.parametrize("with_bytes", [True, False])
def test_the_parity_symbol_that_completes_a_block_needs_no_room(with_bytes: bool) -> None:
    builder = MessageBuilder(pattern(1600))
    item, sink = incoming(builder)
    for block in range(2):
        for symbol in range(6):
            item.write(block, symbol, builder.payload(block, symbol))
        item.skip(block, 6, block + 1, 0)

    def parity(block: int, number: int) -> bool:
        return item.fill_parity(block, number, builder.payload(block, 8 + number) if with_bytes else None, 100)

    assert parity(0, 0)
    assert not parity(1, 0)
    assert parity(0, 1)
    assert item.held == 0
    assert item.missing(0) == 0
    assert not with_bytes or bytes(sink.content[:800]) == builder.content[:800]


@pytest.mark.parametrize("with_bytes", [True, False])
def test_a_full_buffer_makes_room_for_the_first_incomplete_block(with_bytes: bool) -> None:
    builder = MessageBuilder(pattern(1600))
    item, sink = incoming(builder)
    for block in range(2):
        for symbol in range(5):
            item.write(block, symbol, builder.payload(block, symbol))
        item.skip(block, 5, block + 1, 0)

    def parity(block: int, number: int) -> bool:
        return item.fill_parity(block, number, builder.payload(block, 8 + number) if with_bytes else None, 200)

    assert all(parity(1, number) for number in range(2))
    assert all(parity(0, number) for number in range(3))
    assert (item.missing(0), item.missing(1), item.parity_of(1), item.held) == (0, 0b11100000, 0, 0)
    assert not with_bytes or bytes(sink.content[:800]) == builder.content[:800]


def test_where_the_parity_of_a_block_never_fits_symbols_are_requested_by_name() -> None:
    item, _ = incoming(MessageBuilder(pattern(1600)))
    item.skip(0, 5, 2, 0)
    assert item.fill_parity(0, 0, None, 100)
    assert not item.fill_parity(0, 1, None, 100)
    assert (item.fti.usable, item.held, item.parity) == (0, 0, None)
    assert not item.fill_parity(0, 2, None, 100)


def test_parity_that_others_request_is_nothing_to_a_receiver_that_requests_by_name() -> None:
    item, _ = incoming(MessageBuilder(pattern(1600)))
    item.skip(0, 5, 1, 0)
    missing, last, parity = item.missing(0), 1 << 7, 0b11 << 8
    assert is_block_covered(item, 0, missing, last | parity)
    item.refuse_parity()
    assert not is_block_covered(item, 0, missing, last | parity)
    assert is_block_covered(item, 0, missing, missing | parity)


def test_counted_content_completes_after_the_same_number_of_symbols() -> None:
    item = RxObject(0, MessageBuilder(pattern(800)).fti, CheckedSink(800), False)
    item.skip(0, 0, 1, 0)
    for symbol in range(5):
        item.fill(0, symbol, None)
    for number in range(2):
        item.fill_parity(0, number, None, PLENTY)
    assert not item.has_no_gaps
    assert item.missing(0).bit_count() - item.parity_of(0).bit_count() == 1
    item.fill_parity(0, 2, None, PLENTY)
    assert item.has_no_gaps


@pytest.mark.parametrize(("size", "segment"), [(10_001, 101), (99, 100)])
def test_parity_of_half_elements_is_not_relied_on(size: int, segment: int) -> None:
    item = RxObject(0, Fti(2, size, segment, 100, 30, 16), CheckedSink(size), False)
    assert item.fti.usable == 0
    item.skip(0, 0, 1, 0)
    assert not item.fill_parity(0, 0, bytes(segment), PLENTY)


def test_an_object_without_its_norm_info_is_incomplete() -> None:
    builder = MessageBuilder(pattern(100))
    item, _ = incoming(builder, wants_info=True)
    assert not item.has_no_gaps
    assert item.missing_before(0, 1)
    item.info = b""
    assert item.has_no_gaps


def test_an_exception_of_the_sink_propagates() -> None:
    builder = MessageBuilder(pattern(800))
    item = RxObject(0, builder.fti, FailingSink(800, "read"), False)
    item.skip(0, 0, 1, 0)
    for symbol in range(7):
        deliver(item, builder, 0, symbol)
    with pytest.raises(OSError, match="no space left"):
        deliver(item, builder, 0, 8)
