"""This project's NORM as a program for tests of its modes: every parameter, and what is done with objects meanwhile.

    python -m tests.emu.mode_node send --iface eth0 --sizes 60000 60000 --set fti=info --act cancel:1:0.2
    python -m tests.emu.mode_node recv --iface eth0 --expect 1 --set join=all

The content and the options are those of `emu.peers.nrl_norm`; it prints a JSON object for each event, and a SUMMARY.
"""

import argparse
import hashlib
import json
import sys
import time
from mmap import mmap
from typing import Any

from benchmarks.norm_node import Memory
from emu.host import UdpHost
from emu.loop import new_loop
from emu.peers.nrl_norm import content
from emu.peers.options import add_roles
from emu.udp_options import UdpOptions
from experiments.scenario.protocol_choice import ProtocolChoice
from protocols.events import FlushCompleted, ObjectAborted, ObjectReceived, ObjectsAborted, SenderReset
from protocols.machine import Content, Event, Group, Offer, Sink
from protocols.registry import protocol
from protocols.rng import Rng

NORM = protocol("norm")
QUICK = {"rate": "8Mbit", "grtt": "10ms", "grtt_max": "100ms", "backoff": 2, "gsize": 10, "robust": 30, "parity": 16}


def _emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


class _Node:
    """A host on an interface, and the parameters."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.loop = new_loop()
        rows = [row.split("=") for row in options.set]
        given = {key: int(value) if value.isdigit() else value for key, value in rows}
        self.config = ProtocolChoice.of("norm", {**QUICK, **given}).config
        self.group = Group(f"{options.addr}:{options.port}")
        key, network = time.monotonic_ns(), UdpOptions(loopback=False)
        self.host = UdpHost(self.loop, NORM.codec(), interface=options.iface, port=0, rng=Rng(key), options=network)
        self.events: list[Event] = []

    def conclude(self, *, ok: bool) -> int:
        """Print the summary and return the exit code."""
        kinds = [type(event).__name__ for event in self.events]
        _emit("SUMMARY", ok=ok, counts=self.host.counters(), events={kind: kinds.count(kind) for kind in kinds})
        return 0 if ok else 1


def _send(options: argparse.Namespace) -> int:
    node, flushed = _Node(options), False
    sender = NORM.make_sender(node.host, node.config, options.node, node.group, options.instance)
    begun, acts = time.monotonic(), sorted((float(when), verb, int(number)) for verb, number, when in options.act)

    def look() -> None:
        nonlocal flushed
        passed = time.monotonic() - begun
        if acts and acts[0][0] <= passed:
            _, verb, number = acts.pop(0)
            assert node.host.call(getattr(sender, verb), number), verb
            flushed = False
        if flushed and not acts and passed >= options.stay:
            node.loop.stop()
        else:
            node.loop.call_later(0.01, look)

    def on_event(event: Event) -> None:
        nonlocal flushed
        node.events.append(event)
        flushed = flushed or isinstance(event, FlushCompleted)

    node.host.run(sender, on_event)
    for index, size in enumerate(options.sizes):
        data = content("1", index, size)
        node.host.call(sender.submit, Content(Memory(data), f"object-{index}".encode()))
    look()
    node.loop.run(options.timeout)
    return node.conclude(ok=flushed)


def _receive(options: argparse.Namespace) -> int:
    node, left = _Node(options), options.expect
    sinks: dict[tuple[int, int], Memory] = {}

    def accept(offer: Offer) -> Sink:
        sink = sinks[offer.sender, offer.object_id] = Memory(mmap(-1, offer.size) if offer.size else b"")
        return sink

    def on_event(event: Event) -> None:
        nonlocal left
        node.events.append(event)
        if isinstance(event, ObjectReceived):
            data = bytes(sinks[event.sender, event.object_id].data)
            digest = hashlib.sha256(data).hexdigest()
            _emit("RX_OBJECT_COMPLETED", name=event.info.decode(), sender=event.sender, size=event.size, sha256=digest)
            left -= 1
            if not left:
                node.loop.call_later(options.linger, node.loop.stop)
        elif isinstance(event, (ObjectAborted, ObjectsAborted, SenderReset)):
            _emit(type(event).__name__, what=str(event))

    node.host.run(NORM.make_receiver(node.host, node.config, options.node, node.group), on_event, accept)
    _emit("START")
    node.loop.run(options.timeout)
    return node.conclude(ok=left <= 0)


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="This project's NORM with all its parameters.")
    for _, add in add_roles(parser, timeout=20.0):
        add("--set", nargs="*", default=[], metavar="KEY=VALUE")
        add("--instance", type=int, default=1)
        add("--sizes", type=int, nargs="+", default=[10000])
        add("--act", nargs="*", default=[], type=lambda text: text.split(":"), metavar="VERB:OBJECT:SECONDS")
        add("--stay", type=float, default=0.0)
        add("--expect", type=int, default=1)
        add("--linger", type=float, default=0.0)
    options = parser.parse_args()
    return _send(options) if options.role == "send" else _receive(options)


if __name__ == "__main__":
    sys.exit(main())
