"""Reed-Solomon coding compared with the encoders of NRL NORM, and under arbitrary erasures."""

import hashlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError
from protocols.fec import MAX_SYMBOLS, decode, encode
from tests.support.captures import vector

CASES = [case for case in vector("parity.json")["cases"] if case["m"] == 8]
GENERATORS = [rows for rows in vector("parity.json")["generators"] if rows["m"] == 8]


def sources_of(case: dict[str, Any]) -> list[bytes]:
    rng = random.Random(case["seed"])
    return [rng.randbytes(case["vector_size"]) for _ in range(case["num_data"])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['num_data']}of{case['k']}+{case['num_parity']}")
def test_parity_equals_that_of_nrl_norm(case: dict[str, Any]) -> None:
    sources = sources_of(case)
    if "source_hex" in case:
        assert [source.hex() for source in sources] == case["source_hex"]
    parity = encode(case["k"], case["num_parity"], sources, range(case["num_parity"]))
    if "parity_hex" in case:
        assert [symbol.hex() for symbol in parity] == case["parity_hex"]
    else:
        assert [hashlib.sha256(symbol).hexdigest() for symbol in parity] == case["parity_sha256"]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda rows: f"{rows['k']}+{rows['num_parity']}")
def test_generator_rows_equal_those_of_nrl_norm(generator: dict[str, Any]) -> None:
    k, parity = generator["k"], generator["num_parity"]
    units = [bytes(int(i == j) for j in range(k)) for i in range(k)]
    rows = encode(k, parity, units, range(parity))
    assert [list(row) for row in rows] == generator["rows"]


def test_parity_symbols_are_returned_in_the_requested_order() -> None:
    sources = [bytes([i]) * 10 for i in range(7)]
    every = encode(8, 5, sources, range(5))
    assert encode(8, 5, sources, [4, 1]) == [every[4], every[1]]
    assert encode(8, 5, sources, []) == []


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.data())
def test_as_many_erasures_as_parity_symbols_are_decoded(draw: st.DataObject) -> None:
    k = draw.draw(st.integers(1, 40) | st.integers(1, MAX_SYMBOLS))
    parity = draw.draw(st.integers(0, min(MAX_SYMBOLS - k, 24)))
    count = draw.draw(st.integers(1, k))
    size = draw.draw(st.integers(1, 40))
    rng = random.Random(draw.draw(st.integers(0, 1000)))
    sources = [rng.randbytes(size) for _ in range(count)]
    sources[-1] = sources[-1][: rng.randint(1, size)] if count > 1 else sources[-1]
    lost = rng.sample(range(count), rng.randint(0, min(parity, count)))
    used = rng.sample(range(parity), rng.randint(len(lost), parity))
    received = {i: source for i, source in enumerate(sources) if i not in lost}
    found = decode(k, parity, count, received, dict(zip(used, encode(k, parity, sources, used), strict=True)))
    assert found == {i: sources[i].ljust(size, b"\0") for i in lost}


def test_too_few_symbols_are_refused() -> None:
    with pytest.raises(UsageError, match="2 source symbols are missing, but only 1"):
        decode(4, 2, 3, {0: b"a"}, {1: b"b"})


@pytest.mark.parametrize(("k", "parity", "count"), [(4, 2, 5), (4, 2, 0), (200, 56, 200), (0, 1, 0)])
def test_impossible_blocks_are_refused(k: int, parity: int, count: int) -> None:
    with pytest.raises(UsageError, match=f"block of {count} of {k}"):
        encode(k, parity, [b"x"] * count, [])


def test_parity_indices_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="the block has 2"):
        encode(4, 2, [b"x"] * 4, [2])
    with pytest.raises(UsageError, match="the block has 2"):
        decode(4, 2, 4, {0: b"a", 1: b"b", 2: b"c"}, {2: b"d"})
