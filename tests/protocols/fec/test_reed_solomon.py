"""Reed-Solomon coding compared with the encoders of NRL NORM, and under arbitrary erasures."""

import hashlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError
from protocols.fec import MOST_SYMBOLS, MOST_WORK, decode, encode, most_erasures
from tests.support.captures import vector

CASES, GENERATORS = vector("parity.json")["cases"], vector("parity.json")["generators"]


def sources_of(case: dict[str, Any]) -> list[bytes]:
    rng = random.Random(case["seed"])
    return [rng.randbytes(case["vector_size"]) for _ in range(case["num_data"])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"m{case['m']}-{case['num_data']}of{case['k']}+{case['num_parity']}")
def test_parity_equals_that_of_nrl_norm(case: dict[str, Any]) -> None:
    sources = sources_of(case)
    if "source_hex" in case:
        assert [source.hex() for source in sources] == case["source_hex"]
    parity = encode(case["k"], case["num_parity"], sources, range(case["num_parity"]), case["m"])
    if "parity_hex" in case:
        assert [symbol.hex() for symbol in parity] == case["parity_hex"]
    else:
        assert [hashlib.sha256(symbol).hexdigest() for symbol in parity] == case["parity_sha256"]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda rows: f"m{rows['m']}-{rows['k']}+{rows['num_parity']}")
def test_generator_rows_equal_those_of_nrl_norm(generator: dict[str, Any]) -> None:
    k, parity, size = generator["k"], generator["num_parity"], generator["m"] // 8
    units = [b"".join(int(i == j).to_bytes(size, "little") for j in range(k)) for i in range(k)]
    rows = encode(k, parity, units, range(parity), generator["m"])
    found = [[int.from_bytes(row[at : at + size], "little") for at in range(0, len(row), size)] for row in rows]
    assert found == generator["rows"]


def test_parity_symbols_are_returned_in_the_requested_order() -> None:
    sources = [bytes([i]) * 10 for i in range(7)]
    every = encode(8, 5, sources, range(5))
    assert encode(8, 5, sources, [4, 1]) == [every[4], every[1]]
    assert encode(8, 5, sources, []) == []


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.data())
def test_as_many_erasures_as_parity_symbols_are_decoded(draw: st.DataObject) -> None:
    m = draw.draw(st.sampled_from((8, 16)))
    k = draw.draw(st.integers(1, 40) | st.integers(1, MOST_SYMBOLS[8]) | st.integers(1, 40 if m == 8 else 700))
    parity = draw.draw(st.integers(0, 24 if m == 16 else min(MOST_SYMBOLS[8] - k, 24)))
    count = draw.draw(st.integers(1, k))
    size = draw.draw(st.integers(1, 40))
    rng = random.Random(draw.draw(st.integers(0, 1000)))
    sources = [rng.randbytes(size) for _ in range(count)]
    sources[-1] = sources[-1][: rng.randint(1, size)] if count > 1 else sources[-1]
    lost = rng.sample(range(count), rng.randint(0, min(parity, count)))
    used = rng.sample(range(parity), rng.randint(len(lost), parity))
    received = {i: source for i, source in enumerate(sources) if i not in lost}
    found = decode(k, parity, count, received, dict(zip(used, encode(k, parity, sources, used, m), strict=True)), m)
    whole = size + size % 2 if m == 16 else size
    assert found == {i: sources[i].ljust(whole, b"\0") for i in lost}


@pytest.mark.parametrize("m", [8, 16])
def test_too_few_symbols_are_refused(m: int) -> None:
    with pytest.raises(UsageError, match="2 source symbols are missing, but only 1"):
        decode(4, 2, 3, {0: b"a"}, {1: b"b"}, m)


@pytest.mark.parametrize(
    ("k", "parity", "count", "m"),
    [(4, 2, 5, 8), (4, 2, 0, 8), (200, 56, 200, 8), (0, 1, 0, 8), (4, 2, 5, 16), (65_000, 536, 1, 16)],
)
def test_impossible_blocks_are_refused(k: int, parity: int, count: int, m: int) -> None:
    with pytest.raises(UsageError, match=f"block of {count} of {k}"):
        encode(k, parity, [b"x"] * count, [], m)


def test_the_largest_block_is_coded() -> None:
    sources = [index.to_bytes(4) for index in range(65_000)]
    made = encode(65_000, 535, sources, [0, 7, 534], 16)
    received = {index: source for index, source in enumerate(sources) if index not in (0, 1, 64_999)}
    found = decode(65_000, 535, 65_000, received, dict(zip([0, 7, 534], made, strict=True)), 16)
    assert found == {index: sources[index] for index in (0, 1, 64_999)}


@pytest.mark.parametrize("m", [8, 16])
def test_parity_indices_out_of_range_are_refused(m: int) -> None:
    with pytest.raises(UsageError, match="the block has 2"):
        encode(4, 2, [b"x"] * 4, [2], m)
    with pytest.raises(UsageError, match="the block has 2"):
        decode(4, 2, 4, {0: b"a", 1: b"b", 2: b"c"}, {2: b"d"}, m)


@pytest.mark.parametrize(
    ("count", "size", "most"), [(300, 1400, 300), (3000, 1400, 1000), (60_000, 1400, 50), (60_000, 2, 3900)]
)
def test_the_work_of_decoding_a_block_is_bounded(count: int, size: int, most: int) -> None:
    assert most <= most_erasures(count, size, 16)
    assert count * most_erasures(count, size, 16) * (16 + size) <= MOST_WORK
    assert most_erasures(count, size, 8) == 255
