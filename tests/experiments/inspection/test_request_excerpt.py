"""The part of a capture that a sequence diagram shows."""

from pathlib import Path

from experiments.drawing.ladder_excerpt import FoldedPackets
from experiments.inspection.request_excerpt import CAPTURE, node_name
from protocols.norm.messages import Data
from tests.experiments.inspection.scenes import FTI, ORIGIN, Scene
from tests.support.capture_writer import datagram, frame
from topologies.pcapng import PcapngWriter


def test_the_excerpt_goes_from_before_the_first_request_to_after_its_repair(tmp_path: Path) -> None:
    scene = Scene()
    for object_id in range(10):
        scene.whole(object_id)
    scene.nack(3, (9, 0, 1))
    scene.nack(2, (9, 0, 2))
    scene.data(0, 1, object_id=9)
    scene.data(0, 2, object_id=9)
    for _ in range(50):
        scene.flush(9)
    excerpt = scene.inspect(tmp_path).excerpt
    kinds = [sent.kind for sent in excerpt.lines]
    assert kinds == ["data"] * 8 + ["nack", "nack", "data", "data"] + ["flush"] * 8
    assert [sent.repair for sent in excerpt.lines].count(True) == 2
    cut = excerpt.cut()
    assert cut is not None
    assert cut.hosts == ("1", CAPTURE, "2", "3")
    assert [type(item).__name__ for item in cut.shown].count("FoldedPackets") == 2
    assert all(CAPTURE in sent.received for sent in excerpt.lines)


def test_without_requests_the_excerpt_is_the_start(tmp_path: Path) -> None:
    scene = Scene()
    for object_id in range(40):
        scene.whole(object_id)
    excerpt = scene.inspect(tmp_path).excerpt
    cut = excerpt.cut()
    assert cut is not None
    assert (len(excerpt.lines), cut.hosts) == (120, ("1", CAPTURE))
    assert any(isinstance(item, FoldedPackets) for item in cut.shown)


def test_packets_marked_lost_by_a_comment_are_missing_from_the_session(tmp_path: Path) -> None:
    scene = Scene()
    scene.send(Data(ORIGIN, 0, 0, 5, 0, 0, 0, 0, FTI, bytes(500), 500))
    scene.send(Data(ORIGIN, 1, 0, 5, 0, 0, 1, 0, FTI, bytes(500), 500))
    with (tmp_path / "a.pcapng").open("wb") as file:
        writer = PcapngWriter(file)
        link = writer.interface("link")
        for sent, comment in zip(scene.sent, ("", "repair; lost by the link"), strict=True):
            writer.packet(link, sent.time, frame(datagram(sent)), comment=comment)
    from experiments.inspection.inspection import inspect_capture

    first, second = inspect_capture(tmp_path / "a.pcapng").excerpt.lines
    assert (list(first.received), first.missed) == ([CAPTURE], [])
    assert (second.received, [each.reason for each in second.missed]) == ({}, ["lost by the link"])


def test_large_node_ids_are_shown_as_addresses() -> None:
    assert [node_name(node) for node in (7, 0x0A4D0001)] == ["7", "10.77.0.1"]
