"""Print the call path of one datagram and of one NACK through the files of the project.

    python -m scripts.road [--json]

* A datagram of a NORM sender: from the readable socket of `emu.host.UdpHost` to `Sink.write`, over the loopback device.
* A NACK: from the event that ends its back-off to the link that takes it, in the strict engine of the simulator.

Both are recorded with `sys.setprofile`, which sees every call of a Python function. Files outside the project (simpy, the
standard library) are left out, and so are constructors: those of most messages are generated and have no file. Of many
datagrams and NACKs the one with the median number of files is shown. docs/design.md has the figures.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType

from emu.host import UdpHost
from emu.loop import new_loop
from experiments.contract.worlds import free_port
from protocols.machine import Content, Group, Offer, Sink
from protocols.norm import PROTOCOL, NormConfig
from protocols.rng import Rng
from sim.network import Network
from topologies.generators import Star

ROOT = Path(__file__).resolve().parents[1]
__all__ = ["Call", "Recorder", "datagram_road", "files_of", "nack_road"]

Call = tuple[str, str]
"""File and qualified name of a function that was called."""
CallPath = tuple[Call, ...]
SIZE, SEGMENT = 2_000_000, 1000
CONFIG = NormConfig(rate=5e6, segment=SEGMENT, block=64, parity=16, grtt=0.05, gsize=10)
RATE = 2e5
"""Bytes per second of datagrams that a host with a profiler keeps up with: one that is late chooses before it decodes."""
CODE = ("protocols/", "topologies/", "sim/", "emu/", "experiments/", "mcastlab/")
LINKS = ("sim/link.py", "sim/impaired_link.py")


@cache
def own_file(name: str) -> str | None:
    """Return the path of a file within the project; None for other files. The main script may have a relative name."""
    path = Path(name).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) and ".venv" not in path.parts else None


class Recorder:
    """A profile function that records call paths.

    `begins(call, from_outside)` and `ends(call)` select the first and the last call of a path. Calls from outside are those of
    the event loop or of this script.
    """

    def __init__(self, begins: Callable[[Call, bool], bool], ends: Callable[[Call], bool]) -> None:
        self.begins, self.ends = begins, ends
        self.road: list[Call] | None = None
        self.done: list[CallPath] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call of a function of the project."""
        begins_function = event == "call" and frame.f_code.co_name != "__init__"
        file = own_file(frame.f_code.co_filename) if begins_function else None
        if file is None:
            return
        call, caller = (file, frame.f_code.co_qualname), frame.f_back and own_file(frame.f_back.f_code.co_filename)
        if self.begins(call, not (caller and caller.startswith(CODE))):
            self.road = []
        if self.road is not None:
            if file.startswith(CODE):
                self.road.append(call)
            if self.ends(call):
                self.done.append(tuple(self.road))
                self.road = None


class Zeros:
    """A source of zero bytes."""

    size = SIZE

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` zero bytes."""
        return bytes(n)


class Memory:
    """A sink that stores an object in memory."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment, which ends the call path of a datagram."""
        self.data[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return stored bytes, for decoding."""
        return bytes(self.data[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """End the object as complete."""

    def abort(self) -> None:
        """End the object as incomplete."""


def reads_socket(call: Call, from_outside: bool) -> bool:
    """Return whether a call is one from the event loop to the host."""
    return from_outside and call[0] == "emu/host.py"


def datagram_road() -> CallPath:
    """Return the typical call path of a received datagram, from the socket to the sink."""
    loop = new_loop()
    codec, port = PROTOCOL.codec, free_port()
    hosts = [UdpHost(loop, codec(), interface=f"127.0.0.{node}", port=port, rng=Rng(node), burst=1) for node in (1, 2)]
    sending, receiving = hosts
    group = Group(f"{receiving.address}:{port}")
    recorder = Recorder(reads_socket, lambda call: call[1] == "Memory.write")

    def accept(offer: Offer) -> Sink:
        return Memory(offer.size)

    try:
        receiving.run(PROTOCOL.make_receiver(receiving, CONFIG, 2, group), lambda event: None, accept)
        sender = PROTOCOL.make_sender(sending, replace(CONFIG, rate=RATE), 1, group, 1)
        sending.run(sender, lambda event: None)
        sending.call(sender.submit, Content(Zeros()))
        sys.setprofile(recorder)
        loop.run(1.0)
    finally:
        sys.setprofile(None)
        for host in hosts:
            host.close()
        loop.close()
    return typical(recorder.done)


def takes_packet(call: Call) -> bool:
    """Return whether a call is one of a link after its construction."""
    return call[0] in LINKS and not call[1].endswith("__init__")


def ends_backoff(call: Call, from_outside: bool) -> bool:
    """Return whether a call is the wake-up of a receiver."""
    del from_outside
    return call == ("protocols/norm/receiver.py", "NormReceiver.wake")


def nack_road() -> CallPath:
    """Return the typical call path of a NACK, from `NormReceiver.wake` at the end of the back-off to the first link."""
    group = Group("all")
    link = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": "3%"}}
    topology = Star.model_validate({"kind": "star", "receivers": 3, "link": link}).build()
    network = Network(topology, seed=1, engine="strict")
    machines = []
    for node, name in enumerate(topology.hosts[1:], 2):
        host = network.host(name)
        machines.append(PROTOCOL.make_receiver(host, CONFIG, node, group))
        host.run(machines[-1], lambda event: None, lambda offer: Memory(offer.size))
    host = network.host("sender")
    sender = PROTOCOL.make_sender(host, CONFIG, 1, group, 1)
    host.run(sender, lambda event: None)
    host.call(sender.submit, Content(Zeros()))
    found = []
    sent = 0
    while network.next_at < 5.0:
        recorder = Recorder(ends_backoff, takes_packet)
        sys.setprofile(recorder)
        network.step()
        sys.setprofile(None)
        before, sent = sent, sum(machine.counts()["nacks_sent"] for machine in machines)
        if sent > before:
            found += recorder.done[:1]
    return typical(found)


def typical(roads: list[CallPath]) -> CallPath:
    """Return the path with the median number of files."""
    return sorted(roads, key=lambda road: len(files_of(road)))[(len(roads) - 1) // 2]


def files_of(road: CallPath) -> list[str]:
    """Return the files of a path, in the order of the first call."""
    return list(dict.fromkeys(file for file, _ in road))


def show(title: str, road: CallPath) -> str:
    """Return a path as text: one line for each file, in the order of the first call, with the functions called there."""
    lines = [f"  {file}: {', '.join(dict.fromkeys(name for other, name in road if other == file))}" for file in files_of(road)]
    return "\n".join([f"{title}: {len(files_of(road))} files, {len(road)} calls", *lines])


def main() -> None:
    """Record both paths and print them."""
    roads = {"datagram": datagram_road(), "nack": nack_road()}
    if "--json" in sys.argv:
        print(json.dumps({name: {"files": files_of(road), "calls": road} for name, road in roads.items()}))
        return
    print(show("a datagram, from the socket to Sink.write", roads["datagram"]))
    print(show("a NACK, from the wake-up at the end of its back-off to the link", roads["nack"]))


if __name__ == "__main__":
    main()
