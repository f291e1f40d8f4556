"""Options of the IP layer for the sockets of a host: hop limits, traffic class, fragments, sources of groups, own ports."""

import select
import socket
from collections.abc import Callable
from typing import Any

import pytest

from emu.addresses import SocketAddress, socket_address_of
from emu.namespaces import run_isolated
from emu.place import Place, place_of
from emu.udp import open_receiver, open_transmitter, receive_coalesced
from emu.udp_options import UdpOptions
from protocols.errors import UsageError
from tests.emu.lab import run_commands

pytestmark = pytest.mark.emu
OPTIONS = UdpOptions(ttl=7, unicast_ttl=9, tos=0xB8, df=True, loopback=False)
GROUPS = {"fd00::1": "[ff35::8000:7]:6003", "10.0.0.1": "232.7.7.7:6003"}


def in_network(ask: Callable[[], Any]) -> Any:
    """Call a function in a network of its own, whose device d0 has two addresses of both families."""

    def asked() -> Any:
        run_commands(
            "link set lo up",
            "link add d0 type veth peer name d1",
            "link set d0 addrgenmode none up",
            "link set d1 addrgenmode none up",
            *(f"address add 10.0.0.{n}/8 dev d0" for n in (1, 2, 3)),
            *(f"address add fd00::{n}/64 dev d0 nodad" for n in (1, 2, 3)),
        )
        return ask()

    return run_isolated(asked)


def read(sock: socket.socket, level: int, *options: int) -> list[int]:
    """Return options of a socket."""
    return [sock.getsockopt(level, option) for option in options]


def test_the_kernel_has_the_options_of_a_socket() -> None:
    def ask() -> list[list[int]]:
        discover, discover6, dont_fragment = 10, 23, 62
        old, new = (open_transmitter(address, OPTIONS, 1 << 16) for address in ("10.0.0.1", "fd00::1"))
        return [
            read(old, socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, socket.IP_TTL, socket.IP_TOS, discover),
            read(old, socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP),
            read(new, socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, socket.IPV6_UNICAST_HOPS, socket.IPV6_TCLASS, discover6),
            read(new, socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, dont_fragment),
        ]

    assert in_network(ask) == [[7, 9, 0xB8, 2], [0], [7, 9, 0xB8, 2], [0, 1]]


def test_a_host_that_uses_ecn_keeps_its_traffic_class_and_says_that_its_packets_may_be_marked() -> None:
    def ask() -> list[list[int]]:
        options = UdpOptions(tos=0xB9, ecn=True)
        old, new = (open_transmitter(address, options, 1 << 16) for address in ("10.0.0.1", "fd00::1"))
        into = open_receiver(("239.7.7.7", 6003), "10.0.0.1", 1 << 16, (), options)
        return [
            read(old, socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS),
            read(new, socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS),
            read(into, socket.IPPROTO_IP, socket.IP_RECVTOS),
        ]

    assert in_network(ask) == [[0xBA, 1], [0xBA, 1], [1]]


def test_a_hop_limit_of_0_is_1_for_unicasts_which_would_not_leave_otherwise() -> None:
    sock = open_transmitter("127.0.0.1", UdpOptions(ttl=0, unicast_ttl=0), 1 << 16)
    assert read(sock, socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, socket.IP_TTL) == [0, 1]
    sock.close()


def received(sock: socket.socket) -> list[list[str]]:
    """Return what waits at a socket: packets and the addresses they came from."""
    found = []
    while select.select([sock], [], [], 0.1)[0]:
        data, segment, source, *_ = receive_coalesced(sock)
        found += [[data[at : at + segment].decode(), source[0]] for at in range(0, len(data), segment)]
    return found


@pytest.mark.parametrize("address", GROUPS)
def test_a_source_specific_receiver_gets_the_packets_of_its_sources_only(address: str) -> None:
    senders = [address[:-1] + str(number) for number in (1, 2, 3)]

    def ask() -> list[list[str]]:
        group = socket_address_of(GROUPS[address])
        into = open_receiver(group, address, 1 << 20, (), UdpOptions(sources=(senders[1], senders[2])))
        for sender in senders:
            open_transmitter(sender, UdpOptions(), 1 << 16).sendto(sender.encode(), group)
        return received(into)

    assert in_network(ask) == [[sender, sender] for sender in senders[1:]]


@pytest.mark.parametrize("address", GROUPS)
def test_a_packet_longer_than_the_path_is_fragmented_or_refused(address: str) -> None:
    def ask() -> list[str]:
        group = socket_address_of(GROUPS[address])
        into = open_receiver(group, address, 1 << 20)
        outcomes = []
        for df in (None, False, True):
            sock = open_transmitter(address, UdpOptions(df=df), 1 << 16)
            try:
                sock.sendto(bytes(3000), group)
                outcomes.append("sent")
            except OSError as error:
                outcomes.append(str(error.strerror))
        return [*outcomes, *(str(len(data)) for data, _ in received(into))]

    assert in_network(ask) == ["sent", "sent", "Message too long", "3000", "3000"]


def test_a_port_that_is_not_shared_belongs_to_one_program() -> None:
    where: SocketAddress = ("127.0.0.1", 0)
    first = open_receiver(where, "127.0.0.1", 1 << 16, (), UdpOptions(reuse=False))
    taken = first.getsockname()
    with pytest.raises(UsageError, match=rf"can't receive at 127.0.0.1:{taken[1]}: Address already in use"):
        open_receiver(taken, "127.0.0.1", 1 << 16)
    first.close()


def test_the_port_that_packets_leave_from_can_be_chosen() -> None:
    with open_transmitter("127.0.0.1", UdpOptions(), 1 << 16) as free:
        port = free.getsockname()[1]
    with open_transmitter("127.0.0.1", UdpOptions(), 1 << 16, port) as sock:
        assert sock.getsockname() == ("127.0.0.1", port)
        with pytest.raises(UsageError, match="Address already in use"):
            open_transmitter("127.0.0.1", UdpOptions(), 1 << 16, port)


def test_a_session_of_two_hosts_has_its_port_for_itself_and_unicast_feedback() -> None:
    place = place_of("127.0.0.2:6003", "lo", UdpOptions())
    assert place == Place("127.0.0.2:6003", "127.0.0.1", 6003, UdpOptions(reuse=False), is_unicast=True)
    assert place.has_unicast_feedback


@pytest.mark.parametrize(
    ("group", "options", "why"),
    [
        ("0.0.0.0:6003", {}, "group: value '0.0.0.0:6003' is not allowed; the address of a group or of a host, and a port"),
        ("255.255.255.255:1", {}, "group: value '255.255.255.255:1' is not allowed; the address of a group or of a host"),
        ("[::]:6003", {}, r"group: value '\[::\]:6003' is not allowed"),
        ("127.0.0.1:6003", {}, "group: 127.0.0.1 is this end's own address; in a session of two hosts each names the other"),
        ("232.1.2.3:6003", {}, "group: 232.1.2.3 is for source-specific multicast .RFC 4607.; name the sender as source"),
        ("239.1.2.3:6003", {"sources": ("nobody",)}, "source: value 'nobody' is not allowed; the IPv4 address of a sender"),
        ("239.1.2.3:6003", {"sources": ("239.1.1.1",)}, "source: value '239.1.1.1' is not allowed"),
        ("239.1.2.3:6003", {"sources": ("fd00::1",)}, "source: value 'fd00::1' is not allowed; the IPv4 address of a sender"),
        ("127.0.0.2:6003", {"sources": ("127.0.0.2",)}, "source: 127.0.0.2 is no multicast group; a session of two hosts"),
    ],
)
def test_a_place_that_can_not_be_is_refused_with_what_is_allowed(group: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        place_of(group, "127.0.0.1" if "[" not in group else "::1", UdpOptions(**options), receives=True)


def test_a_sender_may_use_a_source_specific_group() -> None:
    place = place_of("232.1.2.3:6003", "127.0.0.1", UdpOptions())
    assert (place.is_unicast, place.has_unicast_feedback) == (False, False)
