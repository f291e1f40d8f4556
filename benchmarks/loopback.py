"""Measure raw UDP on this machine's loop-back interface, as figures 5-1 and 5-2 of the thesis on FJM2 do.

    python -m benchmarks.loopback [--sizes 64 1024 ...] [--seconds 0.3] [--json]

One process sends datagrams of a size as fast as it can, another one reads them; the figure is what is read, in Mbit/s, by
unicast and by multicast. The native program beside it is iperf 2, where it is installed. Nothing leaves the interface.
"""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

__all__ = ["main", "measure"]

LOCAL, GROUP = "127.0.0.1", "239.255.77.1"
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65000)
QUIET = 0.3
"""Seconds without a datagram after which the reader stops."""


def measure(sizes: Sequence[int], seconds: float) -> dict[str, dict[str, float | None]]:
    """Return Mbit/s by size in bytes, for each way; None where a program is missing."""
    found: dict[str, dict[str, float | None]] = {"udp_unicast": {}, "udp_multicast": {}, "native": {}}
    for size in sizes:
        found["udp_unicast"][str(size)] = _rate(LOCAL, size, seconds)
        found["udp_multicast"][str(size)] = _rate(GROUP, size, seconds)
        found["native"][str(size)] = _native(size, seconds)
    return found


def _rate(to: str, size: int, seconds: float) -> float:
    """Return the Mbit/s that a process reads while this one sends datagrams of `size` bytes."""
    near, far = multiprocessing.Pipe()
    reader = multiprocessing.Process(target=_read, args=(to, size, far), daemon=True)
    reader.start()
    port = near.recv()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOCAL))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        content, address = bytes(size), (to, port)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sender.sendto(content, address)
    octets, taken = near.recv()
    reader.join()
    return 8e-6 * float(octets) / float(taken) if taken else 0.0


def _read(to: str, size: int, pipe: multiprocessing.connection.Connection) -> None:
    """Say the port, read datagrams until they stop, and say how many bytes came in how many seconds."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.bind((to, 0))
        if to == GROUP:
            request = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(LOCAL))
            reader.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        pipe.send(reader.getsockname()[1])
        octets, buffer = 0, bytearray(size)
        reader.settimeout(5.0)
        reader.recv_into(buffer)
        first = last = time.monotonic()
        reader.settimeout(QUIET)
        try:
            while True:
                octets += reader.recv_into(buffer)
                last = time.monotonic()
        except TimeoutError:
            pipe.send((octets, last - first))


def _native(size: int, seconds: float) -> float | None:
    """Return the Mbit/s of iperf 2 by unicast; None if it is not installed or says nothing."""
    program = shutil.which("iperf")
    if program is None:
        return None
    server = subprocess.Popen(
        [program, "-s", "-u", "-B", LOCAL, "-p", "5077", "-l", str(size), "-y", "C", "-P", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        time.sleep(0.2)
        client = [
            program,
            "-c",
            LOCAL,
            "-u",
            "-p",
            "5077",
            "-l",
            str(size),
            "-b",
            "20g",
            "-t",
            str(max(1, round(seconds))),
            "-y",
            "C",
        ]
        got = subprocess.run(client, capture_output=True, text=True, timeout=30, check=False).stdout.strip().splitlines()
        return float(got[-1].split(",")[8]) * 1e-6 if got else None
    except (IndexError, ValueError, subprocess.TimeoutExpired):
        return None
    finally:
        server.kill()
        server.wait()


def _table(found: Mapping[str, Mapping[str, float | None]]) -> str:
    names = list(found)
    lines = ["bytes   " + "".join(f"{name:>16}" for name in names)]
    for size in found[names[0]]:
        cells = (found[name][size] for name in names)
        lines.append(f"{size:<8}" + "".join(f"{'-' if cell is None else format(cell, '.1f'):>16}" for cell in cells))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = measure(options.sizes, options.seconds)
    print(json.dumps(found) if options.json else _table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
