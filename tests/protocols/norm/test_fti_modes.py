"""Objects that are described only in their NORM_INFO, or nowhere (NRL's NormLimitObjectInfo and NormPresetObjectInfo)."""

from itertools import pairwise
from typing import Any

import pytest

from experiments.contract.bench import Bench
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.losses import Crossing, randomly
from protocols.errors import ConfigError, UsageError
from protocols.events import FlushCompleted, ObjectReceived
from protocols.machine import Content
from protocols.norm import NormCodec, NormReceiver, NormSender
from protocols.norm.messages import (
    FLAG_INFO,
    Data,
    Info,
    Nack,
)
from protocols.norm.requests import (
    LEVEL_INFO,
)
from protocols.stream import StreamSettings
from tests.protocols.norm.scenes import GROUP, SenderHarness, quick

SIZES = (3000, 700, 2500)


def transfer(drop: Any, sizes: tuple[int, ...] = SIZES, **settings: Any) -> Bench:
    """Send objects to one receiver and return the bench at the end."""
    bench, config = Bench(["sender", "r"], drop=drop, codec=NormCodec()), quick(robust=12, **settings)
    sender = NormSender(bench["sender"], config, 1, GROUP, 1)
    bench["r"].run(NormReceiver(bench["r"], config, 2, GROUP))
    bench["sender"].run(sender)
    for number, size in enumerate(sizes):
        bench["sender"].call(sender.submit, Content(Bytes(pattern(size, seed=number))))
    bench.run(until=20.0)
    return bench


def received(bench: Bench) -> dict[int, bytes]:
    """Return the content of the objects that are complete."""
    done = [event.object_id for event in bench["r"].events if isinstance(event, ObjectReceived)]
    sinks = {number: bench["r"].sinks[1, number] for number in done}
    return {number: bytes(sink.content) for number, sink in sinks.items() if isinstance(sink, CheckedSink)}


CONTENT = {number: pattern(size, seed=number) for number, size in enumerate(SIZES)}


@pytest.mark.parametrize(("fec", "m", "block", "count"), [(5, 8, 50, 3240), (2, 8, 50, 3240), (2, 16, 1000, 3012)])
def test_without_a_description_identities_rise_in_the_order_of_transmission(fec: int, m: int, block: int, count: int) -> None:
    sender = SenderHarness(fti="info", fec=fec, fec_m=m, block=block, parity=4, auto_parity=4)
    sender.submit(300_000)
    sender.run_until(1.0, lambda: bool(sender.events_of(FlushCompleted)))
    sent = sender.messages_of(Data)
    found = [message.identity or 0 for message in sent]
    assert len(found) == count
    assert all(before < after for before, after in pairwise(found))
    codec = NormCodec()
    decoded = [codec.decode(codec.encode(message)) for message in (*sender.messages_of(Info)[:1], *sent)]
    assert [message.identity for message in decoded[1:]] == found


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("fec", [0, 5, 129])
def test_objects_described_by_their_information_arrive(loss: float, fec: int) -> None:
    assert received(transfer(randomly(loss, 5), fti="info", fec=fec, parity=4 if fec else 0)) == CONTENT


def test_only_the_information_describes_an_object_and_every_message_has_the_flag_for_it() -> None:
    sender = SenderHarness(fti="info")
    sender.submit(800)
    sender.run_until(0.05)
    (info,) = sender.messages_of(Info)
    assert (info.payload, info.fti is not None) == (b"", True)
    assert all(data.fti is None and data.flags & FLAG_INFO for data in sender.messages_of(Data))
    assert sender.times(Info)[0] < min(sender.times(Data))


@pytest.mark.parametrize("fec", [0, 2, 5, 129])
def test_lost_information_is_requested_before_the_content_and_not_the_whole_object(fec: int) -> None:
    asked: list[Nack] = []

    def drop(crossing: Crossing) -> bool:
        if isinstance(crossing.message, Nack):
            asked.append(crossing.message)
        return isinstance(crossing.message, Info) and crossing.number == 2

    assert received(transfer(drop, fti="info", fec=fec, parity=4 if fec else 0)) == CONTENT
    assert [request.level for request in asked[0].requests] == [LEVEL_INFO]
    assert [item.fec_id for item in asked[0].requests[0].items] == [fec]


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_objects_of_a_size_known_beforehand_need_no_description(loss: float) -> None:
    bench = transfer(randomly(loss, 7), (1500, 1500), fti="preset", preset_size=1500)
    assert received(bench) == {number: pattern(1500, seed=number) for number in (0, 1)}


def test_without_a_description_messages_are_as_much_shorter() -> None:
    sizes = {}
    for fti in ("always", "info", "preset"):
        sender = SenderHarness(fti=fti, preset_size=800 if fti == "preset" else 0)
        sender.submit(800)
        sender.run_until(0.05)
        sizes[fti] = {size for _, size, message in sender.sent if isinstance(message, Data)}
    assert sizes == {"always": {132}, "info": {120}, "preset": {120}}


def test_what_can_not_be_described_is_refused() -> None:
    with pytest.raises(ConfigError, match="preset_size: 0 is not allowed; the size of every object with fti preset"):
        quick(fti="preset")
    sender = SenderHarness(fti="preset", preset_size=800)
    with pytest.raises(UsageError, match=r"size: value 900 is not allowed; 800 with fti preset \(preset_size\)"):
        sender.submit(900)
    with pytest.raises(UsageError, match="a stream can't be sent with fti preset"):
        sender.host.call(sender.machine.open_stream, StreamSettings(4000))
