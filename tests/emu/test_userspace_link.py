"""A link in user space does to frames what its `Line` does to packets, at the right time, and knows datagrams from the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.frames import Datagram, Reassembly
from protocols.machine import Codec
from protocols.norm.messages import FLAG_REPAIR, Data, Fti, Origin
from protocols.norm.wire.codec import NormCodec
from tests.emu.manual_link import ARP, KEY, ManualLink, frame_of, frames_of
from tests.emu.number_protocol import NumberCodec, NumberMessage
from topologies.channels import Bernoulli, Scripted
from topologies.line import Line
from topologies.queues import Codel
from topologies.spec import LinkAttributes, LinkSpec

ORIGIN, FTI = Origin(1, 1, 100, 4, 4), Fti(5, 640_000, 1000, 64, 16)


@contextmanager
def cable(
    codec: Codec | None = None, *, begun: bool = True, spec: LinkSpec | None = None, **attributes: Any
) -> Iterator[ManualLink]:
    """A link with attributes as a user writes them."""
    made = ManualLink(spec or LinkAttributes.model_validate(attributes).specs()[0], codec, begun=begun)
    yield made
    made.close()


def counted(number: int, size: int = 100) -> bytes:
    """A frame with a number."""
    return frame_of(NumberCodec().encode(NumberMessage(number, size)))


def symbol(number: int, flags: int = 0) -> Data:
    """A source symbol."""
    block, place = divmod(number, 64)
    return Data(ORIGIN, number, flags, 5, 1, block, place, 64, FTI, bytes(1000), 1000)


def content(number: int, flags: int = 0) -> bytes:
    """A frame with a source symbol."""
    return frame_of(NormCodec().encode(symbol(number, flags)))


def identity(number: int) -> int:
    """The name of a source symbol's content."""
    found = NormCodec().decode(NormCodec().encode(symbol(number))).identity
    assert found is not None
    return found


def test_a_packet_leaves_after_the_delay_and_not_before() -> None:
    with cable(delay="10ms") as link:
        link.send([counted(1)])
        link.wait(0.009)
        assert link.heard() == []
        link.wait(0.002)
        assert link.heard() == [counted(1)]
        assert link.forwarder.lateness.maximum == pytest.approx(0.0, abs=1e-9)


def test_what_is_released_late_is_noted() -> None:
    with cable(delay="10ms") as link:
        link.send([counted(1)])
        link.now += 0.015
        link.step()
        assert link.heard() == [counted(1)]
        assert link.forwarder.report()["lateness"]["max"] == pytest.approx(0.005)


def test_what_waited_in_the_device_is_noted() -> None:
    with cable() as link:
        for number in range(40):
            link.near.send(counted(number))
        since = link.now
        link.now += 0.25
        link.forwarder.step(link.forwarder.sources, since)
        # More than are read in one go, so the rest has waited since the same time, whatever the caller believes now.
        link.now += 0.5
        link.step()
        assert link.heard() == [counted(number) for number in range(40)]
        assert link.forwarder.report()["unread"] == pytest.approx(0.75)


def test_the_rate_of_a_link_spaces_packets_and_its_queue_drops_the_rest() -> None:
    with cable(rate="8kbit", queue=2, overhead=0) as link:
        link.send([counted(number) for number in range(5)])
        link.wait(0.05)
        assert link.heard() == []
        link.wait(0.1)
        assert link.heard() == [counted(0)]
        link.wait(0.2)
        assert link.heard() == [counted(1), counted(2)]
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["dropped"], direction["lost"]) == (5, 2, 0)


def test_before_it_begins_everything_passes_at_once_and_is_not_counted() -> None:
    with cable(begun=False, delay="1s", loss="100%") as link:
        link.send([counted(1), ARP])
        assert link.heard() == [counted(1), ARP]
        assert link.forwarder.report()["directions"][0]["offered"] == 0


def test_the_same_content_is_lost_as_on_the_simulators_line() -> None:
    spec = LinkAttributes.model_validate({"loss": "20%"}).specs()[0]
    codec, line = NormCodec(), Line(spec, KEY)
    sent = [*range(300), *range(0, 300, 3), 7, 7]
    expected = [number for number in sent if line.offer(number, 1000, identity(number), "data", 0.0)]
    assert 0 < len(expected) < len(sent)
    with cable(codec, loss="20%") as link:
        link.send([content(number) for number in sent])
        assert link.heard() == [content(number) for number in expected]


def test_content_lost_at_first_is_named_and_repairs_are_not() -> None:
    with cable(NormCodec(), loss={"model": "scripted", "drops": [{"number": [2, 4]}]}) as link:
        link.send([content(1), content(2), content(3, FLAG_REPAIR), counted(9), content(5)])
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["lost"], direction["first_lost"], direction["first_queued"]) == (3, [identity(2)], [])
        assert link.heard() == [content(1), content(5)]


def test_content_that_the_queue_dropped_is_named_apart() -> None:
    with cable(NormCodec(), rate="8Mbit", queue=1) as link:
        link.send([content(number) for number in range(4)])
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["first_lost"], sorted(direction["first_queued"])) == ([], [identity(2), identity(3)])


def test_a_script_knows_the_kinds_of_messages() -> None:
    drops = [{"kind": "counted", "number": 2}]
    with cable(loss={"model": "scripted", "drops": drops}) as link:
        link.send([counted(1), frame_of(b"of another protocol"), counted(2), counted(3)])
        assert link.heard() == [counted(1), frame_of(b"of another protocol"), counted(3)]


def test_udp_that_the_codec_does_not_know_is_lost_as_control_packets_are() -> None:
    spec = LinkAttributes.model_validate({"loss": "50%"}).specs()[0]
    line = Line(spec, KEY)
    frames = [frame_of(b"strange %d" % number) for number in range(100)]
    expected = [frame for frame in frames if line.offer(frame, 10, None, "other", 0.0)]
    with cable(loss="50%") as link:
        link.send(frames)
        assert link.heard() == expected


def test_what_is_no_udp_is_delayed_and_never_lost_or_counted() -> None:
    with cable(loss="100%", delay="10ms") as link:
        link.send([ARP, counted(1)])
        assert link.heard() == []
        link.wait(0.02)
        assert link.heard() == [ARP]
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["lost"]) == (1, 1)


def test_packets_may_come_twice_or_damaged() -> None:
    with cable(duplicate="100%") as link:
        link.send([counted(1)])
        assert link.heard() == [counted(1)] * 2
    with cable(NormCodec(), corrupt="100%") as link:
        link.send([content(1)])
        assert link.heard() == []
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["corrupt"], direction["first_lost"]) == (1, [identity(1)])


def test_a_queue_that_decides_late_is_woken() -> None:
    spec = LinkSpec(rate=1000.0, overhead=0, discipline=Codel())
    with cable(spec=spec) as link:
        link.send([counted(number) for number in range(3)])
        link.wait(0.25)
        assert link.heard() == [counted(0), counted(1)]
        link.wait(0.1)
        assert link.heard() == [counted(2)]


def test_a_datagram_in_fragments_is_lost_or_delivered_as_one() -> None:
    long, short = (NumberCodec().encode(NumberMessage(number, 4000)) for number in (1, 2))
    first, second = frames_of(long, 1500, number=1), frames_of(short, 1500, number=2)
    assert len(first) == len(second) == 3
    with cable(spec=LinkSpec(loss=Scripted.model_validate({"drops": [{"number": 1}]}))) as link:
        # Mixed up, as they may come after a link where packets overtake one another.
        link.send([first[0], second[0], first[2], second[1], first[1]])
        assert link.heard() == []
        link.send([second[2]])
        assert link.heard() == second
        (direction,) = link.forwarder.report()["directions"]
        assert (direction["offered"], direction["lost"]) == (2, 1)


def test_fragments_whose_others_never_come_are_forgotten() -> None:
    reassembly = Reassembly()
    for number in range(1000):
        assert reassembly.take(frames_of(bytes(2000), 1500, number)[0]) == ()
    # The last are still known, and the first are not.
    assert isinstance(reassembly.take(frames_of(bytes(2000), 1500, 999)[1]), Datagram)
    assert reassembly.take(frames_of(bytes(2000), 1500, 1)[1]) == ()


def test_a_vlan_tag_hides_nothing() -> None:
    payload = NumberCodec().encode(NumberMessage(3, 50))
    assert Reassembly().take(frame_of(payload, vlan=5)) == Datagram(payload, frame_of(payload, vlan=5))


def test_padding_is_no_part_of_a_datagram() -> None:
    frame = frame_of(b"n") + bytes(17)
    assert Reassembly().take(frame) == Datagram(b"n", frame)


@given(st.binary(max_size=80), st.sampled_from([b"", b"\x08\x00", b"\x81\x00\x00\x05\x08\x00"]))
def test_any_frame_is_a_datagram_or_passes_or_waits_for_others(data: bytes, kind: bytes) -> None:
    frame = bytes(12) + kind + data
    found = Reassembly().take(frame)
    assert found in ((), (frame,)) or (isinstance(found, Datagram) and found.frames == frame)


def test_a_far_end_that_is_gone_is_counted_and_a_near_one_forgotten() -> None:
    with cable() as link:
        link.far.close()
        link.send([counted(1)])
        assert link.forwarder.refused == 1
        source = link.forwarder.sources
        link.near.close()
        for sock in link.held:
            sock.close()
        link.forwarder.step(source, link.now)
        assert link.forwarder.sources == []


def test_losses_below_a_percent_are_not_rounded() -> None:
    spec = LinkSpec(loss=Bernoulli(p=0.001))
    line = Line(spec, KEY)
    lost = sum(not line.offer(number, 100, number, "data", 0.0) for number in range(100_000))
    # 100 expected, standard error 10.
    assert abs(lost - 100) < 40
