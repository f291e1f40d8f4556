"""Recognition of NORM datagrams, and removal of copies of one packet."""

from pathlib import Path

import pytest

from experiments.captures.datagrams import Capture
from experiments.inspection.inspection import inspect_capture
from experiments.inspection.norm_reader import NormReader
from experiments.inspection.packet import packet_of
from protocols.errors import ConfigError
from protocols.norm.messages import Data, Flush, Fti, Nack, NormMessage
from tests.experiments.inspection.scenes import ORIGIN, Scene, items
from tests.support.capture_writer import COOKED, COOKED2, datagram, frame, write_pcap, write_pcapng


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.whole()
    return scene


def test_other_traffic_is_skipped_without_a_given_port(scene: Scene, tmp_path: Path) -> None:
    scene.raw(b"\x00\x01query", node=5, port=53)
    # This payload decodes as NORM by chance, once.
    scene.raw(b"\x12\x05" + bytes(30), node=5, port=5353)
    for _ in range(3):
        scene.raw(b"\x80whatever", node=5, port=5353)
    found = scene.inspect(tmp_path).plain()
    assert (found["messages"], found["other_datagrams"], found["violations"]) == (8, 5, [])


def test_with_a_given_port_everything_sent_to_it_must_be_norm(scene: Scene, tmp_path: Path) -> None:
    scene.raw(b"\x00\x01query", node=5, port=7000)
    scene.raw(b"hello")
    path = scene.write(tmp_path)
    found = inspect_capture(path, 6003).plain()
    assert (found["messages"], found["other_datagrams"], found["violations"][0]["rule"]) == (8, 1, "malformed")
    with pytest.raises(ConfigError, match=r"holds no NORM messages to port 9 among 10 UDP datagrams to ports 6003, 7000"):
        inspect_capture(path, 9)


def test_feedback_to_the_senders_unicast_port_belongs_to_the_session(scene: Scene, tmp_path: Path) -> None:
    scene.send(Nack(2, 0, 1, 7, 0, 0, items((0, 0, 1))), 2, target=(10, 0, 0, 1), port=40_000)
    for port in (None, 6003):
        assert inspect_capture(scene.write(tmp_path), port).plain()["receivers"][0]["nacks"] == 1


def test_a_capture_without_norm_is_a_one_line_error(tmp_path: Path) -> None:
    scene = Scene()
    scene.raw(b"\x00\x01query", port=53)
    with pytest.raises(ConfigError, match="no NORM messages among 1 UDP datagrams to ports 53"):
        scene.inspect(tmp_path)
    with pytest.raises(ConfigError, match="no NORM messages among 0 UDP datagrams"):
        Scene().inspect(tmp_path)


def test_a_packet_captured_at_several_interfaces_counts_once(scene: Scene, tmp_path: Path) -> None:
    frames = [(each.time + 1e-5 * place, frame(datagram(each)), place) for each in scene.sent for place in (0, 1, 2)]
    found = inspect_capture(write_pcapng(tmp_path / "a.pcapng", frames, [1, 1, 1])).plain()
    assert (found["messages"], found["copies"], found["notices"]) == (8, 16, [])


def test_an_offload_batch_that_is_segmented_at_the_next_interface_counts_once(tmp_path: Path) -> None:
    scene = Scene()
    scene.whole()
    single = [(each.time, frame(datagram(each)), 1) for each in scene.sent]
    scene.raw(b"".join(each.payload for each in scene.sent))
    batch = [(0.0, frame(datagram(scene.sent[-1])), 0)]
    found = inspect_capture(write_pcapng(tmp_path / "a.pcapng", batch + single, [1, 1])).plain()
    assert (found["messages"], found["batches"], found["copies"], found["notices"]) == (8, 1, 8, [])


@pytest.mark.parametrize("link", [COOKED, COOKED2])
def test_a_packet_captured_outgoing_and_incoming_counts_once(scene: Scene, tmp_path: Path, link: int) -> None:
    frames = [(each.time, frame(datagram(each), link, way=way)) for each in scene.sent for way in (4, 2)]
    found = inspect_capture(write_pcap(tmp_path / "a.pcap", frames, link)).plain()
    assert (found["messages"], found["copies"], found["notices"]) == (8, 8, [])


def test_a_packet_captured_twice_at_one_interface_is_a_duplicate(scene: Scene, tmp_path: Path) -> None:
    scene.sent.append(scene.sent[-1])
    found = scene.inspect(tmp_path).plain()
    assert (found["copies"], [row["rule"] for row in found["notices"]]) == (0, ["duplicate"])


def test_unsegmented_offload_batches_are_split(tmp_path: Path) -> None:
    scene, fti = Scene(), Fti(5, 3200, 500, 8, 0)
    contents = [bytes([symbol]) * 500 for symbol in range(6)] + [b"6" * 200]
    scene.sequence = 0xFFFE
    parts: list[NormMessage] = [
        Data(ORIGIN, scene.next(), 0, 5, 0, 0, symbol, 0, fti, content, len(content)) for symbol, content in enumerate(contents)
    ]
    parts.append(Flush(ORIGIN, scene.next(), 5, 0, 0, 6))
    encoded = [scene.codec.encode(part) for part in parts]
    scene.raw(b"".join(encoded[:4]))
    scene.raw(b"".join(encoded[4:6]))
    scene.raw(b"".join(encoded[6:]))
    nacks = [scene.codec.encode(Nack(2, 0, 1, 7, 0, 0, items((0, 0, symbol)))) for symbol in (1, 2)]
    scene.raw(b"".join(nacks), node=2)
    path = scene.write(tmp_path)
    found = inspect_capture(path).plain()
    assert (found["frames"], found["messages"], found["batches"]) == (4, 10, 4)
    assert found["senders"][0]["objects"][0]["complete"] is True
    assert found["receivers"][0]["nacks"] == 2
    assert (found["violations"], found["notices"]) == ([], [])
    assert [layer["layer"] for layer in packet_of(path, 3)["layers"][3:]] == ["NORM_DATA", "payload", "NORM_CMD(FLUSH)"]


def test_a_message_that_resembles_a_batch_is_not_split(tmp_path: Path) -> None:
    scene, fti = Scene(), Fti(5, 4000, 500, 4, 2)
    inner = scene.codec.encode(Data(ORIGIN, 1, 0, 5, 0, 0, 1, 0, fti, bytes(300), 300))
    content = bytes(100) + inner + bytes(500 - 100 - len(inner))
    scene.data(0, 0, content=content)
    found = scene.inspect(tmp_path).plain()
    assert (found["messages"], found["batches"], found["violations"]) == (1, 0, [])


def test_truncation_by_the_capture_is_no_violation(scene: Scene, tmp_path: Path) -> None:
    scene.nack(2, (0, 0, 1), (0, 0, 2), (0, 1, 1))
    scene.data(0, 1)
    frames = [(each.time, frame(datagram(each))) for each in scene.sent]
    found = inspect_capture(write_pcap(tmp_path / "a.pcap", frames, snap=80)).plain()
    assert (found["cut"], found["unreadable"], found["violations"]) == (10, 1, [])
    assert found["senders"][0]["objects"][0]["sources"] == 8
    assert found["bytes"] == sum(len(each.payload) for each in scene.sent if each.payload[0] & 15 != 4)


def test_a_truncated_file_is_read_up_to_its_last_complete_packet(scene: Scene, tmp_path: Path) -> None:
    path = scene.write(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    found = inspect_capture(path).plain()
    assert (found["messages"], found["flaw"]) == (7, "the file ends inside packet 8")


def test_reading_is_repeatable(scene: Scene, tmp_path: Path) -> None:
    reading = NormReader(Capture(scene.write(tmp_path)))
    assert [each.datagram.number for each in reading] == [each.datagram.number for each in reading] == list(range(1, 9))
