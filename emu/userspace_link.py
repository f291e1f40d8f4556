"""Links in user space: a process that carries frames between TAP devices and does to them what `topologies.line` says.

Each direction of a link is a `Line`, the object the simulator uses, with the same keys; what a packet is, it is told by the
protocol's own codec. So the same packets are lost as in the simulator. UDP that the codec does not know is lost as control
packets are; other frames (ARP, IGMP) are delayed and neither lost nor counted.
"""

import gc
import json
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import CDLL, c_ulong
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any, TypeAlias

from emu.frames import Datagram, Frames, Reassembly
from emu.health import LINE_COUNTERS, Lateness
from protocols.errors import WireError
from protocols.machine import Codec
from topologies.line import Arrivals, Line
from topologies.spec import LinkSpec

__all__ = ["FrameForwarder", "LinkDirection", "serve"]

_FRAME = 2048
"""More than any frame of a device with the usual MTU of 1500."""
_MAX_BATCH = 32
"""Frames read from one device before others, and packets that are due, get their turn."""
_PR_SET_TIMERSLACK = 29
_PRIORITY = 5
_MIN_WAIT = 20e-6


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction of a link: frames read from descriptor `source` are written to `target`.

    `key` and `member` are those of the simulator's link (`topologies.keys`).
    """

    link: str
    source: int
    target: int
    spec: LinkSpec
    key: int
    member: int


_Item: TypeAlias = tuple[Frames, int | None]
"""A datagram's frames, and its identity if it is a first transmission."""


class _DirectionState:
    """A way in motion."""

    __slots__ = ("armed", "in_transit", "line", "lost", "other_delay", "reassembly", "unread_since", "target", "direction")

    def __init__(self, direction: LinkDirection) -> None:
        self.direction = direction
        self.line = Line(direction.spec, direction.key, direction.member)
        self.line.missed = self._on_loss
        self.lost: list[int] = []
        """Identities of first transmissions that the line lost or damaged."""
        self.in_transit: set[int] = set()
        """Those that went in and did not come out yet, and never will where the queue dropped them."""
        self.reassembly = Reassembly()
        self.target = direction.target
        self.armed = inf
        # A middling delay for frames that are no datagrams, and so have no dice.
        self.other_delay = direction.spec.delay if direction.spec.jitter is None else direction.spec.jitter.sample(0.5, 0)
        self.unread_since = inf
        """Since when there may have been frames that the last look left in the device; inf if it left none."""

    def _on_loss(self, item: _Item) -> None:
        _, first_sent = item
        if first_sent is not None:
            self.in_transit.discard(first_sent)
            self.lost.append(first_sent)


_Due: TypeAlias = tuple[float, int, _DirectionState, Frames | None]
"""When, order among equals, on what, and the frames to write; None wakes the line."""


class FrameForwarder:
    """Carries frames for several ways. `turn` does all that is to be done at one time; times come from `clock`.

    Before `begin` everything passes at once and is not counted.
    """

    def __init__(self, directions: Sequence[LinkDirection], codec: Codec, clock: Callable[[], float] = time.monotonic) -> None:
        self._all = [_DirectionState(direction) for direction in directions]
        self._states = {state.direction.source: state for state in self._all}
        self._decode = codec.decode
        self._clock = clock
        self._due: list[_Due] = []
        self._serial = 0
        self._begun = False
        self.lateness = Lateness()
        self.unread = 0.0
        """The longest a datagram may have waited in a device before it was read."""
        self.refused = 0
        """Frames that the device at the far end did not take, since it is down or gone."""

    @property
    def sources(self) -> list[int]:
        """The descriptors to wait for."""
        return list(self._states)

    @property
    def deadline(self) -> float:
        """When the next turn is due at the latest; inf for never."""
        return self._due[0][0] if self._due else inf

    def begin(self) -> None:
        """From now on the lines do what they are to do."""
        self._begun = True

    def step(self, readable: Sequence[int], unread_since: float) -> None:
        """Read what has come, and write what is due. At the time `since` nothing was unread but what the last turn left."""
        for source in readable:
            self._read(self._states[source], unread_since)
            self._release()
        self._release()

    def _read(self, state: _DirectionState, unread_since: float) -> None:
        source, clock, take = state.direction.source, self._clock, self._take
        unread_since = min(unread_since, state.unread_since)
        waited, before = clock() - unread_since, state.line.offered
        state.unread_since = inf
        try:
            for _ in range(_MAX_BATCH):
                take(state, os.read(source, _FRAME), clock())
            state.unread_since = unread_since
        except BlockingIOError:
            # Everything is read.
            pass
        except OSError:
            # The device is gone, with the network of its host.
            del self._states[source]
        if state.line.offered > before:
            self.unread = max(self.unread, waited)

    def _take(self, state: _DirectionState, frame: bytes, now: float) -> None:
        if not self._begun:
            self._write(state, frame)
            return
        found = state.reassembly.take(frame)
        if not isinstance(found, Datagram):
            for other in found:
                self._push(now + state.other_delay, state, other)
            return
        payload, frames = found
        identity, kind, first_sent = None, "other", None
        try:
            message = self._decode(payload)
        except WireError:
            pass
        else:
            identity, kind = message.identity, message.kind
            if identity is not None and not message.repair:
                first_sent = identity
                state.in_transit.add(identity)
        self._schedule(state, state.line.offer((frames, first_sent), len(payload), identity, kind, now))

    def _schedule(self, state: _DirectionState, arrivals: Arrivals) -> None:
        for (frames, first_sent), when in arrivals:
            if first_sent is not None:
                state.in_transit.discard(first_sent)
            self._push(when, state, frames)
        if state.line.deadline < state.armed:
            state.armed = state.line.deadline
            self._push(state.armed, state, None)

    def _push(self, when: float, state: _DirectionState, frames: Frames | None) -> None:
        self._serial += 1
        heappush(self._due, (when, self._serial, state, frames))

    def _release(self) -> None:
        due, clock, record = self._due, self._clock, self.lateness.record
        while due:
            now = clock()
            when = due[0][0]
            if when > now:
                return
            _, _, state, frames = heappop(due)
            if frames is None:
                state.armed = inf
                self._schedule(state, state.line.wake(now))
                continue
            record(now - when)
            for frame in (frames,) if isinstance(frames, bytes) else frames:
                self._write(state, frame)

    def _write(self, state: _DirectionState, frame: bytes) -> None:
        try:
            os.write(state.target, frame)
        except OSError:
            self.refused += 1

    def report(self) -> dict[str, Any]:
        """What became of the packets, way by way, and how well the process kept up; JSON-able."""
        directions = []
        for state in self._all:
            line = state.line
            counts = {name: getattr(line, name) for name in LINE_COUNTERS}
            directions.append(
                {"link": state.direction.link, **counts, "first_lost": state.lost, "first_queued": [*state.in_transit]}
            )
        return {
            "directions": directions,
            "released": self.lateness.total,
            "lateness": self.lateness.summary(),
            "unread": self.unread,
            "refused": self.refused,
        }


def serve(directions: Sequence[LinkDirection], codec: Codec, line: socket.socket) -> None:
    """Carry frames, impaired from a byte on `line` on, which is answered, until its end, which is answered by the report."""
    realtime = _raise_priority()
    gc.freeze()
    forwarder = FrameForwarder(directions, codec)
    before = _cpu()
    began = last_read = time.monotonic()
    end = line.fileno()
    while True:
        asked = time.monotonic()
        left = forwarder.deadline - asked
        readable, _, _ = select.select([end, *forwarder.sources], (), (), None if left == inf else max(0.0, left))
        woke = time.monotonic()
        if end in readable:
            if not line.recv(1):
                break
            forwarder.begin()
            line.sendall(b"b")
            readable.remove(end)
        # If it had to wait, then nothing was there before; else something may have been since the last look.
        forwarder.step(readable, woke if woke - asked > _MIN_WAIT else last_read)
        last_read = woke
    used = {"cpu": _cpu() - before, "seconds": time.monotonic() - began, "realtime": realtime}
    with suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(json.dumps({**forwarder.report(), **used}).encode())


def _raise_priority() -> bool:
    """Exact timers, and a priority above all normal processes where that is permitted; is it?"""
    CDLL(None).prctl(_PR_SET_TIMERSLACK, c_ulong(1), 0, 0, 0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    return True


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
