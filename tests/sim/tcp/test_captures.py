"""Captures of simulated connections are TCP: every frame is as long as links count it, and tshark follows it."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.sniffer import Encoder, Sniffer
from sim.tcp.segment import Segment
from sim.watch import Passage, Watcher
from tests.sim.tcp.scenes import ENGINES, Scene, star
from tests.support.talkers import NumberedCodec
from topologies.spec import Topology

LINES = [3000] * 400
# By its number, port 6003 would be that of X11.
CHECKS = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "--disable-protocol", "x11")


class Lengths(Watcher):
    """Compares the frame of each segment with what links count: the size and the headers of a datagram."""

    def __init__(self, topology: Topology) -> None:
        self._encoder = Encoder(topology, NumberedCodec())
        self.seen = 0

    def passed(self, passage: Passage) -> None:
        """Compare."""
        flight = passage.flight
        if isinstance(flight.message, Segment):
            self.seen += 1
            assert len(self._encoder.frame(flight)) == flight.size + 42, flight.message.brief


def captured(folder: Path, engine: str) -> tuple[Path, Scene]:
    """Run a lossy transfer and return what the sender's device saw."""
    topology = star(rate="10Mbit", delay="20ms", loss="2%")
    path = folder / "sender.pcapng"
    with path.open("wb") as file:
        lengths = Lengths(topology)
        sniffer = Sniffer(topology, "sender", file, Encoder(topology, NumberedCodec()))
        scene = Scene(topology, engine, watchers=[lengths, sniffer])
        scene.listener("r1", [100] * 10)
        scene.caller("sender", "r1", LINES, hangs_up=True)
        refused = scene.network.host("r1")
        scene.at(1.0, lambda: refused.call(scene.talkers["r1"].call, "sender"))
        scene.network.run(until=120)
        sniffer.end(scene.network.now)
    assert lengths.seen > 1000
    assert scene.talkers["sender"].reasons == ["ended"]
    assert scene.talkers["r1"].reasons == ["ended", "refused"]
    return path, scene


def read(path: Path, wanted: str, *fields: str) -> Iterator[list[str]]:
    """Yield fields of the packets that tshark selects."""
    names = [part for field in fields for part in ("-e", field)]
    command = ["tshark", "-r", str(path), *CHECKS, "-Y", wanted, "-T", "fields", *names]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        yield line.split("\t")


@pytest.mark.peer("tshark")
@pytest.mark.parametrize("engine", ENGINES[1:])
def test_tshark_finds_nothing_malformed_and_counts_our_retransmissions(engine: str, tmp_path: Path) -> None:
    path, scene = captured(tmp_path, engine)
    wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.lost_segment"
    assert not list(read(path, wrong, "frame.number"))
    # tshark takes a retransmission that follows another one within a round trip for one that was overtaken.
    again = "tcp.analysis.retransmission || tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order"
    ours = list(read(path, 'frame.comment contains "repair"', "frame.number"))
    assert list(read(path, again, "frame.number")) == ours
    assert len(list(read(path, "tcp.analysis.fast_retransmission", "frame.number"))) > 5
    assert len(ours) == scene.tcp.retransmissions > 10


@pytest.mark.peer("tshark")
def test_tshark_reads_handshake_options_and_sack_ranges(tmp_path: Path) -> None:
    path, _ = captured(tmp_path, "bytes")
    syn, answer, *_ = read(path, "tcp.flags.syn == 1", "tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.len")
    assert syn == answer == ["1460", "7", "0"]
    assert sum(1 for _ in read(path, "tcp.options.sack_le", "frame.number")) > 10
    ends = {int(number) for (number,) in read(path, "tcp.flags.fin == 1 && ip.src == 10.0.0.1", "tcp.seq")}
    assert ends == {1 + sum(size + 4 for size in LINES)}
    follow = ["tshark", "-r", str(path), "-q", "-z", "follow,tcp,raw,0"]
    text = subprocess.run(follow, capture_output=True, text=True, check=True).stdout
    told = bytes.fromhex("".join(line for line in text.splitlines() if line and set(line) <= set("0123456789abcdef")))
    codec = NumberedCodec()
    at = 0
    for number in range(len(LINES)):
        size = int.from_bytes(told[at : at + 4])
        assert codec.decode(told[at + 4 : at + 4 + size]).number == number  # type: ignore[attr-defined]
        at += 4 + size


@pytest.mark.parametrize(("number", "port"), [(16_383, 65_535), (16_384, 1), (16_384 + 65_535, 1)])
def test_a_host_may_begin_more_connections_than_there_are_ports(number: int, port: int, tmp_path: Path) -> None:
    topology = star(rate="10Mbit", delay="10ms")
    path = tmp_path / "sender.pcapng"
    with path.open("wb") as file:
        sniffer = Sniffer(topology, "sender", file, Encoder(topology, NumberedCodec()))
        scene = Scene(topology, watchers=[sniffer])
        scene.listener("r1")
        caller = scene.caller("sender", "r1", [100], hangs_up=True)
        here = scene.network.host("sender")
        scene.tcp._begun[here.place] = number
        here.call(caller.call, "r1")
        scene.network.run(until=5)
        sniffer.end(scene.network.now)
    assert caller.reasons == ["ended"] * 2
    data = path.read_bytes()
    assert struct.pack("!HH", port, 6003) in data
    assert struct.pack("!HH", 6003, port) in data
