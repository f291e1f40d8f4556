"""Symbols of an object that can be planned in bursts."""

from typing import Any

import pytest

from experiments.contract.content import Bytes, pattern
from protocols.machine import Content
from protocols.norm.fast.tx_object import FastTxObject
from tests.protocols.norm.scenes import quick


def make(size: int, **settings: Any) -> FastTxObject:
    return FastTxObject(0, Content(Bytes(pattern(size))), quick(**settings), 1)


@pytest.mark.parametrize(("size", "settings"), [(2400, {}), (2050, {}), (1900, {}), (1600, {"auto_parity": 2}), (90, {})])
def test_skipping_symbols_equals_sending_them(size: int, settings: dict[str, Any]) -> None:
    begin = 0
    while True:
        one, other = make(size, **settings), make(size, **settings)
        for _ in range(begin):
            one.step()
            other.step()
        if not one.unsent:
            break
        count = one.steady()
        steps = [one.step() for _ in range(count)]
        other.skip(max(count, 0))
        assert (other.block, other.symbol, other.length, other.first) == (one.block, one.symbol, one.length, one.first)
        assert one.unsent, "the last is not steady"
        assert (0, 0) not in steps
        assert all(symbol < one.partition.length(block) == one.partition.length(steps[0][0]) for block, symbol in steps)
        begin += 1
