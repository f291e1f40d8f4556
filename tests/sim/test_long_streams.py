"""Streams of a simulated day: numbers begin again, memory stays bounded, and content is right to the last byte."""

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from protocols.machine import Offer
from protocols.norm import NormConfig
from protocols.stream import StreamSettings
from protocols.stream_writer import StreamWriter
from tests.sim.stream_sessions import StreamSession
from topologies.generators import Star

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

DAY = 86_400.0
LOSSY = {"kind": "star", "receivers": 2, "link": {"delay": "5ms", "down": {"loss": "1%"}, "up": {"loss": "1%"}}}


class Hashed:
    """A stream sink that keeps a hash."""

    by_message = False

    def __init__(self) -> None:
        self.hash, self.size, self.breaks, self.ended = sha256(), 0, 0, False

    def write(self, data: bytes, starts: Sequence[int]) -> object:
        """Add to the hash."""
        self.hash.update(data)
        self.size += len(data)
        return False

    def skip(self) -> None:
        """Count lost bytes."""
        self.breaks += 1

    def commit(self, info: bytes) -> None:
        """Note the end."""
        self.ended = True

    def abort(self) -> None:
        """Count it as lost bytes."""
        self.breaks += 1


def _constant(sink: Hashed, offer: Offer) -> Hashed:
    del offer
    return sink


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def pieces(seed: int) -> Iterator[bytes]:
    """Yield random content without an end."""
    rng = Random(seed)
    while True:
        yield rng.randbytes(400)


def test_a_stream_of_a_day_numbers_its_blocks_and_messages_anew_and_arrives_whole() -> None:
    # A segment of 64 bytes is a block, and there are 65536 block numbers: at 2.5 blocks per second the day has 216,000.
    config = NormConfig(rate=20_000.0, segment=64, block=1, parity=1, fec=2, fec_m=16, grtt=0.05, backoff=2, gsize=10, flow=6.0)
    run = StreamSession(Star.model_validate(LOSSY).build(), config, StreamSettings(40_000))
    sinks = [Hashed(), Hashed()]
    for receiver, sink in zip(run.receivers.values(), sinks, strict=True):
        receiver.accept_streams(partial(_constant, sink))
    sent, content, memory = sha256(), pieces(1), list[int]()

    def write() -> None:
        data = next(content)
        sent.update(data)
        run.writer.write(data)
        run.writer.flush("active")
        if run.host.now < DAY - 60.0:
            run.host.later(run.host.now + 2.8, write)
        else:
            run.writer.close()
        if not len(memory) or run.host.now > len(memory) * DAY / 10:
            memory.append(resident())

    run.host.later(0.1, write)
    run.network.run(DAY)
    for sink in sinks:
        assert (sink.ended, sink.breaks) == (True, 0)
        assert sink.hash.digest() == sent.digest()
    assert run.sender.counts()["data_sent"] > 3 * 65536
    assert memory[-1] - memory[2] < 8_000_000
    for kept, allowed in run.sender.held().values():
        assert kept <= allowed


def test_streams_of_a_day_get_their_ids_anew_and_arrive_whole() -> None:
    # A stream every 0.6 s: the day has 144,000, and there are 65536 ids.
    config = NormConfig(rate=100_000.0, segment=64, block=4, parity=1, grtt=0.02, backoff=1, gsize=10, robust=4, flow=4.0)
    run = StreamSession(Star.model_validate(LOSSY | {"receivers": 1}).build(), config, StreamSettings(1))
    (receiver,) = run.receivers.values()
    sinks: dict[int, Hashed] = {}
    wrong, whole, memory = list[int](), 0, list[int]()
    sent = {run.writer.object_id: b""}

    def accept(offer: Offer) -> Hashed:
        sink = sinks[offer.object_id] = Hashed()
        return sink

    receiver.accept_streams(accept)
    content = pieces(2)

    def one() -> None:
        nonlocal whole
        writer = StreamWriter(run.host, run.sender, StreamSettings(1))
        data = sent[writer.object_id] = next(content)[:150]
        writer.write(data)
        writer.close()
        for key in [key for key, sink in sinks.items() if sink.ended]:
            sink = sinks.pop(key)
            whole += 1
            if sink.hash.digest() != sha256(sent.pop(key)).digest():
                wrong.append(key)
        if run.host.now < DAY - 10.0:
            run.host.later(run.host.now + 0.6, one)
        if not len(memory) or run.host.now > len(memory) * DAY / 10:
            memory.append(resident())

    run.writer.close()
    run.host.later(0.5, one)
    run.network.run(DAY)
    assert not wrong
    assert whole >= 2 * 65536 + 10_000
    assert len(sinks) < 10
    # The links count each identity that passes; from the first id that is used again on there are no new ones.
    assert memory[-1] - memory[6] < 8_000_000
