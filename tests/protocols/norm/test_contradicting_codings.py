"""Messages of one sender that contradict each other: other FEC schemes, short headers, no FLAG_STREAM in a stream."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.hostile import GROUP
from experiments.contract.fake_host import FakeHost
from experiments.running.content import Accounted
from protocols.errors import WireError
from protocols.machine import Message
from protocols.norm.config import NormConfig
from protocols.norm.host_receiver import NormHostReceiver
from protocols.norm.messages import ACK_FLUSH, FLAG_STREAM, Ack, Data, Flush, Fti, Info, Nack, Origin, RepairAdv, Squelch
from protocols.norm.requests import FORM_ITEMS, LEVEL_BLOCK, LEVEL_SEGMENT, Item, Request
from protocols.norm.stream_coding import HEADER
from protocols.norm.wire.codec import NormCodec
from tests.support.streams import Collected

ORIGIN = Origin(1, 1, 10, 4, 3)


def data(fti: Fti, object_id: int, block: int, symbol: int, sequence: int = 0, flags: int = 0, payload: bytes = b"") -> bytes:
    """Return a DATA as bytes, by a codec that has seen nothing else."""
    content = payload or bytes(fti.segment)
    message = Data(ORIGIN, sequence, flags, fti.fec_id, object_id, block, symbol, fti.block, fti, content, len(content))
    return NormCodec().encode(message)


def listening(**settings: Any) -> tuple[FakeHost, NormHostReceiver, NormCodec]:
    host = FakeHost("receiver")
    machine = NormHostReceiver(host, NormConfig(**settings), 2, GROUP)
    host.run(machine, accept=lambda offer: Accounted())
    return host, machine, NormCodec()


def deliver(host: FakeHost, codec: NormCodec, packet: bytes, now: float = 0.001) -> None:
    host.deliver(codec.decode(packet), ("10.0.0.1", 5), GROUP, now)


def test_a_header_too_short_for_its_fec_id_is_refused_whatever_was_read_before() -> None:
    codec = NormCodec()
    whole = bytes((0x12, 6, 0, 0)) + bytes((0, 0, 0, 1, 0, 1, 60, 0x43)) + bytes((0x10, 129, 0, 0)) + bytes(8)
    codec.decode(whole)
    short = whole[:1] + b"\x05" + whole[2:]
    for end in range(20, 25):
        with pytest.raises(WireError):
            codec.decode(short[:end])
    assert codec.decode_run(short + bytes(40) + short + bytes(40), 0, 64) is None


SMALL = Fti(5, 80, 8, 10, 0)
MANY_SYMBOLS = Fti(2, 48_000, 8, 3000, 0, 16)
MANY_BLOCKS = Fti(2, 200_000 * 8, 8, 1, 0, 8)


def nacks_for(first: Fti, second: Fti, lost: tuple[int, int]) -> tuple[list[Nack], NormCodec]:
    """Return the NACKs of a receiver that lost what is before (block, symbol) of an object, and then heard of another one."""
    host, machine, codec = listening()
    sent: list[Message] = []
    host.on_send = lambda packet, port: sent.append(packet.message)
    for sequence, packet in enumerate([data(first, 0, 0, 0), data(first, 0, *lost), data(second, 1, 0, 0)]):
        deliver(host, codec, packet[:2] + sequence.to_bytes(2) + packet[4:])
    host.wake(machine.deadline)
    nacks = [message for message in sent if isinstance(message, Nack)]
    assert nacks
    return nacks, codec


@pytest.mark.parametrize(
    ("first", "lost"),
    [(Fti(0, 48_000, 8, 3000, 0), (0, 2900)), (Fti(129, (1 << 28) * 8, 8, 1, 0), (1 << 27, 0))],
    ids=["0", "129"],
)
def test_what_an_object_lacks_is_requested_by_its_own_fec_scheme(first: Fti, lost: tuple[int, int]) -> None:
    nacks, codec = nacks_for(first, SMALL, lost)
    for nack in nacks:
        decoded = NormCodec().decode(codec.encode(nack))
        assert isinstance(decoded, Nack)
        named = [each[:4] for request in nack.requests for each in request.items]
        assert [each[:4] for request in decoded.requests for each in request.items] == named
        assert {each[0] for each in named if each[1] == 0} == {first.fec_id}


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [(MANY_SYMBOLS, replace(MANY_SYMBOLS, block=10, m=8), (0, 2900)), (MANY_BLOCKS, MANY_SYMBOLS, (100_000, 0))],
    ids=["m16-m8", "m8-m16"],
)
def test_nacks_for_objects_with_other_sizes_of_elements_are_encoded(first: Fti, second: Fti, lost: tuple[int, int]) -> None:
    nacks, codec = nacks_for(first, second, lost)
    for nack in nacks:
        assert codec.decode(codec.encode(nack)).kind == "nack"


@pytest.mark.parametrize("m", [8, 16])
def test_requests_name_what_an_object_lacks_although_forged_messages_have_another_size_of_elements(m: int) -> None:
    fti = Fti(2, 400 * 8, 8, 100, 0, m)
    host, machine, codec = listening()
    sent: list[Message] = []
    host.on_send = lambda packet, port: sent.append(packet.message)
    for place in ((0, 0), (0, 2), (2, 5)):
        deliver(host, codec, data(fti, 0, *place))
    # Of another host, in the name of the sender; the codec has read it before the receiver ignores it.
    host.deliver(codec.decode(data(replace(fti, m=24 - m), 0, 0, 0)), ("10.0.0.9", 5), GROUP, 0.001)
    host.wake(machine.deadline)
    sender = NormCodec()
    sender.encode(Data(ORIGIN, 0, 0, 2, 0, 0, 0, 100, fti, bytes(8), 8))
    nacks = [sender.decode(codec.encode(message)) for message in sent if isinstance(message, Nack)]
    named = {item[2:4] for nack in nacks if isinstance(nack, Nack) for each in nack.requests for item in each.items}
    assert named == {(0, 1), (0, 3), (0, 99), (1, 0), (2, 0), (2, 4)}


def test_forged_messages_change_nothing_in_what_a_sender_reads_and_writes() -> None:
    fti = Fti(2, 800_000, 8, 1, 0, 8)
    codec = NormCodec()
    codec.encode(Data(ORIGIN, 0, 0, 2, 0, 0, 0, 1, fti, bytes(8), 8))
    nack = Nack(7, 0, 1, 1, 0, 0, (Request(FORM_ITEMS, LEVEL_BLOCK, (Item(2, 0, 5, 0),)),))
    asking = NormCodec()
    asking.decode(data(fti, 0, 0, 0))
    packet = asking.encode(nack)
    codec.decode(data(Fti(2, 800, 8, 1, 0, 16), 0, 0, 0))
    for source in range(5000):
        codec.decode(NormCodec().encode(Data(Origin(100 + source, 1, 10, 4, 3), 0, 0, 2, 0, 0, 0, 1, fti, bytes(8), 8)))
    assert codec.decode(packet) == nack
    flush = codec.decode(codec.encode(Flush(ORIGIN, 0, 2, 0, 99_999, 0, 1)))
    assert isinstance(flush, Flush)
    assert flush.block == 99_999


def test_messages_without_the_stream_flag_change_nothing_in_a_stream() -> None:
    host, machine, codec = listening(buffer=1_000_000)
    sink = Collected()
    machine.accept_streams(lambda offer: sink)
    fti = Fti(5, 1 << 20, 1000, 10, 0)
    segment = HEADER.pack(1000, 1, 0) + bytes(1000)
    deliver(host, codec, data(fti, 0, 0, 0, 0, FLAG_STREAM, segment))
    for sequence in range(1, 300):
        deliver(host, codec, data(fti, 0, sequence // 10, sequence % 10, sequence, 0, segment))
    deliver(host, codec, NormCodec().encode(Info(ORIGIN, 300, 0, 5, 0, fti, b"information")))
    most, allowed = machine.held()["stream blocks"]
    assert most <= 1 < allowed
    assert machine.counts()["ignored"] == 300


def test_a_run_without_the_stream_flag_changes_nothing_in_a_stream() -> None:
    host, machine, codec = listening()
    sink = Collected()
    machine.accept_streams(lambda offer: sink)
    fti = Fti(2, 64, 4, 20, 0, 8)
    deliver(host, codec, data(fti, 0, 0, 0, 0, FLAG_STREAM, HEADER.pack(4, 1, 0) + b"abcd"))
    codec.decode(data(fti, 0, 0, 1, 1))
    packets = [data(fti, 0, 0, symbol, symbol) for symbol in (1, 2, 3)]
    run = codec.decode_run(b"".join(packets), 0, len(packets[0]))
    assert run is not None
    machine.receive_run(run, ("10.0.0.1", 5), GROUP, 0.002)
    deliver(host, codec, data(fti, 0, 0, 4, 4, FLAG_STREAM, HEADER.pack(4, 1, 16) + b"efgh"), 0.003)
    assert sink.data == b"abcd"
    assert machine.counts()["ignored"] == 3


def reader_of(*objects: tuple[Fti, int, int]) -> NormCodec:
    """Return a codec that has read one DATA of each object: its FTI, its id and the instance of its sender."""
    codec = NormCodec()
    for fti, object_id, instance in objects:
        origin = replace(ORIGIN, instance_id=instance)
        message = Data(origin, 0, 0, fti.fec_id, object_id, 0, 0, fti.block, fti, bytes(fti.segment), fti.segment)
        codec.decode(NormCodec().encode(message))
    return codec


def written_by(fti: Fti, message: Message) -> bytes:
    """Return a message as the sender of objects with this FTI writes it."""
    codec = NormCodec()
    codec.encode(Data(ORIGIN, 0, 0, fti.fec_id, 0, 0, 0, fti.block, fti, bytes(fti.segment), fti.segment))
    return codec.encode(message)


OLD, NEW = 1, 2
"""Instances of the sender."""
OTHER_OBJECT = reader_of((MANY_BLOCKS, 0, OLD), (MANY_SYMBOLS, 1, OLD))
RESTARTED = reader_of((MANY_SYMBOLS, 1, OLD), (MANY_BLOCKS, 0, NEW), (MANY_SYMBOLS, 0, OLD))
FORGED = reader_of((MANY_BLOCKS, 0, OLD), (MANY_SYMBOLS, 9, OLD), (MANY_SYMBOLS, 0, NEW))


@pytest.mark.parametrize(
    ("codec", "instance"),
    [(OTHER_OBJECT, OLD), (RESTARTED, NEW), (FORGED, OLD)],
    ids=["another object", "another instance", "both"],
)
def test_payload_ids_are_read_by_the_fti_of_their_object_whatever_other_objects_have(codec: NormCodec, instance: int) -> None:
    origin = replace(ORIGIN, instance_id=instance)
    point = Item(2, 0, 100_000, 7)
    flush, squelch = Flush(origin, 9, *point[:4]), Squelch(origin, 9, *point[:4])
    asked = (Request(FORM_ITEMS, LEVEL_BLOCK, (point,)),)
    nack = Nack(7, 0, ORIGIN.source_id, instance, 0, 0, asked)
    ack = Ack(7, 0, ORIGIN.source_id, instance, ACK_FLUSH, 0, 0, 0, flushed=point)
    for message in (flush, squelch, nack, ack, RepairAdv(origin, 9, 0, asked)):
        assert codec.decode(written_by(MANY_BLOCKS, message)) == message


def test_a_nack_may_name_objects_with_different_sizes_of_elements() -> None:
    codec = reader_of((MANY_BLOCKS, 0, OLD), (MANY_SYMBOLS, 1, OLD))
    requests = (
        Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(2, 0, 100_000, 7),), MANY_BLOCKS.m),
        Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(2, 1, 0, 2900),), MANY_SYMBOLS.m),
    )
    joined = NormCodec().encode(Nack(7, 0, ORIGIN.source_id, OLD, 0, 0, requests))
    decoded = codec.decode(joined)
    assert isinstance(decoded, Nack)
    assert [request.items for request in decoded.requests] == [request.items for request in requests]


def test_a_codec_keeps_few_sizes_of_elements_however_many_objects_differ() -> None:
    codec, encoder = NormCodec(), NormCodec()
    for fti in (MANY_BLOCKS, MANY_SYMBOLS):
        message = Data(ORIGIN, 0, 0, 2, 0, 0, 0, fti.block, fti, bytes(fti.segment), fti.segment)
        packet = encoder.encode(message)
        for number in range(10_000):
            codec.decode(packet[:14] + number.to_bytes(2) + packet[16:])
            codec.decode(packet[:8] + number.to_bytes(2) + packet[10:])
    schemes = codec._schemes
    assert max(len(schemes._m), len(schemes._others)) <= 4096
