"""NRL's NORM implementation as a program: a sender or a receiver of objects and streams, for tests and benchmarks.

    python -m emu.peers.nrl_norm send --iface eth0 --kind file --sizes 0 1 60000 --rate 10e6
    python -m emu.peers.nrl_norm recv --iface eth0 --expect 3 --timeout 30

Prints one JSON object for each event, and a SUMMARY at the end. Exit code 0: everything expected has happened. Object i of
`--seed S` is `random.Random("S:i").randbytes(size)`, so both ends can compute its SHA-256. Rates are in bits per second here.

With `--kind stream` the first of them is written to a stream in messages of `--message` bytes, which is closed behind the last.
"""

import argparse
import ctypes
import hashlib
import json
import os
import random
import resource
import select
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emu.peers import nrl_modes, nrl_network
from emu.peers.libnorm import ACK_SUCCESS, FLUSHES, STREAM, NormEvent, content_of, load, name_of
from emu.peers.options import add_roles
from protocols.errors import UnsupportedError, UsageError

__all__ = ["Peer", "content", "main"]

_SO_RCVBUFFORCE = 33
_COMMAND_AT = 0.03
"""Seconds until a command is sent, so that it comes between content."""
_POLL = 0.05
"""Longest wait for an event in seconds before the timeout is checked."""


def content(seed: str, index: int, size: int) -> bytes:
    """Return the bytes of object `index`."""
    return random.Random(f"{seed}:{index}").randbytes(size)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "t": round(time.monotonic(), 6), **fields}), flush=True)  # noqa: T201 - it is a program


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Peer:
    """A NORM instance with one session. Raises UnsupportedError without the library."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.lib = lib = load()
        # The library draws back-off times from rand() and never seeds it: unseeded receivers would draw equal times.
        seed = options.srand or int.from_bytes(os.urandom(4), "little")
        ctypes.CDLL(None).srand(ctypes.c_uint(seed))
        self.instance = lib.NormCreateInstance(False)
        self.session = lib.NormCreateSession(self.instance, options.addr.encode(), options.port, options.node)
        if not self.session:
            raise UsageError(f"libnorm can't create a session for {options.addr}:{options.port}")
        if options.iface:
            lib.NormSetMulticastInterface(self.session, options.iface.encode())
        if options.loopback:
            lib.NormSetMulticastLoopback(self.session, True)
            lib.NormSetRxPortReuse(self.session, True, None, None, 0)
        lib.NormSetTTL(self.session, options.ttl)
        nrl_network.apply_options(lib, self.session, options)
        if options.tx_loss:
            lib.NormSetTxLoss(self.session, options.tx_loss)
        if options.rx_loss:
            lib.NormSetRxLoss(self.session, options.rx_loss)
        self.counts: dict[str, int] = {}
        self._until = time.monotonic() + options.timeout

    def events(self) -> Iterator[tuple[str, NormEvent]]:
        """Yield the library's events until the timeout, and "" at least every 50 ms, so that the caller can check the time.

        The handles in an event are valid until the next one is requested.
        """
        event = NormEvent()
        descriptor = self.lib.NormGetDescriptor(self.instance)
        while time.monotonic() < self._until:
            while self.lib.NormGetNextEvent(self.instance, ctypes.byref(event), False):
                name = name_of(event.type)
                self.counts[name] = self.counts.get(name, 0) + 1
                yield name, event
            select.select([descriptor], [], [], _POLL)
            yield "", event

    def close(self, ok: bool, **fields: Any) -> int:
        """Print the summary, end the library, and return the exit code."""
        _emit("SUMMARY", ok=ok, cpu=round(_cpu(), 4), events=self.counts, **fields)
        self.lib.NormStopInstance(self.instance)
        self.lib.NormDestroyInstance(self.instance)
        return 0 if ok else 1


class _ObjectQueue:
    """A sender's objects, enqueued as the library has room. Data objects are kept until the library is done with them."""

    def __init__(self, peer: Peer, options: argparse.Namespace, folder: str) -> None:
        self._peer, self._options, self._folder = peer, options, folder
        self._pending = list(enumerate(options.sizes * options.count))
        self._kept: list[bytes] = []
        self.handles: dict[int, int] = {}
        """Objects by number."""
        self.last: int | None = None
        """The handle of the last object."""

    @property
    def empty(self) -> bool:
        """Whether the library has taken all objects."""
        return not self._pending

    def enqueue(self) -> None:
        """Enqueue objects until the library takes no more."""
        while self._pending:
            index, size = self._pending[0]
            handle = self._enqueue_object(index, size)
            if not handle:
                return
            self.handles[index] = self.last = handle
            del self._pending[0]

    def _enqueue_object(self, index: int, size: int) -> int:
        """Return the library's handle; 0 if it takes no more."""
        lib, session, options = self._peer.lib, self._peer.session, self._options
        name = f"{options.prefix}{index}".encode()
        path = Path(self._folder, name.decode())
        if options.kind == "file" and path.exists():
            return lib.NormFileEnqueue(session, str(path).encode(), name, len(name)) or 0
        data = content(options.seed, index, size)
        _emit("TX_OBJECT", index=index, name=name.decode(), size=size, sha256=_sha(data))
        if options.kind == "file":
            path.write_bytes(data)
            return lib.NormFileEnqueue(session, str(path).encode(), name, len(name)) or 0
        self._kept.append(data)
        # Information of no bytes is sent as such; only without a pointer there is none.
        information = (None, 0) if self._options.no_info else (name, len(name))
        return lib.NormDataEnqueue(session, data, size, *information) or 0


class _StreamQueue:
    """A sender's stream, written as the library has room."""

    def __init__(self, peer: Peer, options: argparse.Namespace) -> None:
        self._lib, self._options = peer.lib, options
        self._data = content(options.seed, 0, options.sizes[0])
        self._at = 0
        self._is_flushed = False
        self.handles: dict[int, int] = {}
        self._stream = self.last = peer.lib.NormStreamOpen(peer.session, options.stream_buffer, None, 0)
        if options.push:
            peer.lib.NormStreamSetPushEnable(self._stream, True)
        _emit("TX_OBJECT", index=0, name="stream", size=len(self._data), sha256=_sha(self._data))

    @property
    def empty(self) -> bool:
        """Whether the library has taken all bytes."""
        return self._is_flushed

    def enqueue(self) -> None:
        """Write until the library takes no more, and close the stream behind the last byte."""
        write, mark, flush = self._lib.NormStreamWrite, self._lib.NormStreamMarkEom, FLUSHES[self._options.flush]
        stream, data, size, at = self._stream, self._data, self._options.message, self._at
        while at < len(data):
            wanted = min(size - at % size, len(data) - at)
            taken = write(stream, data[at : at + wanted], wanted)
            at += taken
            if taken < wanted:
                break
            if at % size == 0:
                if flush:
                    self._lib.NormStreamFlush(stream, True, flush)
                else:
                    mark(stream)
        self._at = at
        if at == len(data) and not self._is_flushed:
            self._is_flushed = True
            if self._options.acker:
                self._lib.NormStreamFlush(stream, True, FLUSHES["active"])
            else:
                self.close()

    def close(self) -> None:
        """Close the stream behind its last byte: with a watermark, when that is acknowledged."""
        self._lib.NormStreamClose(self._stream, True)


def _tune_sender(peer: Peer, options: argparse.Namespace) -> None:
    lib, session = peer.lib, peer.session
    for node in options.acker:
        lib.NormAddAckingNode(session, node)
    for value, function in (
        (options.grtt_max, lib.NormSetGrttMax),
        (options.grtt, lib.NormSetGrttEstimate),
        (options.backoff, lib.NormSetBackoffFactor),
        (options.gsize, lib.NormSetGroupSize),
        (options.robust, lib.NormSetTxRobustFactor),
        (options.auto_parity, lib.NormSetAutoParity),
        (options.rate, lib.NormSetTxRate),
    ):
        if value is not None:
            function(session, value)
    nrl_modes.apply_sender_modes(lib, session, options)
    if options.cc:
        lib.NormSetCongestionControl(session, True, True)
        lib.NormSetTxRateBounds(session, options.rate_min, options.rate_max)
    code = (options.segment, options.block, options.parity, options.fec_id)
    if not lib.NormStartSender(session, options.instance, options.buffer, *code):
        raise UsageError(f"libnorm can't start a sender with segment, block, parity, fec id {code}")
    # Room for all objects at once, so that the library's transmit queue does not limit the measurement.
    lib.NormSetTxCacheBounds(session, 1 << 30, 8, 4096)
    lib.NormSetTxSocketBuffer(session, options.sockbuf)


def _send(options: argparse.Namespace) -> int:
    peer = Peer(options)
    _tune_sender(peer, options)
    time.sleep(options.start_delay)
    _emit("START", role="send")
    before, began, flushed = _cpu(), time.monotonic(), None
    with tempfile.TemporaryDirectory() as folder:
        command = options.command.encode()
        objects = _StreamQueue(peer, options) if options.kind == "stream" else _ObjectQueue(peer, options, folder)
        objects.enqueue()
        actions = nrl_modes.Actions(peer.lib, peer.session, options)
        acks = _Acks(peer, options)
        for name, _ in peer.events():
            if command and time.monotonic() > began + _COMMAND_AT:
                peer.lib.NormSendCommand(peer.session, command, len(command), True)
                command = b""
            if name.startswith("TX_QUEUE") or not name:
                objects.enqueue()
            if actions.perform(objects.handles):
                flushed = None
            if name == "TX_RATE_CHANGED":
                _emit(name, rate=round(peer.lib.NormGetTxRate(peer.session)))
            if objects.empty and objects.last is not None:
                acks.require(objects.last)
            if name == "TX_WATERMARK_COMPLETED":
                acks.conclude()
                if isinstance(objects, _StreamQueue):
                    objects.close()
            is_object = bool(options.acker) and not isinstance(objects, _StreamQueue)
            if (acks.done if is_object else name == "TX_FLUSH_COMPLETED") and objects.empty:
                flushed = time.monotonic() - began
            if flushed is not None and actions.are_over:
                break
        return peer.close(flushed is not None, seconds=flushed, cpu_tx=round(_cpu() - before, 4))


class _Acks:
    """A watermark behind the last object, and which nodes have acknowledged it."""

    def __init__(self, peer: Peer, options: argparse.Namespace) -> None:
        self._peer, self._options = peer, options
        self._is_set = self.done = False

    def require(self, handle: int) -> None:
        """Set the watermark, once."""
        if self._is_set or not self._options.acker:
            return
        self._is_set, lib, content = True, self._peer.lib, self._options.ack_content.encode()
        if content:
            lib.NormSetWatermarkEx(self._peer.session, handle, content, len(content), False)
        else:
            lib.NormSetWatermark(self._peer.session, handle, False)

    def conclude(self) -> None:
        """Print which nodes have acknowledged, and with which content."""
        lib, session = self._peer.lib, self._peer.session
        node, status, length = ctypes.c_uint32(0), ctypes.c_int(), ctypes.c_uint()
        lib.NormGetNextAckingNode(session, None, None)
        acknowledged: list[int] = []
        missing: list[int] = []
        contents = {}
        while lib.NormGetNextAckingNode(session, ctypes.byref(node), ctypes.byref(status)):
            (acknowledged if status.value == ACK_SUCCESS else missing).append(node.value)
            content = ctypes.create_string_buffer(1024)
            length.value = len(content)
            if lib.NormGetAckEx(session, node.value, content, ctypes.byref(length)):
                contents[str(node.value)] = content.raw[: length.value].decode("latin1")
        self.done = True
        _emit("ACKS_COMPLETED", acknowledged=sorted(acknowledged), missing=sorted(missing), contents=contents)


class _ReceptionLog:
    """Objects received, with the times of the first and the last event."""

    def __init__(self, peer: Peer, options: argparse.Namespace) -> None:
        self._peer, self._options = peer, options
        self.completed = self.aborted = self.octets = 0
        self.first = self.last = self.before = self.after = 0.0
        self._buffer = ctypes.create_string_buffer(1 << 16)
        self._parts: list[bytes] = []
        self._breaks = 0

    def record(self, name: str, event: NormEvent) -> None:
        """Record one event."""
        if name == "RX_OBJECT_NEW" and not self.first:
            self.first, self.before = time.monotonic(), _cpu()
        if name.startswith("RX_OBJECT") and self._peer.lib.NormObjectGetType(event.object) == STREAM:
            self._read(event.object)
            if name == "RX_OBJECT_COMPLETED":
                self.completed += 1
                self.last, self.after = time.monotonic(), _cpu()
                data, tail = b"".join(self._parts), self._options.tail
                digests = {} if self._options.no_hash else {"sha256": _sha(data), "tail": _sha(data[len(data) - tail :])}
                _emit(name, name="stream", size=self.octets, breaks=self._breaks, **digests)
        elif name == "RX_OBJECT_COMPLETED":
            self._complete(event.object)
        elif name == "RX_OBJECT_ABORTED":
            self.aborted += 1
            _emit(name)
        elif name == "RX_CMD_NEW":
            _emit(name, content=self._content(self._peer.lib.NormNodeGetCommand, event.sender))
        elif name == "RX_ACK_REQUEST":
            reply = self._options.ack_reply.encode()
            _emit(name, content=self._content(self._peer.lib.NormNodeGetWatermarkEx, event.sender))
            self._peer.lib.NormNodeSendAckEx(event.sender, reply, len(reply))

    @staticmethod
    def _content(function: Any, sender: int) -> str | None:
        content, length = ctypes.create_string_buffer(8192), ctypes.c_uint(8192)
        taken = function(sender, content, ctypes.byref(length))
        return content.raw[: length.value].decode("latin1") if taken else None

    def _read(self, stream: int) -> None:
        """Read what there is of a stream; behind lost bytes from the next message on."""
        lib, count = self._peer.lib, ctypes.c_uint(0)
        while True:
            count.value = len(self._buffer)
            if not lib.NormStreamRead(stream, self._buffer, ctypes.byref(count)):
                self._breaks += 1
                if not lib.NormStreamSeekMsgStart(stream):
                    return
            if not count.value:
                return
            self._parts.append(ctypes.string_at(self._buffer, count.value))
            self.octets += count.value

    def _complete(self, handle: int) -> None:
        lib = self._peer.lib
        size = lib.NormObjectGetSize(handle)
        self.completed += 1
        self.octets += size
        self.last, self.after = time.monotonic(), _cpu()
        length = lib.NormObjectGetInfoLength(handle)
        info = ctypes.create_string_buffer(length + 1)
        lib.NormObjectGetInfo(handle, info, length)
        digest = None if self._options.no_hash else _sha(content_of(lib, handle))
        name, kind = info.raw[:length].decode("latin1"), lib.NormObjectGetType(handle)
        _emit("RX_OBJECT_COMPLETED", name=name, type=kind, size=size, sha256=digest)


def _force_receive_buffers(size: int) -> None:
    """Set the receive buffers of the library's sockets beyond the system's limit, as this project's hosts do, if permitted."""
    for entry in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(entry))) as sock:
                if sock.type == socket.SOCK_DGRAM:
                    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)
        except OSError:
            # No socket, not open any more, or not permitted.
            continue


def _receive(options: argparse.Namespace) -> int:
    peer = Peer(options)
    with tempfile.TemporaryDirectory() as folder:
        peer.lib.NormSetCacheDirectory(peer.instance, f"{folder}/".encode())
        nrl_modes.apply_receiver_modes(peer.lib, peer.session, options)
        peer.lib.NormSetDefaultUnicastNack(peer.session, options.unicast_nack)
        if options.silent:
            peer.lib.NormSetSilentReceiver(peer.session, True, -1)
        if not peer.lib.NormStartReceiver(peer.session, options.buffer):
            raise UsageError("libnorm can't start a receiver")
        peer.lib.NormSetRxSocketBuffer(peer.session, options.sockbuf)
        _force_receive_buffers(options.sockbuf)
        _emit("START", role="recv")
        log = _ReceptionLog(peer, options)
        for name, event in peer.events():
            log.record(name, event)
            enough = options.expect and log.completed >= options.expect
            if enough and time.monotonic() > log.last + options.linger:
                break
        seconds = log.last - log.first
        ok = not options.expect or log.completed >= options.expect
        return peer.close(
            ok,
            completed=log.completed,
            aborted=log.aborted,
            bytes=log.octets,
            at=log.last,
            seconds=round(seconds, 6),
            mbit_s=round(log.octets * 8e-6 / seconds, 3) if seconds > 0 else None,
            cpu_rx=round(log.after - log.before, 4),
        )


def _number(text: str) -> int:
    return int(float(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="NRL's NORM library as a test peer.")
    for role, add in add_roles(parser, timeout=60.0):
        add("--ttl", type=int, default=1)
        add("--loopback", action="store_true", help="exchange packets with other programs of this machine")
        add("--tx-loss", type=float, default=0.0, help="percent")
        add("--rx-loss", type=float, default=0.0, help="percent")
        add("--srand", type=int, default=0, help="seed of the library's random numbers; 0 for a random one")
        add("--buffer", type=_number, default=64 << 20)
        add("--sockbuf", type=_number, default=16 << 20)
        nrl_network.add_options(add)
        (_sender_options if role == "send" else _receiver_options)(add)
    return parser


def _sender_options(add: Any) -> None:
    add("--kind", choices=("data", "file", "stream"), default="data")
    add("--message", type=_number, default=1000, help="bytes of a message of a stream")
    add("--flush", choices=FLUSHES, default="none", help="after each message of a stream")
    add("--stream-buffer", type=_number, default=1 << 20)
    add("--push", action="store_true", help="drop the oldest bytes of a stream rather than wait")
    add("--sizes", type=_number, nargs="+", default=[10000])
    add("--count", type=int, default=1, help="number of times the sizes are repeated")
    add("--seed", default="1")
    add("--prefix", default="object-", help="object i is named PREFIXi")
    add("--instance", type=int, default=1)
    add("--segment", type=int, default=1400)
    add("--block", type=int, default=64)
    add("--parity", type=int, default=16)
    add("--auto-parity", type=int)
    add("--fec-id", type=int, default=5)
    add("--rate", type=float, default=1e6)
    add("--grtt", type=float)
    add("--grtt-max", type=float)
    add("--backoff", type=float)
    add("--gsize", type=int)
    add("--robust", type=int)
    add("--cc", action="store_true", help="congestion control, which sets the rate")
    add("--rate-min", type=float, default=-1.0, help="lowest rate with congestion control; negative: the library's own")
    add("--rate-max", type=float, default=-1.0, help="highest rate with congestion control; negative: none")
    add("--start-delay", type=float, default=0.0)
    nrl_modes.sender_options(add)
    add("--acker", type=int, action="append", default=[], help="node that has to acknowledge the last object; repeatable")
    add("--no-info", action="store_true", help="send data objects without information")
    add("--ack-content", default="", help="application data of the request for ACKs")
    add("--command", default="", help="text sent as a robust command")


def _receiver_options(add: Any) -> None:
    add("--expect", type=int, default=0, help="end after this many objects")
    add("--linger", type=float, default=0.5, help="seconds to stay after the last object")
    add("--no-hash", action="store_true")
    nrl_modes.receiver_options(add)
    add("--unicast-nack", action="store_true", help="send feedback to the sender alone")
    add("--silent", action="store_true", help="send no feedback")
    add("--ack-reply", default="", help="application data of ACKs")
    add("--tail", type=_number, default=0, help="bytes at the end of a stream whose hash is printed, too")


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _send(options) if options.role == "send" else _receive(options)
    except UsageError as error:
        _emit("ERROR", message=str(error))
        return 2
    except UnsupportedError as error:
        _emit("ERROR", message=str(error))
        return 3


if __name__ == "__main__":
    sys.exit(main())
