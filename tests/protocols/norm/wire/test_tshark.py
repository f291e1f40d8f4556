"""Messages of our codec decoded by an independent dissector: tshark, for fec_id 129, which it supports correctly."""

import struct
import subprocess
from pathlib import Path

import pytest

from protocols.norm.messages import (
    FLAG_FILE,
    FLAG_INFO,
    Ack,
    CcFeedback,
    Data,
    Flush,
    Fti,
    Info,
    Nack,
    NormMessage,
    Origin,
    Probe,
    Squelch,
)
from protocols.norm.quantise import gsize_value, rate_code, rate_value, rtt_code, rtt_seconds
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_INFO,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.norm.wire.codec import NormCodec

pytestmark = pytest.mark.peer("tshark")

PORT = 6003
ORIGIN = Origin(0x0A000001, 77, rtt_code(0.05), 4, 2)
FTI = Fti(129, 40_000, 500, 20, 6)
CC = CcFeedback(5, 0, 120, 655, rate_code(250_000))
REQUESTS = (
    Request(FORM_ITEMS, LEVEL_SEGMENT | LEVEL_INFO, (Item(129, 3, 1, 20, 20),)),
    Request(FORM_RANGES, LEVEL_SEGMENT, (Item(129, 3, 2, 4, 20), Item(129, 3, 2, 9, 20))),
)

OF_SENDER = {
    "norm.source_id": "10.0.0.1",
    "norm.instance_id": "77",
    "norm.grtt": rtt_seconds(ORIGIN.grtt),
    "norm.backoff": "4",
    "norm.gsize": gsize_value(2),
}
OF_FTI = {
    "rmt-lct.hec.type": "64",
    "rmt-fec.fti.transfer_length": "40000",
    "rmt-fec.fti.encoding_symbol_length": "500",
    "rmt-fec.fti.max_source_block_length": "20",
    "rmt-fec.fti.max_number_encoding_symbols": "6",
}
OF_CC = {"rmt-lct.cc_sequence": "5", "rmt-lct.cc_rtt": "120", "rmt-lct.cc_loss": 0.01, "rmt-lct.cc_rate": "16389"}
# A message and the values of the fields that tshark must show.
CASES: list[tuple[NormMessage, dict[str, object]]] = [
    (
        Data(ORIGIN, 4711, FLAG_FILE | FLAG_INFO, 129, 3, 2, 18, 20, FTI, b"x" * 500, 500),
        {
            **OF_SENDER,
            **OF_FTI,
            "norm.type": "2",
            "norm.hlen": "10",
            "norm.sequence": "4711",
            "norm.flag.file": "1",
            "norm.flag.info": "1",
            "norm.flag.stream": "0",
            "norm.object_transport_id": "0x0003",
            "rmt-fec.sbn": "2",
            "rmt-fec.sbl": "20",
            "rmt-fec.esi": "0x00000012",
            "norm.payload": (b"x" * 500).hex(),
        },
    ),
    (
        Info(ORIGIN, 4712, FLAG_FILE | FLAG_INFO, 129, 3, FTI, b"name.txt"),
        {**OF_SENDER, **OF_FTI, "norm.type": "1", "norm.hlen": "8", "norm.payload": b"name.txt".hex()},
    ),
    (
        Flush(ORIGIN, 4713, 129, 3, 3, 19, 20),
        {**OF_SENDER, "norm.type": "3", "norm.flavor": "1", "norm.hlen": "6", "rmt-fec.sbn": "3", "rmt-fec.esi": "0x00000013"},
    ),
    (
        Squelch(ORIGIN, 4714, 129, 9, 0, 0, 20),
        {**OF_SENDER, "norm.type": "3", "norm.flavor": "3", "norm.object_transport_id": "0x0009", "rmt-fec.sbn": "0"},
    ),
    (
        Probe(ORIGIN, 4715, 17, 1_700_000_000, 123_456, rate_code(250_000)),
        {
            **OF_SENDER,
            "norm.flavor": "4",
            "norm.ccsequence": "17",
            "norm.cc_sts": "1700000000",
            "norm.cc_stus": "123456",
            "rmt-lct.send_rate": rate_value(rate_code(250_000)),
        },
    ),
    (
        Nack(0x0A000002, 0, ORIGIN.source_id, 77, 1_700_000_000, 999_999, REQUESTS, CC),
        {
            "norm.type": "4",
            "norm.source_id": "10.0.0.2",
            "norm.nack.server": "10.0.0.1",
            "norm.instance_id": "77",
            "norm.nack.grtt_sec": "1700000000",
            "norm.nack.grtt_usec": "999999",
            "norm.nack.form": "1,2",
            "norm.nack.length": "12,24",
            "norm.nack.flags.segment": "1,1",
            "norm.nack.flags.info": "1,0",
            # tshark shows only the first item of a request, for NRL's messages as well.
            "rmt-fec.sbn": "1,2",
            "rmt-fec.esi": "0x00000014,0x00000004",
            **OF_CC,
        },
    ),
    (
        Ack(0x0A000003, 0, ORIGIN.source_id, 77, 1, 2, 1_700_000_001, 5, b"", CC),
        {
            "norm.type": "5",
            "norm.source_id": "10.0.0.3",
            "norm.ack.source": "10.0.0.1",
            "norm.ack.type": "1",
            "norm.ack.id": "2",
            "norm.ack.grtt_sec": "1700000001",
            "norm.ack.grtt_usec": "5",
            "norm.hlen": "9",
            **OF_CC,
        },
    ),
]


def write_pcap(path: Path, payloads: list[bytes]) -> None:
    """Write a capture of raw IPv4 packets (link type 101)."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for payload in payloads:
        udp = struct.pack(">HHHH", PORT, PORT, 8 + len(payload), 0) + payload
        addresses = bytes((10, 0, 0, 1, 239, 1, 2, 3))
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 1, 17, 0) + addresses + udp
        out.append(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(out))


def tshark(capture: Path, *options: str) -> str:
    command = ["tshark", "-n", "-r", str(capture), "-d", f"udp.port=={PORT},norm", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tshark") / "ours.pcap"
    codec = NormCodec()
    write_pcap(path, [codec.encode(message) for message, _ in CASES])
    return path


def test_tshark_finds_no_malformed_message(capture: Path) -> None:
    assert tshark(capture, "-Y", "norm", "-T", "fields", "-e", "frame.number").split() == [
        str(i + 1) for i in range(len(CASES))
    ]
    assert tshark(capture, "-Y", "_ws.malformed || _ws.expert.severity == error") == ""


def test_tshark_finds_no_malformed_message_with_ext_auth(tmp_path: Path) -> None:
    codec, path = AuthenticatedCodec(NormCodec(), {5: bytes(32)}, lambda: 1.8e9), tmp_path / "keyed.pcap"
    # tshark takes header extensions of a SQUELCH for object ids, whichever they are.
    cases = [message for message, _ in CASES if not isinstance(message, Squelch)]
    write_pcap(path, [codec.encode(message) for message in cases])
    assert tshark(path, "-Y", "_ws.malformed || _ws.expert.severity == error") == ""
    types = tshark(path, "-T", "fields", "-e", "rmt-lct.hec.type").splitlines()
    assert [line.split(",")[-1] for line in types] == ["1"] * len(cases)


@pytest.fixture(scope="module")
def dissected(capture: Path) -> list[dict[str, str]]:
    """Return every field that a case names, of every frame."""
    names = sorted({name for _, fields in CASES for name in fields})
    lines = tshark(capture, "-T", "fields", *(part for name in names for part in ("-e", name))).splitlines()
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


@pytest.mark.parametrize("index", range(len(CASES)), ids=[message.kind for message, _ in CASES])
def test_tshark_shows_the_encoded_values(index: int, dissected: list[dict[str, str]]) -> None:
    for name, value in CASES[index][1].items():
        found = dissected[index][name]
        if isinstance(value, str):
            assert found == value, name
        else:
            assert float(found) == pytest.approx(value, rel=1e-3), name
