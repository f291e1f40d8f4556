"""Rates of brokers of others between network namespaces: a publisher, subscribers, and the broker on a host of its own.

What a subscriber got is compared with what was published: number, order and every byte. Rates are from its first bytes to its
last. Publishers and subscribers of mosquitto are its C programs; those of ActiveMQ write and read frames of STOMP as bytes.

    python -m benchmarks.fjm2_brokers printed COUNT SIZE FILE COMMAND...     read what a subscriber prints, a line for each
    python -m benchmarks.fjm2_brokers feed COUNT SIZE COMMAND...             give a publisher its input
    python -m benchmarks.fjm2_brokers subscribe|publish COUNT SIZE ADDRESS PORT FILE
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from emu.namespaces import run_isolated
from emu.peers.brokers import BROKERS, JAVA_ARCHIVES
from protocols.errors import UnsupportedError
from tests.emu.lab import Lab
from topologies.generators import Star

__all__ = ["activemq_rate", "mosquitto_rate"]

PORT = 61613
LONGEST = 120.0
NODE = [sys.executable, "-m", "benchmarks.fjm2_brokers"]
CHUNK = 1 << 18
Start = Callable[[Lab, str, str, str], Any]
"""Starts a client on a host: `start(lab, host, address of the broker, file)`; a subscriber makes the file when it is ready."""


def _body(number: int, size: int) -> bytes:
    return b"%0*d" % (size, number)


def _rate(
    broker: str, subscribe: Start, publish: Start, count: int, size: int, receivers: int, link: Mapping[str, Any]
) -> float:
    """Return the messages per second of the slowest subscriber; 0 if anything is missing or wrong anywhere."""
    program = BROKERS[broker]
    if program.lacks is not None:
        raise UnsupportedError(f"{program.lacks} is missing; it is in {program.packages}")

    def work() -> list[dict[str, Any]]:
        lab = Lab(Star.model_validate({"kind": "star", "receivers": receivers + 1, "link": link}).build())
        host, names = f"r{receivers + 1}", [f"r{number}" for number in range(1, receivers + 1)]
        address = lab.network.address(host)
        with tempfile.TemporaryDirectory() as folder:
            running = lab.start(host, program.command(Path(folder), (address, PORT)))
            _await_listener(lab.network.pid(host), program.patience)
            ready = [Path(folder) / f"{name}.ready" for name in names]
            waiting = [subscribe(lab, name, address, str(file)) for name, file in zip(names, ready, strict=True)]
            _await_files(ready, LONGEST)
            publish(lab, "sender", address, "")
            try:
                return [lab.end(process, LONGEST)[-1] for process in waiting]
            finally:
                running.kill()

    rows = run_isolated(work)
    if not all(row["right"] for row in rows):
        return 0.0
    return float(min((count - 1) / (row["ended"] - row["began"]) for row in rows))


def _await_listener(pid: int, patience: float) -> None:
    """Wait until a program in the network namespace of a process listens at the port."""
    deadline = time.monotonic() + patience
    while not any(f":{PORT:04X} " in Path(f"/proc/{pid}/net/{table}").read_text() for table in ("tcp", "tcp6")):
        assert time.monotonic() < deadline, "the broker does not listen"
        time.sleep(0.05)


def _await_files(files: list[Path], patience: float) -> None:
    deadline = time.monotonic() + patience
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline, "a subscriber is not connected"
        time.sleep(0.05)


def mosquitto_rate(
    size: int, receivers: int, count: int, link: Mapping[str, Any] | None = None, qualities: Sequence[str] = ("0", "1")
) -> float:
    """Return the best rate of mosquitto over qualities of service; SystemExit if it delivered everything with none."""
    rates = []
    for quality in qualities:

        def options(address: str, quality: str = quality) -> list[str]:
            return ["-h", address, "-p", str(PORT), "-t", "t", "-q", quality, "-V", "mqttv311"]

        def subscribe(lab: Lab, host: str, address: str, ready: str) -> Any:
            command = ["mosquitto_sub", *options(address), "-C", str(count), "-W", str(round(LONGEST))]
            return lab.start(host, [*NODE, "printed", str(count), str(size), ready, *command])

        def publish(lab: Lab, host: str, address: str, ready: str) -> Any:
            return lab.start(
                host, [*NODE, "feed", str(count), str(size), "mosquitto_pub", *options(address), "--nodelay", "-l"]
            )

        rates.append(_rate("mosquitto", subscribe, publish, count, size, receivers, link or {}))
    if not max(rates):
        raise SystemExit("mosquitto did not deliver everything")
    return max(rates)


def activemq_rate(size: int, count: int) -> float:
    """Return the rate of ActiveMQ to one subscriber; SystemExit if it did not deliver everything."""

    def start(role: str) -> Start:
        program = [*NODE, role, str(count), str(size)]
        return lambda lab, host, address, ready: lab.start(host, [*program, address, str(PORT), ready])

    rate = _rate("activemq", start("subscribe"), start("publish"), count, size, 1, {})
    if not rate:
        raise SystemExit(f"ActiveMQ did not deliver everything ({JAVA_ARCHIVES})")
    return rate


# Programs on the hosts


def _printed(count: int, size: int, ready: str, *command: str) -> dict[str, Any]:
    """Run a subscriber that prints messages, and compare what it prints."""
    chunks: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        # The program does not tell when its subscription is in effect.
        time.sleep(2.0)
        Path(ready).touch()
        began = ended = 0.0
        while chunk := process.stdout.read(CHUNK):
            ended = time.monotonic()
            began = began or ended
            chunks.append(chunk)
    wanted = b"".join(_body(number, size) + b"\n" for number in range(count))
    return {"began": began, "ended": ended, "right": b"".join(chunks) == wanted}


def _feed(count: int, size: int, *command: str) -> dict[str, Any]:
    """Run a publisher that reads a line for each message."""
    with tempfile.TemporaryFile() as lines:
        lines.write(b"".join(_body(number, size) + b"\n" for number in range(count)))
        lines.seek(0)
        return {"code": subprocess.call(command, stdin=lines)}


def _frame(command: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [command, *(f"{name.replace('_', '-')}:{value}" for name, value in headers.items())]
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def _connected(address: str, port: str) -> tuple[socket.socket, BinaryIO]:
    connection = socket.create_connection((address, int(port)))
    stream = connection.makefile("rb")
    connection.sendall(_frame("CONNECT", accept_version="1.2", host="h", heart_beat="0,0"))
    _read_frame(stream)
    return connection, stream


def _read_frame(stream: BinaryIO) -> bytes:
    """Return the body of the next frame."""
    line = stream.readline()
    while line == b"\n":
        line = stream.readline()
    length = None
    while (line := stream.readline()) not in (b"\n", b""):
        if line.startswith(b"content-length:"):
            length = int(line[15:])
    if length is None:
        body = b""
        while (octet := stream.read(1)) not in (b"\0", b""):
            body += octet
        return body
    body = stream.read(length)
    stream.read(1)
    return body


def _subscribe(count: int, size: int, address: str, port: str, ready: str) -> dict[str, Any]:
    connection, stream = _connected(address, port)
    connection.sendall(_frame("SUBSCRIBE", id="0", destination="/topic/t", ack="auto", receipt="begun"))
    _read_frame(stream)
    Path(ready).touch()
    began, right = 0.0, True
    for number in range(count):
        right &= _read_frame(stream) == _body(number, size)
        began = began or time.monotonic()
    return {"began": began, "ended": time.monotonic(), "right": right}


def _publish(count: int, size: int, address: str, port: str, ready: str) -> dict[str, Any]:
    connection, stream = _connected(address, port)
    for first in range(0, count, 64):
        numbers = range(first, min(count, first + 64))
        frames = [_frame("SEND", _body(number, size), destination="/topic/t", content_length=str(size)) for number in numbers]
        connection.sendall(b"".join(frames))
    connection.sendall(_frame("DISCONNECT", receipt="end"))
    _read_frame(stream)
    return {"code": 0}


def main() -> None:
    """Run the program of a host."""
    role, count, size, *rest = sys.argv[1:]
    programs: dict[str, Callable[..., dict[str, Any]]] = {
        "printed": _printed,
        "feed": _feed,
        "subscribe": _subscribe,
        "publish": _publish,
    }
    print(json.dumps(programs[role](int(count), int(size), *rest)), flush=True)


if __name__ == "__main__":
    main()
