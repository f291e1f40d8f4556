"""Frames are byte for byte those that hosts send: scapy computes the same lengths and checksums."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from protocols.machine import Group
from sim.framer import Framer
from topologies.addressing import endpoint_of_group
from topologies.generators import Star


def test_frames_are_those_that_hosts_send() -> None:
    framer = Framer(Star(receivers=3).build())
    for payload in (b"", b"x", bytes(range(256)) * 5):
        multicast = Ether(framer.frame("sender", Group("all"), payload, 70_000))
        assert (multicast.src, multicast.dst) == ("02:00:0a:00:00:01", _multicast_mac(endpoint_of_group("all")))
        assert (multicast[IP].dst, multicast[IP].id, multicast[UDP].dport) == (_host(endpoint_of_group("all")), 4464, 6003)
        unicast = Ether(framer.frame("r1", "sender", payload, 1))
        assert (unicast.src, unicast.dst) == ("02:00:0a:00:00:02", "02:00:0a:00:00:01")
        for made in (multicast, unicast):
            again = made.copy()
            del again[IP].chksum, again[UDP].chksum, again[IP].len, again[UDP].len
            assert bytes(again) == bytes(made)


def test_a_group_can_be_named_by_its_address_and_port() -> None:
    framer = Framer(Star(receivers=3).build())
    assert Ether(framer.frame("sender", Group("239.1.2.3:77"), b"", 1))[UDP].dport == 77


def _host(endpoint: str) -> str:
    return endpoint.partition(":")[0]


def _multicast_mac(endpoint: str) -> str:
    _, b, c, d = map(int, _host(endpoint).split("."))
    return f"01:00:5e:{b & 127:02x}:{c:02x}:{d:02x}"
