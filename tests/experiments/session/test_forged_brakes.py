"""BRAKE with and without a MAC, from a tunnel and from somebody else, to a publisher on the loopback device."""

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from mcastlab.messaging import connect
from protocols.tunnel.authentication import KeyedTunnelCodec
from protocols.tunnel.messages import Brake
from protocols.tunnel.wire import TunnelCodec, write_told

SITE, OTHERS = b"s" * 32, b"o" * 32
WORST = Brake(1, 65_535, 65_535)
TOP = 25_000_000.0


def forged() -> bytes:
    return write_told(WORST)


def signed(key: bytes) -> bytes:
    return KeyedTunnelCodec(TunnelCodec(), {1: key}, time.time).encode(WORST)


async def rate_after(data: bytes, port: int, keys: Path | None, subscribe: bool = False) -> float:
    """Return the rate of a publisher, which may subscribe as well, after one BRAKE was sent to its group three times."""
    settings: dict[str, Any] = {} if keys is None else {"tunnel_key_file": str(keys)}
    async with connect(
        f"239.7.7.66:{port}", "lo", subscribe=subscribe, rate="200Mbit", grtt="2ms", robust=3, **settings
    ) as bus:
        await bus.announce()
        publisher = bus._machine._publisher if subscribe else bus._machine
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            for _ in range(3):
                sender.sendto(data, ("239.7.7.66", port))
                await asyncio.sleep(0.05)
        return float(publisher._braking.rate)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "site.key"
    file.write_text(f"1 {SITE.hex()}\n")
    file.chmod(0o600)
    return file


def test_a_forged_brake_does_not_slow_a_publisher_with_keys_down(keys: Path) -> None:
    for port, data in ((6301, forged()), (6302, signed(OTHERS)), (6303, signed(SITE)[:-1] + b"!")):
        assert asyncio.run(rate_after(data, port, keys)) == TOP


@pytest.mark.parametrize("subscribe", [False, True])
def test_an_authentic_brake_does(keys: Path, subscribe: bool) -> None:
    assert asyncio.run(rate_after(signed(SITE), 6304 + subscribe, keys, subscribe)) < TOP / 10


def test_a_publisher_without_keys_follows_every_brake() -> None:
    for port, data in ((6306, forged()), (6307, signed(OTHERS))):
        assert asyncio.run(rate_after(data, port, None)) < TOP / 10
