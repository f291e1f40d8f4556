"""This project's NORM as a program with the options and the output of `emu.peers.nrl_norm`, as far as goodput needs them.

    python -m benchmarks.norm_node send --iface eth0 --sizes 60000 --rate 10e6
    python -m benchmarks.norm_node recv --iface eth0 --expect 1 --timeout 30

The content is the same, too: object i of `--seed S` is `random.Random("S:i").randbytes(size)`, and with `--kind stream` the
first of them is written to a stream in messages of `--message` bytes.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from mmap import mmap
from typing import Any

from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.peers.nrl_norm import content
from emu.peers.options import add_roles
from emu.udp_options import UdpOptions
from protocols.acknowledgement import AckReceiver, AckRequest, AckSender, CommandSender
from protocols.events import AcksCompleted, CommandReceived, FlushCompleted, NodeAcknowledged, ObjectOpened, ObjectReceived
from protocols.machine import Content, Event, Group, Machine, Offer, Sender, Sink
from protocols.norm import NormReceiver, NormSender
from protocols.norm.congestion.controller import CongestionControl
from protocols.norm.congestion.states import FeedbackState
from protocols.registry import protocol
from protocols.rng import Rng
from protocols.stream import FLUSHES, StreamReceiver, StreamSettings, StreamSink
from protocols.stream_writer import StreamWriter

__all__ = ["main"]

NORM = protocol("norm")


class Memory:
    """Content in memory: a source and a sink."""

    def __init__(self, data: bytes | mmap) -> None:
        self.size = len(data)
        self.data = data
        self._view = memoryview(data)
        self.aborted = False

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`."""
        return bytes(self._view[offset : offset + n])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store bytes at `offset`."""
        self._view[offset : offset + len(data)] = data

    def commit(self, info: bytes) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """End the object."""
        self.aborted = True


def _emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "t": time.monotonic(), **fields}), flush=True)


def _host(loop: Loop, options: argparse.Namespace) -> UdpHost:
    rng = Rng(int.from_bytes(os.urandom(8)))
    # Unicast to this node is not part of the comparison, so its port is any.
    return UdpHost(loop, NORM.codec(), interface=options.iface, port=0, rng=rng, options=UdpOptions(loopback=False))


def _group(options: argparse.Namespace) -> Group:
    return Group(f"{options.addr}:{options.port}")


def _congestion(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of congestion control, which sets the rate within the bounds."""
    if options.congestion == "none":
        return {}
    bounds = {"rate_min": options.rate_min / 8, "rate_max": options.rate_max / 8}
    return {"congestion": options.congestion, "fair_to": options.fair_to, **bounds}


def _control(sender: Sender) -> CongestionControl:
    assert isinstance(sender, NormSender)
    assert sender.congestion is not None
    return sender.congestion


def _feedback(receiver: Machine) -> FeedbackState | None:
    """Return what the receiver knows of the first sender."""
    assert isinstance(receiver, NormReceiver)
    return next((sender.feedback_state() for sender in receiver.senders()), None)


def _report(host: UdpHost, interval: float, state: Callable[[], Any]) -> None:
    """Print the state of congestion control at intervals of so many seconds; None: there is none yet."""

    def report() -> None:
        found = state()
        if found is not None:
            _emit("CONGESTION", **found._asdict())
        host.later(host.now + interval, report)

    report()


def _sender_config(options: argparse.Namespace) -> Any:
    return NORM.config(
        rate=options.rate / 8,
        segment=options.segment,
        block=options.block,
        parity=options.parity,
        fec=options.fec_id if options.block + options.parity <= 255 else 2,
        fec_m=8 if options.block + options.parity <= 255 else 16,
        flow=options.flow,
        grtt=options.grtt,
        grtt_max=options.grtt_max,
        backoff=options.backoff,
        gsize=options.gsize,
        robust=options.robust,
        auto_parity=options.auto_parity,
        **_congestion(options),
    )


def _send(options: argparse.Namespace) -> int:
    contents = [content(options.seed, index, size) for index, size in enumerate(options.sizes)]
    loop = new_loop()
    host = _host(loop, options)
    sender = NORM.make_sender(host, _sender_config(options), 1, _group(options), 1)
    flushed: list[float] = []
    streams: list[_StreamSource] = []
    answers: dict[int, str] = {}

    def on_event(event: Event) -> None:
        for stream in streams:
            stream.writer.on_event(event)
        if isinstance(event, NodeAcknowledged):
            answers[event.node] = event.content.decode("latin1")
        elif isinstance(event, AcksCompleted):
            _emit("ACKS_COMPLETED", acknowledged=event.acknowledged, missing=event.missing, contents=answers)
        elif isinstance(event, FlushCompleted):
            flushed.append(host.now)
            loop.stop()

    for index, data in enumerate(contents):
        _emit("TX_OBJECT", index=index, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    before = time.process_time()
    host.run(sender, on_event)
    if options.command:
        assert isinstance(sender, CommandSender)
        # Between content, as the peer does.
        host.later(0.03, partial(_command, host, sender, options.command.encode()))
    if options.congestion != "none":
        _report(host, options.report, lambda: _control(sender).state)
    if options.kind == "stream":
        streams.append(_StreamSource(host, sender, contents[0], options))
    else:
        _submit(host, sender, contents, options)
    loop.run(options.timeout)
    used = time.process_time() - before
    _emit("SUMMARY", ok=bool(flushed), cpu_tx=round(used, 4), counts=host.counters(), faults=host.faults)
    return 0 if flushed else 1


def _submit(host: UdpHost, sender: Sender, contents: list[bytes], options: argparse.Namespace) -> None:
    """Submit all objects, and have the last one acknowledged."""
    last = 0
    for index, data in enumerate(contents):
        info = b"" if options.no_info else f"object-{index}".encode()
        last = host.call(sender.submit, Content(Memory(data), info, is_file=options.kind == "file"))
    if options.acker:
        _require_acks(host, sender, last, options)


def _command(host: UdpHost, sender: CommandSender, content: bytes) -> None:
    host.call(sender.send_command, content, 0)


def _require_acks(host: UdpHost, sender: Any, object_id: int, options: argparse.Namespace) -> None:
    assert isinstance(sender, AckSender)
    request = AckRequest(tuple(options.acker), content=options.ack_content.encode(), replaces_flush=True)
    host.call(sender.require_acks, object_id, request)


_AT_ONCE = 1 << 18
"""Bytes written to a stream before the host sends again."""


class _StreamSource:
    """Writes content to a stream, a message at a time, as there is room."""

    def __init__(self, host: UdpHost, sender: Any, data: bytes, options: argparse.Namespace) -> None:
        self._host, self._data, self._size, self._flush, self._at = host, data, options.message, options.flush, 0
        self._sender, self._options = sender, options
        self.writer = StreamWriter(host, sender, StreamSettings(options.stream_buffer), self._write)
        self._write()

    def _write(self) -> None:
        data, size, writer, at, end = self._data, self._size, self.writer, self._at, len(self._data)
        write, is_flushed, stop = writer.write, self._flush != "none", min(self._at + _AT_ONCE, len(self._data))
        while at < stop:
            is_full = write(data[at : at + size])
            at += size
            if is_flushed:
                writer.flush(self._flush)
                is_full = writer.is_full
            if is_full:
                break
        self._at = at
        if at >= end:
            writer.close()
            if self._options.acker:
                _require_acks(self._host, self._sender, 0, self._options)
        elif not writer.is_full:
            # The host sends meanwhile.
            self._host.later(self._host.now, self._write)


class _StreamSink:
    """Keeps a received stream."""

    by_message = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.breaks = self.size = 0

    @property
    def data(self) -> bytes:
        """All bytes received."""
        return b"".join(self._parts)

    def write(self, data: bytes, starts: Sequence[int]) -> None:
        """Keep the bytes."""
        self._parts.append(data)
        self.size += len(data)

    def skip(self) -> None:
        """Count lost bytes."""
        self.breaks += 1

    def commit(self, info: bytes) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class _Reception:
    """Objects received, and the time of the last."""

    def __init__(self, loop: Loop, expected: int, linger: float) -> None:
        self._loop = loop
        self._linger = linger
        self._left = expected
        self._sinks: dict[tuple[int, int], Memory | _StreamSink] = {}
        self.received: list[tuple[int, str, Memory | _StreamSink]] = []
        self.last = self.before = 0.0

    def accept(self, offer: Offer) -> Sink:
        """Return a sink in memory."""
        # Its pages are taken as they are written, as those of an array in C.
        sink = self._sinks[offer.sender, offer.object_id] = Memory(mmap(-1, offer.size) if offer.size else b"")
        return sink

    def accept_stream(self, offer: Offer) -> StreamSink:
        """Return a sink in memory."""
        sink = self._sinks[offer.sender, offer.object_id] = _StreamSink()
        return sink

    def on_event(self, event: Event) -> None:
        """Record an event; end the loop with the last object expected."""
        if isinstance(event, CommandReceived):
            _emit("RX_CMD_NEW", content=event.content.decode("latin1"))
        elif isinstance(event, ObjectOpened):
            self.before = self.before or time.process_time()
        elif isinstance(event, ObjectReceived):
            self.last = time.monotonic()
            sink = self._sinks[event.sender, event.object_id]
            name = "stream" if isinstance(sink, _StreamSink) else event.info.decode()
            self.received.append((event.object_id, name, sink))
            self._left -= 1
            if not self._left:
                self._loop.call_later(self._linger, self._loop.stop)


def _answer(reply: bytes, sender: int, content: bytes) -> bytes:
    del sender
    _emit("RX_ACK_REQUEST", content=content.decode("latin1"))
    return reply


def _receive(options: argparse.Namespace) -> int:
    loop = new_loop()
    host = _host(loop, options)
    config = NORM.config(buffer=options.buffer, feedback=options.feedback, **_congestion(options))
    log = _Reception(loop, options.expect, options.linger)
    receiver = NORM.make_receiver(host, config, options.node, _group(options))
    assert isinstance(receiver, StreamReceiver)
    receiver.accept_streams(log.accept_stream)
    assert isinstance(receiver, AckReceiver)
    receiver.answer_acks(partial(_answer, options.ack_reply.encode()))
    host.run(receiver, log.on_event, log.accept)
    if options.congestion != "none":
        _report(host, options.report, lambda: _feedback(receiver))
    _emit("START", role="recv")
    loop.run(options.timeout)
    used, octets = time.process_time() - log.before, sum(sink.size for *_, sink in log.received)
    for number, name, sink in log.received:
        digest = hashlib.sha256(sink.data).hexdigest()
        breaks = sink.breaks if isinstance(sink, _StreamSink) else 0
        _emit("RX_OBJECT_COMPLETED", index=number, name=name, size=sink.size, sha256=digest, breaks=breaks)
    _emit(
        "SUMMARY",
        ok=len(log.received) == options.expect,
        bytes=octets,
        at=log.last,
        cpu_rx=round(used, 4),
        counts=host.counters(),
        faults=host.faults,
    )
    return 0 if len(log.received) == options.expect else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="This project's NORM as a test peer.")
    for role, add in add_roles(parser, timeout=60.0):
        add("--congestion", default="none")
        add("--fair-to", default="reno")
        add("--rate-min", type=float, default=0.0)
        add("--rate-max", type=float, default=8e12)
        add("--report", type=float, default=0.25, help="seconds between reports of congestion control")
        (_sender_options if role == "send" else _receiver_options)(add)
    return parser


def _sender_options(add: Any) -> None:
    add("--sizes", type=partial(int, base=10), nargs="+", default=[10000])
    add("--kind", choices=("data", "file", "stream"), default="data")
    add("--message", type=int, default=1000, help="bytes of a message of a stream")
    add("--flush", choices=FLUSHES, default="none", help="after each message of a stream")
    add("--stream-buffer", type=int, default=1 << 20)
    add("--fec-id", type=int, default=5)
    add("--flow", type=float, default=2.0)
    add("--seed", default="1")
    add("--segment", type=int, default=1400)
    add("--block", type=int, default=64)
    add("--parity", type=int, default=16)
    add("--rate", type=float, default=1e6)
    add("--grtt", type=float, default=0.5)
    add("--grtt-max", type=float, default=10.0)
    add("--backoff", type=int, default=4)
    add("--gsize", type=int, default=1000)
    add("--robust", type=int, default=20)
    add("--auto-parity", type=int, default=0)
    add("--acker", type=int, action="append", default=[], help="node that has to acknowledge the last object; repeatable")
    add("--no-info", action="store_true", help="send objects without information")
    add("--ack-content", default="", help="application data of the request for ACKs")
    add("--command", default="", help="text sent as a robust command")


def _receiver_options(add: Any) -> None:
    add("--expect", type=int, default=1, help="end after this many objects")
    add("--buffer", type=int, default=64 << 20)
    add("--linger", type=float, default=0.0, help="seconds to stay after the last object")
    add("--feedback", choices=("multicast", "unicast", "none"), default="multicast")
    add("--ack-reply", default="", help="application data of ACKs")


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(arguments)
    return _send(options) if options.role == "send" else _receive(options)


if __name__ == "__main__":
    sys.exit(main())
