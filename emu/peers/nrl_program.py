"""NRL's NORM library as a node of an emulation: a sender or a receiver with the parameters of this project's own.

The library is loaded in the node's process only: its threads would not survive a fork.
"""

import ctypes
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from emu.addresses import socket_address_of
from emu.foreign_program import ForeignContext, ForeignProgram, write_content
from emu.peers.libnorm import NormEvent, content_of, load, name_of
from emu.peers.meter import Meter
from protocols.errors import UsageError
from protocols.machine import Content, Group
from protocols.norm.config import NormConfig
from protocols.norm.wire.codec import NormCodec
from protocols.rng import key_of

__all__ = ["NrlReceiverProgram", "NrlSenderProgram"]

_BUFFER = 64 << 20
"""Bytes of the library's buffer for symbols."""
_SOCKET_BUFFER = 8 << 20
_PROBING = {"none": 0, "passive": 1, "active": 2}
_COUNTED = {"sender": ("data_sent", "repairs_sent", "nacks_received"), "receiver": ("nacks_sent",)}
"""Counters of the meter by role; what the library does without a packet, such as suppressed NACKs, it does not count."""


class _NrlNode(ForeignProgram):
    """A node that runs libnorm1: instance, session, events, and the traffic meter."""

    def __init__(self, config: NormConfig, node: int, group: Group, seed: int) -> None:
        self._config, self._node, self._group, self._seed = config, node, group, seed
        self._events: Counter[str] = Counter()

    def prepare(self, context: ForeignContext) -> None:
        """Create the session on the host's device."""
        self._context = context
        self._lib = lib = load()
        # The library draws back-off times from rand() and never seeds it.
        ctypes.CDLL(None).srand(ctypes.c_uint(key_of(self._seed, "libnorm", context.name) & 0xFFFFFFFF))
        address, port, *_ = socket_address_of(self._group.name)
        device = context.device
        self._meter = Meter(context.loop, device, NormCodec())
        self._instance = lib.NormCreateInstance(False)
        self._session = lib.NormCreateSession(self._instance, address.encode(), port, self._node)
        if not self._session:
            raise UsageError(f"libnorm can't create a session for {address}:{port}")
        lib.NormSetMulticastInterface(self._session, device.encode())
        lib.NormSetTTL(self._session, context.ttl)
        self._prepare()
        context.loop.add_reader(lib.NormGetDescriptor(self._instance), self._poll)
        context.ready()

    def _prepare(self) -> None:
        """Start receiving, or prepare what is to be sent."""

    def _poll(self) -> None:
        event = NormEvent()
        while self._lib.NormGetNextEvent(self._instance, ctypes.byref(event), False):
            name = name_of(event.type)
            self._events[name] += 1
            self._on_event(name, event)

    def _on_event(self, name: str, event: NormEvent) -> None:
        """Handle one event; its handles are valid until the next one is requested."""

    def close(self) -> None:
        """End the library's threads and the meter."""
        self._poll()
        self._context.loop.remove_reader(self._lib.NormGetDescriptor(self._instance))
        self._lib.NormStopInstance(self._instance)
        self._lib.NormDestroyInstance(self._instance)
        self._meter.close()

    def counters(self) -> dict[str, int]:
        """Return the counters of the meter."""
        return self._meter.counters()

    def kill(self) -> None:
        """Stop the meter; the library's threads are killed with the process."""
        self._poll()
        self._meter.close()

    def _report(self, role: str, **values: Any) -> dict[str, Any]:
        counts = {name: self._meter.counts[name] for name in _COUNTED[role]}
        if role == "receiver":
            counts |= self._meter.losses
        return {"role": role, "counts": counts, "meter": self._meter.report(), "events": dict(self._events), **values}


class NrlSenderProgram(_NrlNode):
    """Sends each content as a file at its time, one after the other."""

    def __init__(self, config: NormConfig, node: int, group: Group, seed: int, jobs: Sequence[tuple[float, Content]]) -> None:
        super().__init__(config, node, group, seed)
        self._jobs = jobs
        self._paths: list[Path] = []
        self._enqueued = 0
        self._due = 0
        self._ended_at: float | None = None

    def _prepare(self) -> None:
        for number, (_, content) in enumerate(self._jobs):
            self._paths.append(self._context.folder / f"object-{number}")
            write_content(content, self._paths[-1])
        # A sender probes from its start on, so it is started at time 0.
        self._context.later(0.0, self._start)

    def _start(self) -> None:
        lib, session, config = self._lib, self._session, self._config
        lib.NormSetGrttMax(session, config.grtt_max)
        lib.NormSetGrttEstimate(session, config.grtt)
        lib.NormSetGrttProbingMode(session, _PROBING[config.probing])
        lib.NormSetGrttProbingInterval(session, config.probe_min, config.probe_max)
        lib.NormSetBackoffFactor(session, config.backoff)
        lib.NormSetGroupSize(session, config.gsize)
        lib.NormSetTxRobustFactor(session, config.robust)
        lib.NormSetAutoParity(session, config.auto_parity)
        lib.NormSetTxRate(session, config.rate * 8)
        code = (config.segment, config.block, config.parity, config.fec)
        if not lib.NormStartSender(session, 1 + self.crashes, _BUFFER, *code):
            raise UsageError(f"libnorm can't start a sender with segment, block, parity, fec {code}")
        lib.NormSetTxCacheBounds(session, config.cache_size, config.cache_min, config.cache_max)
        lib.NormSetTxSocketBuffer(session, _SOCKET_BUFFER)
        for at, _ in self._jobs:
            self._context.later(at, self._on_due)

    def _on_due(self) -> None:
        self._due += 1
        self._enqueue()

    def _enqueue(self) -> None:
        """Enqueue what is due until the library takes no more."""
        while self._enqueued < self._due:
            info = self._jobs[self._enqueued][1].info
            path = str(self._paths[self._enqueued]).encode()
            if not self._lib.NormFileEnqueue(self._session, path, info, len(info)):
                return
            self._enqueued += 1
            self._ended_at = None

    def _on_event(self, name: str, event: NormEvent) -> None:
        if name.startswith("TX_QUEUE"):
            self._enqueue()
        elif name == "TX_FLUSH_COMPLETED" and self._enqueued == len(self._jobs) <= self._events["TX_OBJECT_SENT"]:
            self._ended_at = self._context.now

    def finished(self) -> bool:
        """Return whether everything is sent and flushed."""
        return self._ended_at is not None

    def result(self) -> dict[str, Any]:
        """Return the result in the form of `SenderProgram`; the library numbers objects from 0."""
        sent = [[number, number] for number in range(self._enqueued)]
        return self._report("sender", ended_at=self._ended_at, sent=sent, failures=[])


class NrlReceiverProgram(_NrlNode):
    """Receives every object and keeps its size and digest."""

    def __init__(self, config: NormConfig, node: int, group: Group, seed: int) -> None:
        super().__init__(config, node, group, seed)
        self._files: list[list[Any]] = []
        self._first_at: float | None = None
        self._last_at: float | None = None

    def _prepare(self) -> None:
        self._lib.NormSetCacheDirectory(self._instance, f"{self._context.folder}/".encode())
        if not self._lib.NormStartReceiver(self._session, _BUFFER):
            raise UsageError("libnorm can't start a receiver")
        self._lib.NormSetRxSocketBuffer(self._session, _SOCKET_BUFFER)

    def _on_event(self, name: str, event: NormEvent) -> None:
        if name == "RX_OBJECT_NEW" and self._first_at is None:
            self._first_at = self._context.now
        elif name == "RX_OBJECT_COMPLETED":
            self._last_at = self._context.now
            data = content_of(self._lib, event.object)
            self._files.append([len(data), sha256(data).hexdigest()])

    def finished(self) -> bool:
        """Never: a receiver runs until the run ends."""
        return False

    def result(self) -> dict[str, Any]:
        """Return the result in the form of `ReceiverProgram`; objects are identified by their digests."""
        aborted = self._events["RX_OBJECT_ABORTED"]
        return self._report(
            "receiver",
            files=self._files,
            first_at=self._first_at,
            last_at=self._last_at,
            duplicates=0,
            aborted=aborted,
        )
