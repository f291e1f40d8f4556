"""TAP devices (Linux tuntap): network interfaces whose frames this process reads and writes."""

import fcntl
import os
import socket
import struct
from pathlib import Path

from protocols.errors import UnsupportedError

__all__ = ["DEVICE", "QUEUE", "check_tap", "open_tap", "overflow"]

DEVICE = "/dev/net/tun"
QUEUE = 10_000
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_SIOCSIFTXQLEN = 0x8943


def open_tap(name: str, queue: int = QUEUE) -> int:
    """Make interface `name` in this network namespace; return its descriptor, which reads and writes frames without blocking.

    `queue` is the length of its transmit queue in frames; further frames are dropped and counted (`overflow`). The interface
    vanishes when the last copy of the descriptor is closed. Raises OSError where TAP devices are not permitted.
    """
    device = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            fcntl.ioctl(sock, _SIOCSIFTXQLEN, struct.pack("16si20x", name.encode(), queue))
    except OSError:
        os.close(device)
        raise
    return device


def check_tap(why: str) -> None:
    """Raise UnsupportedError if no TAP device can be made; `why` names what needs it. Call it in namespaces of their own."""
    try:
        os.close(open_tap("probe"))
    except OSError as error:
        raise UnsupportedError(
            f"{why}: user-space links need TAP devices, and {DEVICE} refuses ({error.strerror}): "
            "sudo modprobe tun, and run as root"
        ) from None


def overflow(pid: int, name: str) -> int:
    """Return the frames dropped by the full transmit queue of an interface in the network namespace of process `pid`."""
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        device, _, counts = line.partition(":")
        if device.strip() == name:
            # Eight receive counters, then transmit: bytes, packets, errors, drops, ...
            return int(counts.split()[11])
    raise UnsupportedError(f"{name}: the interface is gone, and its drop counter with it")
