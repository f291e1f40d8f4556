"""Blocks whose decoding would take too long, with elements of 16 bits: what is missing of them is requested by name."""

from typing import Any

import pytest

import protocols.fec
from experiments.contract.content import CheckedSink, pattern
from experiments.contract.losses import randomly
from protocols.norm.messages import Fti
from protocols.norm.rx_object import RxObject
from protocols.stream import StreamSettings
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.stream_scenes import StreamScene, messages

CODE: dict[str, Any] = {"fec": 2, "fec_m": 16, "block": 40, "parity": 20, "segment": 100}
LEAST = 40 * (100 + protocols.fec.PER_PAIR)
"""The work for one missing symbol of a block."""


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[RxObject]:
    """Return the objects whose parity is refused, where two symbols of a block may be decoded."""
    monkeypatch.setattr(protocols.fec, "MOST_WORK", 2 * LEAST)
    found: list[RxObject] = []
    refuse = RxObject.refuse_parity

    def noted(self: RxObject) -> None:
        found.append(self)
        refuse(self)

    monkeypatch.setattr(RxObject, "refuse_parity", noted)
    return found


def test_an_object_of_which_too_much_is_missing_is_repaired_by_its_source_symbols(refused: list[RxObject]) -> None:
    scene = GroupScene(receivers=1, drop=randomly(0.2), auto_parity=4, **CODE)
    scene.submit(12_000, 11_000)
    scene.run(60.0)
    assert scene.received(10) == [0, 1]
    assert [item.object_id for item in refused] == [0, 1]
    assert all(item.held == 0 for item in refused)


def test_a_stream_of_which_too_much_is_missing_is_repaired_by_its_source_symbols(refused: list[RxObject]) -> None:
    scene = StreamScene(drop=randomly(0.2), settings=StreamSettings(1 << 16), auto_parity=4, **CODE)
    content = messages(150)
    scene.send(*content)
    assert scene.sinks[0].data == b"".join(content)
    assert len(refused) == 1


@pytest.mark.parametrize("with_bytes", [True, False])
@pytest.mark.parametrize("missing", [3, 4])
def test_the_last_symbol_of_a_block_may_be_parity_or_not(missing: int, with_bytes: bool, refused: list[RxObject]) -> None:
    fti, source = Fti(2, 12_000, 100, 40, 20, 16), pattern(12_000)
    parity = bytes(100) if with_bytes else None

    def segment(number: int) -> bytes | None:
        return source[number * 100 : number * 100 + 100] if with_bytes else None

    item = RxObject(0, fti, CheckedSink(12_000), False)
    item.skip(0, 0, 2, 0)
    item.fill_parity(1, 0, parity, 1 << 20)
    for number in range(3):
        item.fill_parity(0, number, parity, 1 << 20)
    for symbol in range(40 - missing):
        assert item.fill(0, symbol, segment(symbol))
    if missing == 4:
        assert item.held == 400
        assert not item.fill_parity(0, 3, parity, 1 << 20)
    assert refused == [item]
    assert (item.held, item.fti.usable, fti.usable) == (0, 0, 20)
    assert item.missing(0).bit_count() == missing
    assert not item.fill_parity(0, 5, parity, 1 << 20)
    for symbol in range(40 - missing, 40):
        assert item.fill(0, symbol, segment(symbol))
    assert item.missing(0) == 0
