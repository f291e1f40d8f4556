"""TAP devices: network interfaces whose far end is this process, frame by frame."""

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
    """Make the interface `name` here and return its far end: each read and each write is one Ethernet frame, none blocks.

    `queue` is how many frames wait for a reader that is behind; more are dropped, and counted (`overflow`).
    The interface is gone when the last copy of the descriptor is closed. OSError where TAPs are closed to this user.
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
    """UnsupportedError naming `why` a TAP is needed, and what is missing, where none can be made. Call it inside a world."""
    try:
        os.close(open_tap("probe"))
    except OSError as error:
        raise UnsupportedError(
            f"{why}: links in user space need TAP devices, and {DEVICE} refuses ({error.strerror}): "
            "sudo modprobe tun, and run it as root"
        ) from None


def overflow(pid: int, name: str) -> int:
    """Frames that the full queue of this interface, in the network of process `pid`, has dropped."""
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        device, _, counts = line.partition(":")
        if device.strip() == name:
            # Eight counts of what was received; then packets and bytes sent, errors, drops ...
            return int(counts.split()[11])
    raise UnsupportedError(f"{name}: the interface is gone, and with it the count of what it dropped")
