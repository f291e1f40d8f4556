"""The time of a coder is that of the thesis' table (4.3.1), and the publisher spends it once for each message."""

from typing import Any

import pytest

from protocols.fjm2 import Fjm2Config
from protocols.fjm2.coder import encoding_time
from tests.protocols.fjm2.scene import Scene, message

TABLE = {
    (65536, 512): 35,
    (65536, 1024): 11,
    (65536, 1440): 7,
    (32768, 512): 6,
    (32768, 1024): 2,
    (32768, 1440): 1,
    (16384, 512): 1,
    (16384, 1440): 0,
    (8192, 512): 0,
}
"""Milliseconds of a message by its bytes and those of a symbol."""
FITTED: Any = {"encode": 2.11e-9, "encode_matrix": 8.26e-9}


@pytest.mark.parametrize(("size", "symbol"), TABLE)
def test_two_times_give_the_table_of_the_thesis(size: int, symbol: int) -> None:
    count = -(-size // symbol)
    config = Fjm2Config(fec=2, fec_m=16, segment=symbol, block=count, parity=count, **FITTED)
    assert 1000 * encoding_time(size, config) == pytest.approx(TABLE[size, symbol], abs=1.0)


def test_every_block_of_a_message_counts() -> None:
    one = Fjm2Config(fec=5, segment=100, block=10, parity=5, encode=1e-9)
    assert encoding_time(1000, one) == pytest.approx(10 * 5 * 100e-9)
    assert encoding_time(2000, one) == pytest.approx(2 * encoding_time(1000, one))


def test_without_parity_nothing_is_encoded() -> None:
    assert encoding_time(65536, Fjm2Config(**FITTED)) == 0.0
    assert encoding_time(65536, Fjm2Config(fec=5, parity=16)) == 0.0


@pytest.mark.parametrize(("parity", "works"), [(5, 3), (0, 0)])
def test_a_publisher_encodes_each_message_once(parity: int, works: int) -> None:
    scene = Scene(fec=5 if parity else 0, block=10, parity=parity, encode=1e-9)
    scene.publish(*(message(n) for n in range(3)))
    scene.run()
    assert scene.numbers() == [0, 1, 2]
    assert len(scene.bench.hosts["p"].works) == works
