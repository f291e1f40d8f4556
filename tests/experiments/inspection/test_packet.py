"""A single packet is shown field by field."""

from pathlib import Path
from struct import pack

import pytest

from experiments.inspection.packet import packet_lines, packet_of
from protocols.errors import UsageError
from tests.experiments.inspection.scenes import Scene
from tests.support.capture_writer import COOKED, COOKED2, ETHERNET, NULL, RAW, Sent, datagram, frame, write_pcap
from tests.support.captures import VECTORS


def names(found: dict[str, object]) -> list[str]:
    """Return the names of the layers."""
    layers = found["layers"]
    assert isinstance(layers, list)
    return [layer["layer"] for layer in layers]


def test_every_layer_and_field_of_a_nack_is_shown() -> None:
    found = packet_of(VECTORS / "file_loss5.pcap", 124)
    assert names(found) == ["Ethernet", "IP", "UDP", "NORM_NACK"]
    assert (found["codec"], found["length"], found["captured"]) == ("agrees", 118, 118)
    fields = {field["name"]: field for field in found["layers"][3]["fields"]}
    assert (fields["source_id"]["value"], fields["sender_id"]["value"]) == (2, 1)
    assert fields["type"]["shown"] == "NACK"
    items = fields["repair_requests"]["parts"][0]["fields"][3]["parts"]
    assert [[field["value"] for field in item["fields"]][-1] for item in items] == [59, 61]
    text = "\n".join(packet_lines(found))
    assert "grtt_response_usec     604432" in text
    assert "01 00 5e 07 07 07" in text
    assert bytes.fromhex(found["hex"])[:6].hex(" ") == "01 00 5e 07 07 07"


def test_content_is_named_and_not_printed() -> None:
    lines = list(packet_lines(packet_of(VECTORS / "stream_bytes_loss.pcap", 5)))
    assert "NORM stream segment" in lines
    assert "  bytes                  600 bytes" in lines


def test_m_of_fec_id_2_is_taken_from_earlier_packets() -> None:
    found = packet_of(VECTORS / "fec2_m8_loss.pcap", 62)
    fields = {field["name"]: field.get("value") for field in found["layers"][-1]["fields"]}
    assert (names(found)[-1], found["codec"]) == ("NORM_CMD(FLUSH)", "agrees")
    assert (fields["source_block_number"], fields["encoding_symbol_id"]) == (2, 0x13)


@pytest.mark.parametrize("link", [ETHERNET, RAW, NULL, COOKED, COOKED2])
def test_every_link_layer_is_decoded(tmp_path: Path, link: int) -> None:
    scene = Scene()
    scene.data(0, 0)
    path = write_pcap(tmp_path / "a.pcap", [(0.0, frame(datagram(scene.sent[0]), link))], link)
    assert names(packet_of(path, 1))[-4:] == ["IP", "UDP", "NORM_DATA", "payload"]


def test_other_packets_are_shown_as_far_as_they_can_be_decoded(tmp_path: Path) -> None:
    frames = [frame(datagram(Sent(b"hello"))), frame(b"\x00" * 28, kind=0x0806), b"\x01\x02", b"", b"\x12" * 40]
    path = write_pcap(tmp_path / "a.pcap", [(0.0, each) for each in frames])
    first, *others = (packet_of(path, number) for number in range(1, 6))
    assert (names(first), first["codec"]) == (["Ethernet", "IP", "UDP"], "does not look like NORM")
    assert packet_of(path, 1, 6003)["codec"] == "5 bytes; a NORM header has at least 8"
    for other in others:
        assert other["codec"] == "no UDP datagram ends here"
        assert list(packet_lines(other))


def test_the_last_fragment_shows_the_whole_message(tmp_path: Path) -> None:
    scene = Scene()
    scene.data(0, 0)
    whole = datagram(scene.sent[0])[20:]
    parts = [(0x2000, whole[:256]), (32, whole[256:])]
    path = write_pcap(tmp_path / "a.pcap", [(0.0, frame(datagram(scene.sent[0], *part))) for part in parts])
    assert "NORM_DATA" not in names(packet_of(path, 1))
    assert "NORM_DATA" in names(packet_of(path, 2))


def test_a_packet_number_out_of_range_is_a_one_line_error(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", [(0.0, frame(datagram(Sent(b"x"))))])
    for number in (0, 2):
        with pytest.raises(UsageError, match=f"--packet: value {number} is not allowed; .* has packets 1 to 1"):
            packet_of(path, number)


def test_a_comment_of_the_capture_is_shown(tmp_path: Path) -> None:
    data = frame(datagram(Sent(b"x")))
    body = pack("<IIIII", 0, 0, 0, len(data), len(data)) + data + bytes(-len(data) % 4) + pack("<HH4sI", 1, 4, b"lost", 0)
    section = pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28) + pack("<IIHHII", 1, 20, 1, 0, 0, 20)
    block = pack("<II", 6, len(body) + 12) + body + pack("<I", len(body) + 12)
    (tmp_path / "a.pcapng").write_bytes(section + block)
    assert next(packet_lines(packet_of(tmp_path / "a.pcapng", 1))).endswith("s, lost")
