"""Addresses of sockets: their text, their scope, and which one a device has."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from emu.addresses import (
    SocketAddress,
    address_of,
    at_port,
    device_of,
    is_link_local,
    is_source_specific,
    socket_address_of,
    text_of,
)
from emu.namespaces import run_isolated
from protocols.errors import UsageError
from tests.emu.lab import run_commands

LOOPBACK = socket.if_nametoindex("lo")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("239.1.2.3:6003", ("239.1.2.3", 6003)),
        ("[ff05::1:2:3]:6003", ("ff05::1:2:3", 6003, 0, 0)),
        ("[ff02::7%lo]:1", ("ff02::7", 1, 0, LOOPBACK)),
        (f"[ff02::7%{LOOPBACK}]:1", ("ff02::7", 1, 0, LOOPBACK)),
    ],
)
def test_a_group_is_an_address_and_a_port_with_brackets_around_ipv6(name: str, address: SocketAddress) -> None:
    assert socket_address_of(name) == address


@pytest.mark.parametrize("name", ["239.1.1.1", "239.1.1.1:", "239.1.1.1:0", "239.1.1.1:65536", "host:1", ":1", "1.2.3:4"])
def test_invalid_groups_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="group"):
        socket_address_of(name)


@pytest.mark.parametrize("name", ["ff05::1:6003", "[239.1.1.1]:6003", "[ff05::1]", "[ff05::1]6003", "[ff05:1]:6003", "[]:1"])
def test_ipv6_groups_without_brackets_and_brackets_without_ipv6_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"is not an address and a port, like 239\.1\.2\.3:6003 or \[ff05::1:2:3\]:6003"):
        socket_address_of(name)


def test_a_link_local_group_of_an_unknown_device_is_refused_with_the_devices_there_are() -> None:
    with pytest.raises(UsageError, match=r"names no device of this machine; devices here: .*lo"):
        socket_address_of("[ff02::7%nosuch0]:6003")


def test_a_port_is_changed_and_an_address_written_in_both_families() -> None:
    assert at_port(("1.2.3.4", 5), 6) == ("1.2.3.4", 6)
    assert at_port(("fe80::1", 5, 0, 3), 6) == ("fe80::1", 6, 0, 3)
    assert text_of(("1.2.3.4", 5)) == "1.2.3.4:5"
    assert text_of(("fe80::1", 5, 0, 3)) == "[fe80::1]:5"


@pytest.mark.parametrize(
    ("address", "specific"),
    [
        *(("232.0.0.0", True), ("232.255.255.255", True), ("231.255.255.255", False), ("233.0.0.0", False)),
        *(("ff3e::1", True), ("ff35::8000:1", True), ("ff3e:1::1", False), ("ff0e::1", False), ("2001:db8::", False)),
    ],
)
def test_the_ranges_of_source_specific_multicast_are_known(address: str, specific: bool) -> None:
    assert is_source_specific(address) == specific


@pytest.mark.parametrize(
    ("address", "local"),
    [("fe80::1", True), ("fec0::1", False), ("ff02::1", True), ("ff01::1", True), ("ff05::1", False), ("fd00::1", False)],
)
def test_addresses_of_one_link_are_known(address: str, local: bool) -> None:
    assert is_link_local(address) == local


def test_an_interface_is_a_device_or_an_address() -> None:
    assert address_of("lo") == address_of("127.0.0.1") == "127.0.0.1"
    with pytest.raises(UsageError, match=r"'nosuch0' is no device.*lo"):
        address_of("nosuch0")


def in_ipv6_network(ask: Callable[[], Any]) -> Any:
    """Call a function in a network of its own, where d0 has a link-local and a wider IPv6 address, and d1 only a link-local."""

    def asked() -> Any:
        run_commands(
            "link set lo up",
            "link add d0 type veth peer name d1",
            "link set d0 address 02:00:00:00:00:01 addrgenmode none up",
            "link set d1 address 02:00:00:00:00:02 addrgenmode none up",
            "address add fe80::1/64 dev d0 nodad",
            "address add fd00::1/64 dev d0 nodad",
            "address add fe80::2/64 dev d1 nodad",
        )
        return ask()

    return run_isolated(asked)


@pytest.mark.emu
def test_a_device_sends_to_a_link_from_its_link_local_address_and_further_from_a_wider_one() -> None:
    def ask() -> list[str]:
        return [
            address_of("d0", "ff02::7"),
            address_of("d0", "ff05::7"),
            address_of("d1", "ff05::7"),
            address_of(None, "ff02::7%d0"),
            address_of("fe80::1", "ff02::7"),
            address_of(None, "fd00::9"),
        ]

    assert in_ipv6_network(ask) == ["fe80::1%d0", "fd00::1", "fe80::2%d1", "fe80::1%d0", "fe80::1%d0", "fd00::1"]


@pytest.mark.emu
def test_the_device_of_an_address_is_found() -> None:
    def ask() -> bool:
        own = socket.if_nametoindex("d0")
        return [device_of("fd00::1"), device_of("fe80::1%d0"), device_of("fe80::1")] == [own] * 3

    assert in_ipv6_network(ask)


@pytest.mark.emu
@pytest.mark.parametrize(
    ("interface", "towards", "why"),
    [
        ("d0", "ff02::7%d1", "iface: 'd0' is not the device that 'ff02::7%d1' names"),
        ("127.0.0.1", "ff02::7", "iface: '127.0.0.1' is an IPv4 address, and 'ff02::7' is none; name a device"),
        ("fd00::1", "239.1.1.1", "iface: 'fd00::1' is an IPv6 address, and '239.1.1.1' is none; name a device"),
        ("d9", "ff02::7", "iface: 'd9' is no device with an IPv6 address (none); devices here: lo, d1, d0"),
        ("fe80::9", "ff02::7", "iface: no device has the address fe80::9; devices here: lo, d1, d0"),
        (None, "2001:db8::1", "iface: no route to 2001:db8::1 (Network is unreachable); name a device or address"),
    ],
)
def test_an_interface_that_has_no_fitting_address_is_refused(interface: str | None, towards: str, why: str) -> None:
    def ask() -> str:
        with pytest.raises(UsageError) as caught:
            address_of(interface, towards)
        return str(caught.value)

    assert in_ipv6_network(ask) == why
