"""User-space links: a process forwards frames between TAP devices and impairs them as `topologies.line` describes.

Each direction of a link is a `Line`, the simulator's own object, with the simulator's keys; the protocol's codec gives the
identity and kind of a packet. So the same packets are lost as in the simulator. UDP that the codec can't decode is lost like
control packets, and so are segments of TCP without data. Segments with data and other IPv4 packets have random numbers of their
own, in the order of their arrival, since no two worlds send the same ones. What the kernels of hosts and switches send on their
own (ARP, IGMP, IPv6) is only delayed.
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

from emu.health import LINE_COUNTERS, Lateness
from protocols.errors import WireError
from protocols.machine import Codec
from topologies.frames.datagrams import Datagram, DatagramReader, Frames
from topologies.frames.ecn import marked
from topologies.frames.others import read_other
from topologies.frames.service_class import dscp_of
from topologies.line import Arrivals, Line
from topologies.spec import LinkSpec

__all__ = ["FrameForwarder", "LinkDirection", "serve"]

_FRAME = 2048
"""Read size in bytes: more than any frame of a device with an MTU of 1500."""
_MAX_BATCH = 32
"""Most frames read from one device before due frames are written and other devices are read."""
_PR_SET_TIMERSLACK = 29
_PRIORITY = 5
_MIN_WAIT = 20e-6
_OTHERS = 0xFFFFFFFF << 32
"""Identities of segments with data and of other IPv4 packets, so that their losses do not depend on control packets."""
_OWN_IDENTITY = ("segment", "other")


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction of a link: frames read from descriptor `source` are impaired and written to `target`.

    `key` and `member` are those of the simulator's link (`topologies.keys`).
    """

    link: str
    source: int
    target: int
    spec: LinkSpec
    key: int
    member: int


_Item: TypeAlias = tuple[Frames, int | None]
"""The frames of a datagram, and its identity if it is a first transmission."""


class _DirectionState:
    """A direction of a link at run time: its `Line`, reassembly, and the identities it lost."""

    __slots__ = (
        "armed",
        "direction",
        "in_transit",
        "line",
        "lost",
        "other_delay",
        "others",
        "reader",
        "target",
        "unread_since",
    )

    def __init__(self, direction: LinkDirection) -> None:
        self.direction = direction
        self.line = Line(direction.spec, direction.key, direction.member)
        self.line.missed, self.line.mark, self.line.class_of = self._on_loss, _mark, _class_of
        self.lost: list[int] = []
        """Identities of first transmissions that the line lost or damaged."""
        self.in_transit: set[int] = set()
        """Identities of first transmissions that entered and have not left; those that the queue dropped stay."""
        self.reader = DatagramReader()
        self.target = direction.target
        self.armed = inf
        self.others = 0
        """Segments with data and other frames so far that had an identity of their own."""
        # The median delay, for what is only delayed.
        self.other_delay = direction.spec.delay if direction.spec.jitter is None else direction.spec.jitter.sample(0.5, 0)
        self.unread_since = inf
        """Since when frames may wait in the device that the last read left there; inf if it left none."""

    def _on_loss(self, item: _Item) -> None:
        _, first_sent = item
        if first_sent is not None:
            self.in_transit.discard(first_sent)
            self.lost.append(first_sent)


def _mark(item: _Item) -> _Item:
    """Return a datagram that a queue has marked; of its fragments all are."""
    frames, first_sent = item
    return marked(frames) if isinstance(frames, bytes) else tuple(map(marked, frames)), first_sent


def _class_of(item: _Item) -> int:
    """Return the DSCP of a datagram; its fragments have the same."""
    frames, _ = item
    return dscp_of(frames if isinstance(frames, bytes) else frames[0])


_Due: TypeAlias = tuple[float, int, _DirectionState, Frames | None]
"""Time, serial number to break ties, direction, and the frames to write; None wakes the line."""


class FrameForwarder:
    """Forward frames for several directions; `step` does all that is due, on the time of `clock` in seconds.

    Before `begin` every frame is forwarded at once and not counted.
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
        """Longest time in seconds that a datagram may have waited in a device before it was read."""
        self.refused = 0
        """Frames that the far device did not take, because it is down or gone."""

    @property
    def sources(self) -> list[int]:
        """Descriptors to wait for."""
        return list(self._states)

    @property
    def deadline(self) -> float:
        """Time of the next `step`, in seconds; inf for none."""
        return self._due[0][0] if self._due else inf

    def begin(self) -> None:
        """Start to impair and to count."""
        self._begun = True

    def step(self, readable: Sequence[int], unread_since: float) -> None:
        """Read from the `readable` descriptors and write what is due.

        At `unread_since` no frame was waiting but those that the last step left.
        """
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
            # The device was removed with the network namespace of its host.
            del self._states[source]
        if state.line.offered > before:
            self.unread = max(self.unread, waited)

    def _take(self, state: _DirectionState, frame: bytes, now: float) -> None:
        if not self._begun:
            self._write(state, frame)
            return
        found = state.reader.take(frame)
        if not isinstance(found, Datagram):
            for other in found:
                self._take_other(state, other, now)
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

    def _take_other(self, state: _DirectionState, frame: bytes, now: float) -> None:
        """Offer a frame without UDP to the line, by its size."""
        found = read_other(frame)
        if found is None:
            self._push(now + state.other_delay, state, frame)
            return
        identity = None
        if found.kind in _OWN_IDENTITY:
            identity = _OTHERS | state.others
            state.others += 1
        self._schedule(state, state.line.offer((frame, None), found.size, identity, found.kind, now))

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
        """Return the counts of each direction and how well the process kept up, JSON-able."""
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


def serve(directions: Sequence[LinkDirection], codec: Codec, control: socket.socket) -> None:
    """Run a link process until the other end of `control` shuts down, then send the report there.

    The first byte on `control` starts the impairments and is answered by one.
    """
    realtime = _raise_priority()
    gc.freeze()
    forwarder = FrameForwarder(directions, codec)
    before = _cpu()
    began = last_read = time.monotonic()
    end = control.fileno()
    while True:
        asked = time.monotonic()
        left = forwarder.deadline - asked
        readable, _, _ = select.select([end, *forwarder.sources], (), (), None if left == inf else max(0.0, left))
        woke = time.monotonic()
        if end in readable:
            if not control.recv(1):
                break
            forwarder.begin()
            control.sendall(b"b")
            readable.remove(end)
        # If select blocked, nothing was waiting before; else frames may wait since the last read.
        forwarder.step(readable, woke if woke - asked > _MIN_WAIT else last_read)
        last_read = woke
    used = {"cpu": _cpu() - before, "seconds": time.monotonic() - began, "realtime": realtime}
    with suppress(BrokenPipeError, ConnectionResetError):
        control.sendall(json.dumps({**forwarder.report(), **used}).encode())


def _raise_priority() -> bool:
    """Set exact timers and real-time scheduling (sched(7)). Returns whether real-time scheduling was permitted."""
    CDLL(None).prctl(_PR_SET_TIMERSLACK, c_ulong(1), 0, 0, 0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    return True


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
