"""Sessions over IPv6, in source-specific groups and of two hosts, with libnorm1; `make interop` runs all of them."""

import select
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import enter_network_namespace, run_isolated
from tests.emu.interop_places import PLACES, run_places
from tests.emu.ipv6 import give_ipv6
from tests.emu.lab import MCASTLAB, NRL, Lab
from topologies.generators import Star

pytestmark = [pytest.mark.emu, pytest.mark.peer, pytest.mark.slow]

BY_NAME = {place.name: place for place in PLACES}
CASES = [
    (BY_NAME["IPv6, link-local group"], "ours"),
    (BY_NAME["IPv6, site-local group"], "nrl"),
    (BY_NAME["source-specific group"], "ours"),
    (BY_NAME["source-specific group"], "nrl"),
    (BY_NAME["two hosts, IPv6"], "nrl"),
    (BY_NAME["two hosts"], "ours"),
]


def test_files_arrive_wherever_a_session_takes_place() -> None:
    for (place, sender), report in zip(CASES, run_places(CASES), strict=True):
        assert report["ok"], (place.name, sender, report)


def headers(lab: Lab, program: list[str]) -> list[list[int]]:
    """Run a program on the sender; return traffic class, hop limit and DF flag of its packets, of each combination once."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_bytes(bytes(2000))
        enter_network_namespace(lab.network.pid("r1"))
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as sniffer:
            lab.end(lab.start("sender", [word.replace("FILE", str(file)) for word in program]))
            found = set()
            while select.select([sniffer], [], [], 0)[0]:
                found.add(_fields(sniffer.recv(2048)))
    return [list(fields) for fields in sorted(found - {None})]  # type: ignore[type-var, arg-type]


def _fields(packet: bytes) -> tuple[int, int, int] | None:
    """Return traffic class, hop limit and DF flag of a UDP packet; DF is 1 for IPv6, where no router fragments."""
    if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_UDP:
        return packet[1], packet[8], packet[6] >> 6 & 1
    if packet[0] >> 4 == 6 and packet[6] == socket.IPPROTO_UDP:
        return struct.unpack_from(">I", packet)[0] >> 20 & 255, packet[7], 1
    return None


def test_packets_have_the_traffic_class_hop_limit_and_df_flag_that_libnorm1_gives_them() -> None:
    def sniffed() -> dict[str, Any]:
        lab = Lab(Star.model_validate({"receivers": 1}).build())
        give_ipv6(lab, ["sender", "r1"])
        device = lab.device("sender")
        ours = [*MCASTLAB, "send", "FILE", "--iface", device, "--robust", "1", "--grtt", "1ms", "--json", "--tos", "0xb8"]
        theirs = [*NRL, "send", "--iface", device, "--robust", "1", "--grtt", "0.001", "--tos", "184", "--ttl", "3"]
        old, new = ["--group", "239.1.1.1:6003"], ["--group", "[ff05::1]:6003"]
        return {
            "nrl": headers(lab, [*theirs, "--addr", "239.1.1.1"]),
            "nrl, fragments": headers(lab, [*theirs, "--addr", "239.1.1.1", "--fragment"]),
            "ours": headers(lab, [*ours, *old, "--df", "--ttl", "3"]),
            "ours, fragments": headers(lab, [*ours, *old, "--no-df", "--ttl", "3"]),
            "ours, by default": headers(lab, [*ours, *old]),
            "ours, IPv6": headers(lab, [*ours, *new, "--ttl", "3"]),
            "ours, two hosts": headers(lab, [*ours, "--group", "10.0.0.2:6003"]),
        }

    found = run_isolated(sniffed)
    assert found["nrl"] == found["ours"] == [[0xB8, 3, 1]]
    assert found["nrl, fragments"] == found["ours, fragments"] == [[0xB8, 3, 0]]
    # Linux sets DF by default, but not on packets that were sent in one batch.
    assert {tuple(fields[:2]) for fields in found["ours, by default"]} == {(0xB8, 1)}
    assert found["ours, IPv6"] == [[0xB8, 3, 1]]
    assert {tuple(fields[:2]) for fields in found["ours, two hosts"]} == {(0xB8, 64)}
