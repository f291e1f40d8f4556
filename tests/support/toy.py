"""A complete, tiny protocol: numbered segments, an END that is repeated, NACKs after a random wait.

The contract suite runs it beside the real protocols, and `tests/contract/test_mutants.py` breaks it in many ways, which the
suite has to detect. It is also the shortest example of a machine.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, ClassVar

from protocols.errors import WireError
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectReceived, ObjectSent
from protocols.machine import Address, Content, Group, Machine, Message, Offer, Packet, Ports, Sender, Sink
from protocols.settings import check, setting
from protocols.spec import ProtocolSpec

__all__ = ["TOY", "ToyCodec", "ToyConfig", "ToyData", "ToyEnd", "ToyNack", "ToyReceiver", "ToySender"]

_HEAD = struct.Struct("!4sBIHI")
_MAGIC = b"TOY1"


@dataclass(frozen=True, slots=True)
class ToyConfig:
    """Parameters of the toy protocol."""

    rate: float = setting(1e6, "rate", 1.0, 1e12)
    segment: int = setting(1000, "bytes", 1, 60_000)
    wait: float = setting(0.02, "seconds", 1e-3, 10.0)
    robust: int = setting(10, "count", 1, 1000)

    def __post_init__(self) -> None:
        check(self)


@dataclass(slots=True)
class ToyData(Message):
    """Segment `index` of an object; `payload` is None for counted content."""

    kind: ClassVar[str] = "data"
    sender: int
    object_id: int
    index: int
    payload: bytes | None
    length: int
    identity: int | None = None


@dataclass(slots=True)
class ToyEnd(Message):
    """End of an object that was sent: `size` bytes in segments of `segment`."""

    kind: ClassVar[str] = "end"
    sender: int
    object_id: int
    size: int
    segment: int
    info: bytes


@dataclass(slots=True)
class ToyNack(Message):
    """Request for missing segments."""

    kind: ClassVar[str] = "nack"
    sender: int
    object_id: int
    missing: tuple[int, ...]


class ToyCodec:
    """Encodes a fixed header (magic, kind, sender, object, number) and the fields of the kind."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload."""
        if isinstance(message, ToyData):
            assert message.payload is not None
            return _HEAD.pack(_MAGIC, 1, message.sender, message.object_id, message.index) + message.payload
        if isinstance(message, ToyEnd):
            head = _HEAD.pack(_MAGIC, 2, message.sender, message.object_id, message.size)
            return head + struct.pack("!I", message.segment) + message.info
        assert isinstance(message, ToyNack)
        head = _HEAD.pack(_MAGIC, 3, message.sender, message.object_id, len(message.missing))
        return head + struct.pack(f"!{len(message.missing)}I", *message.missing)

    def decode(self, data: bytes) -> Message:
        """Decode a UDP payload; raises WireError and nothing else."""
        try:
            magic, kind, sender, object_id, number = _HEAD.unpack_from(data)
            body = data[_HEAD.size :]
            if magic == _MAGIC and kind == 1:
                return ToyData(sender, object_id, number, body, len(body), identity_of(sender, object_id, number))
            if magic == _MAGIC and kind == 2:
                segment = struct.unpack_from("!I", body)[0]
                if not segment:
                    raise WireError("a segment of no bytes")
                return ToyEnd(sender, object_id, number, segment, body[4:])
            if magic == _MAGIC and kind == 3:
                return ToyNack(sender, object_id, struct.unpack(f"!{number}I", body))
        except struct.error as error:
            raise WireError(str(error)) from error
        raise WireError(f"no toy message: {data[:8]!r}")


def identity_of(sender: int, object_id: int, index: int) -> int:
    """Return a number that is dense per object."""
    return (sender & 0xFFFF) << 48 | object_id << 32 | index


class ToySender(Sender):
    """Sends objects one after another, then END until `robust` of them are unanswered."""

    __slots__ = ("config", "contents", "current", "ends", "full", "group", "nacks", "node", "queue", "reported", "sent")

    def __init__(self, ports: Ports, config: ToyConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports)
        self.config, self.node, self.group = config, node, group
        self.contents: list[Content] = []
        self.current = 0
        self.queue: list[int] = []
        self.ends = self.sent = self.nacks = 0
        self.reported = -1
        self.full = False

    def start(self, now: float) -> None:
        """Join the group to receive NACKs."""
        self.ports.join(self.group)

    def submit(self, content: Content, now: float) -> int:
        """Queue an object."""
        self.contents.append(content)
        if self.current == len(self.contents) - 1:
            self._open(now)
        return len(self.contents) - 1

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Answer a NACK for the current object and ignore all other messages."""
        if not isinstance(message, ToyNack) or message.sender != self.node or message.object_id != self.current:
            return
        if self.current == len(self.contents):
            return
        self.nacks += 1
        count = -(-self.contents[self.current].source.size // self.config.segment)
        wanted = {index for index in message.missing if index < count}
        self.queue = sorted(wanted.union(self.queue))
        self.ends = 0
        if not self.full:
            self._due(min(self.deadline, now + self.config.wait))

    def resume(self, now: float) -> None:
        """Continue after a full network."""
        if self.full:
            self.full = False
            self._due(now + self.config.wait)

    def wake(self, now: float) -> None:
        """Send everything that is due."""
        while self.deadline <= now:
            if self.queue:
                self._send_data(self.queue.pop(0))
            elif self.ends < self.config.robust:
                self._send_end()
            else:
                self._close(now)

    def counts(self) -> dict[str, int]:
        """Return the number of segments sent and NACKs received."""
        return {"data_sent": self.sent, "nacks_received": self.nacks}

    def _open(self, now: float) -> None:
        size = self.contents[self.current].source.size
        self.queue = list(range(-(-size // self.config.segment)))
        self.ends = 0
        if not self.full:
            self._due(now + self.config.wait)

    def _close(self, now: float) -> None:
        self.ports.notify(ObjectPurged(self.current))
        self.current += 1
        if self.current < len(self.contents):
            self._open(now)
        else:
            self.ports.notify(FlushCompleted(self.current - 1))
            self._due(inf)

    def _send_data(self, index: int) -> None:
        source, offset = self.contents[self.current].source, index * self.config.segment
        length = min(self.config.segment, source.size - offset)
        identity = identity_of(self.node, self.current, index)
        message = ToyData(self.node, self.current, index, source.read(offset, length), length, identity)
        self.sent += 1
        size = _HEAD.size + length
        self._send_packet(Packet(message, size, self.group), size / self.config.rate)

    def _send_end(self) -> None:
        content = self.contents[self.current]
        if self.reported < self.current:
            self.reported = self.current
            self.ports.notify(ObjectSent(self.current))
        self.ends += 1
        message = ToyEnd(self.node, self.current, content.source.size, self.config.segment, content.info)
        self._send_packet(Packet(message, _HEAD.size + 4 + len(content.info), self.group), 3 * self.config.wait)

    def _send_packet(self, packet: Packet, pause: float) -> None:
        self.full = bool(self.ports.send(packet))
        self._due(inf if self.full else self.deadline + pause)


@dataclass(slots=True)
class _Object:
    """Receiver state of one object."""

    held: dict[int, bytes | None]
    end: ToyEnd | None = None
    nack_at: float = inf
    done: bool = False


class ToyReceiver(Machine):
    """Keeps received segments and, after END and a random wait, requests the missing ones."""

    __slots__ = ("config", "group", "nacks", "objects")

    def __init__(self, ports: Ports, config: ToyConfig, node: int, group: Group) -> None:
        super().__init__(ports)
        self.config, self.group = config, group
        self.objects: dict[tuple[int, int], _Object] = {}
        self.nacks = 0

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self.group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep DATA; on END schedule a NACK for missing segments."""
        if not isinstance(message, (ToyData, ToyEnd)):
            return
        key = (message.sender, message.object_id)
        known = self.objects.setdefault(key, _Object({}))
        if known.done:
            return
        if isinstance(message, ToyData):
            known.held.setdefault(message.index, message.payload)
        else:
            known.end = message
        self._look(key, known, now)

    def wake(self, now: float) -> None:
        """Send the NACKs that are due."""
        for key, known in self.objects.items():
            if known.nack_at <= now:
                known.nack_at = inf
                self._nack(key, known)
        self._rearm()

    def counts(self) -> dict[str, int]:
        """Return the number of NACKs sent."""
        return {"nacks_sent": self.nacks}

    def _missing(self, known: _Object) -> Iterator[int]:
        assert known.end is not None
        count = -(-known.end.size // known.end.segment)
        return (index for index in range(count) if index not in known.held)

    def _look(self, key: tuple[int, int], known: _Object, now: float) -> None:
        if known.end is None:
            return
        if next(self._missing(known), None) is None:
            known.done, known.nack_at = True, inf
            self._finish(key, known, known.end)
        elif known.nack_at == inf:
            known.nack_at = now + self.ports.rng.uniform() * self.config.wait
        self._rearm()

    def _rearm(self) -> None:
        self._due(min((known.nack_at for known in self.objects.values()), default=inf))

    def _nack(self, key: tuple[int, int], known: _Object) -> None:
        missing = tuple(islice(self._missing(known), 200))
        self.nacks += 1
        self.ports.send(Packet(ToyNack(*key, missing), _HEAD.size + 4 * len(missing), self.group))

    def _finish(self, key: tuple[int, int], known: _Object, end: ToyEnd) -> None:
        sink = self.ports.accept(Offer(*key, end.size, True))
        if sink is None:
            return
        try:
            self._store(sink, known, end)
        except OSError:
            self._abort(sink)
            self.ports.notify(ObjectAborted(*key, "sink"))
            return
        self.ports.notify(ObjectReceived(*key, end.size, end.info))

    def _store(self, sink: Sink, known: _Object, end: ToyEnd) -> None:
        for index, payload in known.held.items():
            # Forged segments may lie behind the end.
            if payload is not None and index * end.segment + len(payload) <= end.size:
                sink.write(index * end.segment, payload)
        sink.commit(end.info)

    def _abort(self, sink: Sink) -> None:
        try:
            sink.abort()
        except OSError:
            # The sink is broken already, and the application gets an ObjectAborted event.
            return


def _sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
    return ToySender(ports, config, node, group, instance)


TOY = ProtocolSpec("toy", ToyConfig, ToyCodec, _sender, ToyReceiver)
