"""A user-space link does to frames what its `Line` does to packets, at the right time, and passes other frames on."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from protocols.machine import Codec
from protocols.norm.messages import FLAG_REPAIR, Data, Fti, Origin
from protocols.norm.wire.codec import NormCodec
from tests.emu.manual_link import ARP, KEY, MACS, ManualLink, frame_of, frames_of
from tests.emu.number_protocol import NumberCodec, NumberMessage
from topologies.channels import Bernoulli, Scripted
from topologies.line import Line
from topologies.queues import Codel, Priority
from topologies.spec import LinkAttributes, LinkSpec

ORIGIN, FTI = Origin(1, 1, 100, 4, 4), Fti(5, 640_000, 1000, 64, 16)


@contextmanager
def user_link(
    codec: Codec | None = None, *, begun: bool = True, spec: LinkSpec | None = None, **attributes: Any
) -> Iterator[ManualLink]:
    """Make a link; attributes are as in a scenario."""
    made = ManualLink(spec or LinkAttributes.model_validate(attributes).specs()[0], codec, begun=begun)
    yield made
    made.close()


def number_frame(number: int, size: int = 100) -> bytes:
    """Return a frame with a number."""
    return frame_of(NumberCodec().encode(NumberMessage(number, size)))


def symbol(number: int, flags: int = 0) -> Data:
    """Return a source symbol."""
    block, index = divmod(number, 64)
    return Data(ORIGIN, number, flags, 5, 1, block, index, 64, FTI, bytes(1000), 1000)


def symbol_frame(number: int, flags: int = 0) -> bytes:
    """Return a frame with a source symbol."""
    return frame_of(NormCodec().encode(symbol(number, flags)))


def identity(number: int) -> int:
    """Return the identity of a source symbol."""
    found = NormCodec().decode(NormCodec().encode(symbol(number))).identity
    assert found is not None
    return found


def test_a_packet_is_forwarded_after_the_delay_and_not_before() -> None:
    with user_link(delay="10ms") as link:
        link.send([number_frame(1)])
        link.advance(0.009)
        assert link.received() == []
        link.advance(0.002)
        assert link.received() == [number_frame(1)]
        assert link.forwarder.lateness.maximum == pytest.approx(0.0, abs=1e-9)


def test_late_releases_are_recorded() -> None:
    with user_link(delay="10ms") as link:
        link.send([number_frame(1)])
        link.now += 0.015
        link.step()
        assert link.received() == [number_frame(1)]
        assert link.forwarder.report()["lateness"]["max"] == pytest.approx(0.005)


def test_the_time_frames_wait_in_the_device_is_recorded() -> None:
    with user_link() as link:
        for number in range(40):
            link.near.send(number_frame(number))
        since = link.now
        link.now += 0.25
        link.forwarder.step(link.forwarder.sources, since)
        # More than one batch, so the rest has waited since the same time, whatever the caller passes now.
        link.now += 0.5
        link.step()
        assert link.received() == [number_frame(number) for number in range(40)]
        assert link.forwarder.report()["unread"] == pytest.approx(0.75)


def test_the_rate_of_a_link_spaces_packets_and_its_queue_drops_the_rest() -> None:
    with user_link(rate="8kbit", queue=2, overhead=0) as link:
        link.send([number_frame(number) for number in range(5)])
        link.advance(0.05)
        assert link.received() == []
        link.advance(0.1)
        assert link.received() == [number_frame(0)]
        link.advance(0.2)
        assert link.received() == [number_frame(1), number_frame(2)]
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["dropped"], direction["lost"]) == (5, 2, 0)


def test_before_begin_every_frame_is_forwarded_at_once_and_not_counted() -> None:
    with user_link(begun=False, delay="1s", loss="100%") as link:
        link.send([number_frame(1), ARP])
        assert link.received() == [number_frame(1), ARP]
        assert link.forwarder.report()["directions"][0]["offered"] == 0


def test_the_same_content_is_lost_as_on_the_simulators_line() -> None:
    spec = LinkAttributes.model_validate({"loss": "20%"}).specs()[0]
    codec, line = NormCodec(), Line(spec, KEY)
    sent = [*range(300), *range(0, 300, 3), 7, 7]
    expected = [number for number in sent if line.offer(number, 1000, identity(number), "data", 0.0)]
    assert 0 < len(expected) < len(sent)
    with user_link(codec, loss="20%") as link:
        link.send([symbol_frame(number) for number in sent])
        assert link.received() == [symbol_frame(number) for number in expected]


def test_lost_first_transmissions_are_identified_and_repairs_are_not() -> None:
    with user_link(NormCodec(), loss={"model": "scripted", "drops": [{"number": [2, 4]}]}) as link:
        link.send([symbol_frame(1), symbol_frame(2), symbol_frame(3, FLAG_REPAIR), number_frame(9), symbol_frame(5)])
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["lost"], direction["first_lost"], direction["first_queued"]) == (3, [identity(2)], [])
        assert link.received() == [symbol_frame(1), symbol_frame(5)]


def test_first_transmissions_dropped_by_the_queue_are_identified_separately() -> None:
    with user_link(NormCodec(), rate="8Mbit", queue=1) as link:
        link.send([symbol_frame(number) for number in range(4)])
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["first_lost"], sorted(direction["first_queued"])) == ([], [identity(2), identity(3)])


def test_a_scripted_channel_matches_kinds_of_messages() -> None:
    drops = [{"kind": "counted", "number": 2}]
    with user_link(loss={"model": "scripted", "drops": drops}) as link:
        link.send([number_frame(1), frame_of(b"of another protocol"), number_frame(2), number_frame(3)])
        assert link.received() == [number_frame(1), frame_of(b"of another protocol"), number_frame(3)]


@pytest.mark.parametrize("size", [900, 3000])
def test_queues_mark_what_the_simulators_line_marks_if_it_is_ecn_capable(size: int) -> None:
    red = {"model": "red", "packets": 200, "least": 2, "most": 50, "weight": 1, "p": 0.5, "ecn": True}
    spec = LinkAttributes.model_validate({"rate": "8Mbit", "queue": red}).specs()[0]
    line, codec = Line(spec, KEY), NumberCodec()
    line.mark = lambda number: -number
    payloads = {number: codec.encode(NumberMessage(number, size)) for number in range(1, 40)}
    arrivals = [at for number in payloads for at in line.offer(number, size, None, "counted", 100.0)]
    marks = [item < 0 for item, _ in sorted(arrivals, key=lambda each: each[1])]
    assert 3 < sum(marks) < 36
    for tos, expected in ((2, marks), (0, [False] * len(marks))):
        with user_link(spec=spec) as link:
            for number, payload in payloads.items():
                link.send([with_class(frame, tos) for frame in frames_of(payload, 1500, number)])
            link.advance(1.0)
            found = link.received()
            assert [frame[15] == 3 for frame in found if frame[21] == 0] == expected
            assert {frame[15] for frame in found} <= {tos, 3}
            (direction,) = link.forwarder.report()["directions"]
        assert direction["marked"] == line.marked == sum(marks)


def with_class(frame: bytes, tos: int) -> bytes:
    """Return a frame with another traffic class."""
    return frame[:15] + bytes([tos]) + frame[16:]


def segment_frame(number: int, data: int = 100) -> bytes:
    """Return a TCP segment."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 52 + data, 0, 0x4000, 64, 6, 0) + bytes((10, 0, 0, 1, 10, 0, 0, 2))
    return MACS + b"\x08\x00" + head + struct.pack("!HHIIBBHHH", 1, 2, number, 0, 128, 16, 100, 0, 0) + bytes(12 + data)


def test_segments_share_the_rate_and_the_queue_with_datagrams() -> None:
    with user_link(rate="8kbit", queue=2) as link:
        link.send([segment_frame(1, 100), number_frame(2, 124), segment_frame(3, 0), segment_frame(4)])
        # 166 bytes each but the third: 14 + 20 + 32 + 100, and 42 + 124.
        link.advance(0.170)
        assert link.received() == [segment_frame(1, 100)]
        link.advance(0.166)
        assert link.received() == [number_frame(2, 124)]
        link.advance(0.066)
        assert link.received() == [segment_frame(3, 0)]
        link.advance(1.0)
        assert link.received() == []
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["dropped"]) == (4, 1)


def test_segments_are_lost_and_change_no_loss_of_datagrams() -> None:
    strange = [frame_of(b"strange %d" % number) for number in range(200)]
    with user_link(loss="30%") as alone:
        alone.send(strange)
        expected = alone.received()
    with user_link(loss="30%") as mixed:
        for number, frame in enumerate(strange):
            mixed.send([segment_frame(number), frame])
        found = mixed.received()
        (direction,) = mixed.forwarder.report()["directions"]
    assert [frame for frame in found if frame in strange] == expected
    # The standard error is 6.5.
    assert len(found) - len(expected) == pytest.approx(140, abs=4 * 6.5)
    assert (direction["first_lost"], direction["first_queued"]) == ([], [])


def test_losses_in_bursts_hit_segments_in_the_order_of_their_arrival() -> None:
    with user_link(loss={"model": "gilbert-elliott", "burst": 10, "gap": 30}) as link:
        link.send([segment_frame(number) for number in range(400)])
        found = link.received()
    gaps = sum(a != b for a, b in pairwise([segment_frame(number) in found for number in range(400)]))
    # About 20 changes between lost and not lost; without memory there were 150.
    assert 4 <= gaps <= 50


def test_udp_the_codec_can_not_decode_is_lost_like_control_packets() -> None:
    spec = LinkAttributes.model_validate({"loss": "50%"}).specs()[0]
    line = Line(spec, KEY)
    frames = [frame_of(b"strange %d" % number) for number in range(100)]
    expected = [frame for frame in frames if line.offer(frame, 10, None, "other", 0.0)]
    with user_link(loss="50%") as link:
        link.send(frames)
        assert link.received() == expected


def test_frames_without_udp_are_delayed_and_never_lost_or_counted() -> None:
    with user_link(loss="100%", delay="10ms") as link:
        link.send([ARP, number_frame(1)])
        assert link.received() == []
        link.advance(0.02)
        assert link.received() == [ARP]
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["lost"]) == (1, 1)


def test_packets_can_be_duplicated_or_corrupted() -> None:
    with user_link(duplicate="100%") as link:
        link.send([number_frame(1)])
        assert link.received() == [number_frame(1)] * 2
    with user_link(NormCodec(), corrupt="100%") as link:
        link.send([symbol_frame(1)])
        assert link.received() == []
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["corrupt"], direction["first_lost"]) == (1, [identity(1)])


def test_a_queue_discipline_that_drops_at_dequeue_is_woken() -> None:
    spec = LinkSpec(rate=1000.0, overhead=0, discipline=Codel())
    with user_link(spec=spec) as link:
        link.send([number_frame(number) for number in range(3)])
        link.advance(0.25)
        assert link.received() == [number_frame(0), number_frame(1)]
        link.advance(0.1)
        assert link.received() == [number_frame(2)]


def test_a_queue_of_priorities_sends_what_its_header_marks_first() -> None:
    def of_class(number: int, dscp: int) -> bytes:
        frame = bytearray(number_frame(number))
        frame[15] = dscp << 2
        return bytes(frame)

    with user_link(spec=LinkSpec(rate=1000.0, overhead=0, discipline=Priority(packets=10))) as link:
        frames = [of_class(number, dscp) for number, dscp in enumerate((0, 8, 0, 46, 40, 46))]
        link.send(frames)
        link.advance(1.0)
        assert link.received() == [frames[number] for number in (0, 3, 5, 4, 2, 1)]


def test_a_datagram_in_fragments_is_lost_or_delivered_as_one() -> None:
    long, short = (NumberCodec().encode(NumberMessage(number, 4000)) for number in (1, 2))
    first, second = frames_of(long, 1500, number=1), frames_of(short, 1500, number=2)
    assert len(first) == len(second) == 3
    with user_link(spec=LinkSpec(loss=Scripted.model_validate({"drops": [{"number": 1}]}))) as link:
        # Reordered, as after a link with jitter.
        link.send([first[0], second[0], first[2], second[1], first[1]])
        assert link.received() == []
        link.send([second[2]])
        assert link.received() == second
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["lost"]) == (2, 1)


def test_refused_frames_are_counted_and_a_closed_source_is_removed() -> None:
    with user_link() as link:
        link.far.close()
        link.send([number_frame(1)])
        assert link.forwarder.refused == 1
        source = link.forwarder.sources
        link.near.close()
        for sock in link.descriptors:
            sock.close()
        link.forwarder.step(source, link.now)
        assert link.forwarder.sources == []


def test_losses_below_a_percent_are_not_rounded() -> None:
    spec = LinkSpec(loss=Bernoulli(p=0.001))
    line = Line(spec, KEY)
    lost = sum(not line.offer(number, 100, number, "data", 0.0) for number in range(100_000))
    # 100 expected, standard error 10.
    assert abs(lost - 100) < 40
