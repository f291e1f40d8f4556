"""File transfer over UDP multicast without repairs: a foreign program for emulation tests.

    python plain_transfer.py send FILE
    python plain_transfer.py recv [--spoil]

The environment names the group, the device and the folder. The program imports nothing of this project.
"""

import os
import socket
import sys
import time
from pathlib import Path

__all__: list[str] = []

SIZE = 1000
END = b""


def _send(path: Path, group: tuple[str, int], device: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(device))
        data = path.read_bytes()
        for start in range(0, len(data), SIZE):
            sock.sendto(data[start : start + SIZE], group)
            time.sleep(0.0005)
        sock.sendto(END, group)


def _receive(folder: Path, group: tuple[str, int], device: str, spoil: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind(group)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + socket.inet_aton(device))
        pieces = []
        while piece := sock.recv(65535):
            pieces.append(piece)
    if spoil:
        pieces[0] = bytes(len(pieces[0]))
    (folder / "file").write_bytes(b"".join(pieces))


def _main() -> None:
    environment = {name: os.environ[f"MCASTLAB_{name}"] for name in ("GROUP", "PORT", "ADDRESS", "ROLE", "FOLDER")}
    group = (environment["GROUP"], int(environment["PORT"]))
    if sys.argv[1] == "send":
        assert environment["ROLE"] == "sender"
        _send(Path(sys.argv[2]), group, environment["ADDRESS"])
    else:
        assert environment["ROLE"] == "receiver"
        _receive(Path(environment["FOLDER"]), group, environment["ADDRESS"], "--spoil" in sys.argv)


if __name__ == "__main__":
    _main()
