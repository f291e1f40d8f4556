"""Messages that do not fit a stream: nothing raises, and what is kept stays bounded."""

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks.hostile import Silent
from protocols.norm.config import NormConfig
from protocols.norm.host_receiver import NormHostReceiver
from protocols.norm.messages import FLAG_REPAIR, FLAG_STREAM, Data, Flush, Fti, Info, Nack, Origin, Squelch
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    Item,
    Request,
)
from protocols.norm.stream_coding import HEADER
from protocols.stream import StreamSettings
from tests.protocols.norm.scenes import GROUP
from tests.protocols.norm.stream_scenes import StreamScene, messages
from tests.protocols.norm.test_hostile import LINES_PER_KILOBYTE, lines
from tests.support.streams import Collected

EDGES = [0, 1, 3, 7, 8, 11, 12, 255, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0xFFFFFF]


def mutated(message: Any, rng: random.Random) -> Any:
    """Return a message with one field that does not fit."""
    edge = rng.choice(EDGES)
    if isinstance(message, Data):
        payload = rng.choice([b"", b"\0" * 7, HEADER.pack(rng.choice(EDGES) & 0xFFFF, edge & 0xFFFF, edge) + rng.randbytes(92)])
        return rng.choice(
            [
                replace(message, block=edge),
                replace(message, symbol=edge & 0xFF),
                replace(message, payload=payload, length=len(payload)),
                replace(message, flags=message.flags ^ FLAG_REPAIR),
                replace(message, flags=message.flags ^ FLAG_STREAM),
                replace(message, object_id=edge & 0xFFFF),
                replace(message, fti=None),
                replace(message, fti=Fti(5, edge << 8, 1 + edge % 1400, 1 + edge % 200, edge % 50)),
                replace(message, sequence=edge & 0xFFFF),
            ]
        )
    if isinstance(message, Info):
        return replace(message, object_id=edge & 0xFFFF)
    if isinstance(message, (Flush, Squelch)):
        return rng.choice(
            [replace(message, block=edge), replace(message, symbol=edge & 0xFF), replace(message, object_id=edge & 7)]
        )
    return message


@pytest.mark.parametrize("seed", range(12))
def test_a_receiver_survives_messages_that_do_not_fit_its_streams(seed: int) -> None:
    rng = random.Random(seed)
    scene = StreamScene(settings=StreamSettings(6000, b"x"), flow=2.0)
    scene.send(*messages(150), flush=rng.choice(["none", "passive"]))
    recorded: list[Any] = [packet.message for packet in scene.host.packets]
    recorded.append(Squelch(recorded[0].origin, 9, 5, 0, 5, 0, 8, ()))
    other = StreamScene(buffer=20_000)
    receiver, host = other.receivers[0], other.bench["r1"]
    receiver.accept_streams(lambda offer: Collected(by_message=bool(seed % 2), capacity=rng.choice([None, 500])))
    for message in recorded:
        for _ in range(rng.choice([0, 0, 1, 3])):
            host.deliver(mutated(rng.choice(recorded), rng), "sender", GROUP, host.now)
        if rng.random() < 0.9:
            host.deliver(message, "sender", GROUP, host.now)
        other.bench.run(other.bench.now + 0.001)
        for name, (kept, allowed) in receiver.held().items():
            assert kept <= allowed, name
    other.run(5.0)
    host.call(receiver.resume_stream, 1, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_sender_survives_requests_that_do_not_fit_its_streams(seed: int) -> None:
    rng = random.Random(seed)
    scene = StreamScene(settings=StreamSettings(6000), flow=2.0, auto_parity=seed % 3)
    for message in messages(200):
        scene.write(message, flush=rng.choice(["none", "passive", "active"]))
        item = [Item(5, rng.randrange(2), rng.choice(EDGES), rng.choice(EDGES) & 0xFF) for _ in range(2)]
        request = Request(rng.choice([FORM_ITEMS, FORM_RANGES]), rng.choice([1, 2, 3, 4, 8, 12]), tuple(item))
        scene.host.deliver(Nack(9, 0, 1, 1, 0, 0, (request,)), "r9", GROUP, scene.bench.now)
        scene.run(0.01)
        for name, (kept, allowed) in scene.sender.held().items():
            assert kept <= allowed, name
    scene.send()
    assert scene.sinks[0].data == b"".join(messages(200))


def gaps(fti: Fti, sink: Collected, segments: Iterable[tuple[int, int]], buffer: int) -> list[int]:
    """Give a receiver segments (block, symbol) of a forged stream; return the lines of Python that each took."""
    machine = NormHostReceiver(Silent(), NormConfig(buffer=buffer), 2, GROUP)
    machine.accept_streams(lambda offer: sink)
    machine.start(0.0)
    found = []
    for sequence, (block, symbol) in enumerate(segments):
        payload = HEADER.pack(4, 1, (block * fti.block + symbol) * 4 & 0xFFFFFFFF) + b"abcd"
        place = (block, symbol, fti.block)
        message = Data(
            Origin(1, 1, 10, 4, 3), sequence & 0xFFFF, FLAG_STREAM, fti.fec_id, 0, *place, fti, payload, len(payload)
        )
        found.append(lines(partial(machine.receive, message, "forger", GROUP, 0.0)))
    return found


@pytest.mark.parametrize("capacity", [None, 1], ids=["open", "paused"])
def test_a_segment_costs_little_however_many_are_missing_before_it(capacity: int | None) -> None:
    # The buffer is full of gaps from the middle on, and each segment pushes the first blocks out.
    segments = [(0, 0), *((block, 0) for block in range(2, 8000, 2))]
    costs = gaps(Fti(5, 1 << 30, 4, 1, 0), Collected(capacity=capacity), segments, 1_000_000)
    assert max(costs) < LINES_PER_KILOBYTE // 10


@pytest.mark.parametrize(
    ("fti", "kept"), [(Fti(5, 1 << 30, 4, 1, 0), 1), (Fti(2, 1 << 30, 4, 6000, 0, 16), 6000)], ids=["1", "6000"]
)
def test_a_segment_that_ends_many_gaps_costs_what_is_kept(fti: Fti, kept: int) -> None:
    places = [0, *range(2, 6000, 2)]
    segments = [divmod(place, kept) for place in places] + [(10_000, 0)]
    costs = gaps(fti, Collected(), segments, 16_000_000)
    assert max(costs[:-1]) < LINES_PER_KILOBYTE // 10
    assert costs[-1] < 100 * len(places)
