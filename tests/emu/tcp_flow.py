"""One flow of the kernel's TCP, as two programs for namespaces.

    python -m tests.emu.tcp_flow recv PORT SECONDS
    python -m tests.emu.tcp_flow send PORT SECONDS ADDRESS CONTROL

The receiver prints a JSON object with the time and the bytes received so far, twice a second.
"""

import json
import socket
import sys
import time

__all__ = ["main"]

CHUNK = bytes(1 << 16)


def _receive(port: int, seconds: float) -> None:
    with socket.create_server(("", port)) as server:
        server.settimeout(seconds)
        print(json.dumps({"event": "LISTEN"}), flush=True)
        peer, _ = server.accept()
        until, octets, told = time.monotonic() + seconds, 0, 0.0
        with peer:
            peer.settimeout(seconds)
            while time.monotonic() < until:
                got = len(peer.recv(1 << 16))
                octets += got
                if not got:
                    return
                if time.monotonic() >= told + 0.5:
                    told = time.monotonic()
                    print(json.dumps({"event": "RECEIVED", "t": told, "octets": octets}), flush=True)


def _send(port: int, seconds: float, address: str, control: str) -> None:
    until = time.monotonic() + seconds
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sock.settimeout(seconds)
        sock.connect((address, port))
        try:
            while time.monotonic() < until:
                sock.send(CHUNK)
        except OSError:
            # The receiver has ended.
            return


def main() -> None:
    """Run the receiver or the sender."""
    role, port, seconds, *where = sys.argv[1:]
    if role == "recv":
        _receive(int(port), float(seconds))
    else:
        _send(int(port), float(seconds), *where)


if __name__ == "__main__":
    main()
