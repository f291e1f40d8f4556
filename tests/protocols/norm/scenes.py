"""A NORM sender or receiver on a fake host, and messages that a test builds for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.fake_host import FakeHost
from experiments.running.content import Extent
from protocols.events import Event, ObjectAborted, ObjectReceived
from protocols.fec import encode
from protocols.machine import Content, Group, Message
from protocols.norm.config import NormConfig
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, Ack, Data, Flush, Fti, Info, Nack, Origin, Probe, Squelch
from protocols.norm.quantise import gsize_code, rtt_code, rtt_seconds
from protocols.norm.receiver import NormReceiver
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.sender import NormSender
from protocols.norm.wire.sizes import size_of

__all__ = ["GROUP", "GRTT", "MessageBuilder", "ReceiverHarness", "SenderHarness", "items", "quick", "ranges", "symbols"]

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Message)

GROUP = Group("239.1.1.1:5001")
GRTT = rtt_seconds(rtt_code(0.02))
"""The initial round-trip time of these sessions in seconds, quantised."""


def quick(**settings: Any) -> NormConfig:
    """Return parameters that make a session short; GRTT probing is off by default."""
    usual = {"rate": 1e6, "segment": 100, "block": 8, "parity": 4, "grtt": 0.02, "gsize": 10, "robust": 4, "probing": "none"}
    return NormConfig(**{**usual, **settings})


class MessageBuilder:
    """Builds the messages of a sender: every method returns the next message in sequence, which a test delivers or drops.

    All objects have the same `content`; with `info` None they have no NORM_INFO.
    """

    def __init__(
        self, content: bytes, *, node: int = 1, instance: int = 1, info: bytes | None = None, sequence: int = 0, **settings: Any
    ) -> None:
        config = self.config = quick(**settings)
        self.content = content
        self.info_bytes = info
        self.origin = Origin(node, instance, rtt_code(config.grtt), config.backoff, gsize_code(config.gsize))
        self.fti = Fti(config.fec, len(content), config.segment, config.block, config.parity, config.fec_m)
        self.sequence = sequence

    def _number(self) -> int:
        self.sequence += 1
        return self.sequence - 1 & 0xFFFF

    @property
    def flags(self) -> int:
        """Flags of every DATA and INFO message."""
        return FLAG_FILE | (FLAG_INFO if self.info_bytes is not None else 0)

    def data(self, block: int, symbol: int, object_id: int = 0, flags: int = 0) -> Data:
        """Build DATA with a source symbol, or with a parity symbol if `symbol` is beyond the block."""
        length = self.fti.partition.length(block)
        payload = self.payload(block, symbol)
        names = self.fti.fec_id, object_id, block, symbol, length, self.fti
        return Data(self.origin, self._number(), self.flags | flags, *names, payload, len(payload))

    def payload(self, block: int, symbol: int) -> bytes:
        """Return the payload of a symbol."""
        fti, partition = self.fti, self.fti.partition
        first, length = partition.first(block), partition.length(block)
        cut = [self.content[i * fti.segment : (i + 1) * fti.segment] for i in range(first, first + length)]
        return cut[symbol] if symbol < length else encode(fti.block, fti.parity, cut, [symbol - length], fti.m)[0]

    def block(self, block: int, object_id: int = 0, without: tuple[int, ...] = ()) -> list[Data]:
        """Build all source symbols of a block in order, and leave out those in `without`, which are lost."""
        made = [self.data(block, symbol, object_id) for symbol in range(self.fti.partition.length(block))]
        return [message for message in made if message.symbol not in without]

    def whole(self, object_id: int = 0) -> list[Data]:
        """Build all source symbols of an object in order."""
        return [message for block in range(self.fti.partition.blocks) for message in self.block(block, object_id)]

    def info(self, object_id: int = 0, flags: int = 0) -> Info:
        """Build NORM_INFO."""
        return Info(
            self.origin, self._number(), self.flags | flags, self.fti.fec_id, object_id, self.fti, self.info_bytes or b""
        )

    def flush(self, object_id: int = 0) -> Flush:
        """Build CMD(FLUSH) at the end of an object."""
        partition = self.fti.partition
        block = partition.blocks - 1
        length = partition.length(block)
        return Flush(self.origin, self._number(), self.fti.fec_id, object_id, block, length - 1, length)

    def squelch(self, object_id: int, *invalid: int) -> Squelch:
        """Build CMD(SQUELCH): neither objects before `object_id` nor those in `invalid` are repaired."""
        return Squelch(self.origin, self._number(), self.fti.fec_id, object_id, 0, 0, self.fti.partition.length(0), invalid)

    def probe(self, seconds: int = 1, microseconds: int = 0, *, active: bool = True) -> Probe:
        """Build CMD(CC)."""
        return Probe(self.origin, self._number(), 0, seconds, microseconds, 0x4005 if active else None)

    def retime(self, **codes: int) -> None:
        """Advertise other codes in all later messages."""
        self.origin = replace(self.origin, **codes)


class ReceiverHarness:
    """NORM receiver (node 9 by default) that receives the messages a test delivers."""

    def __init__(self, node: int = 9, seed: int = 1, kind: type[NormReceiver] = NormReceiver, **settings: Any) -> None:
        self.host = FakeHost(f"r{node}", seed=seed)
        self.machine = kind(self.host, quick(**settings), node, GROUP)
        self.sent: list[tuple[float, Message]] = []
        """(time, message) of every packet it sent."""
        self.host.on_send = lambda packet, port: self.sent.append((self.host.now, packet.message))
        self.host.run(self.machine)

    @property
    def now(self) -> float:
        """Time of the last input in seconds."""
        return self.host.now

    def receive(self, *messages: Message, now: float | None = None, source: str = "sender") -> None:
        """Deliver messages, all at the same time."""
        for message in messages:
            self.host.deliver(message, source, GROUP, self.now if now is None else now)

    def run_until(self, when: float) -> None:
        """Advance the time, with every wake-up that is due."""
        while self.host.due <= when:
            self.host.turn(max(self.host.due, self.now))
        self.host.turn(when)

    def run_to_deadline(self) -> float:
        """Advance to the next wake-up and return its time."""
        self.run_until(self.host.due)
        return self.now

    @property
    def nacks(self) -> list[Nack]:
        """NACKs it sent."""
        return [message for _, message in self.sent if isinstance(message, Nack)]

    @property
    def acks(self) -> list[Ack]:
        """ACKs it sent."""
        return [message for _, message in self.sent if isinstance(message, Ack)]

    def requested(self) -> list[RequestedRepairs]:
        """Return the repairs that each NACK requests."""
        return [requested_repairs(nack.requests, 5) for nack in self.nacks]

    def events_of(self, kind: type[E]) -> list[E]:
        """Return the events of this kind."""
        return [event for event in self.host.events if isinstance(event, kind)]

    def received(self) -> list[int]:
        """Return object ids in the order of completion."""
        return [event.object_id for event in self.events_of(ObjectReceived)]

    def aborted(self) -> list[tuple[int, str]]:
        """Return (object id, reason) of aborted objects."""
        return [(event.object_id, event.reason) for event in self.events_of(ObjectAborted)]

    def content(self, object_id: int = 0, sender: int = 1) -> bytes:
        """Return the content of the object's sink."""
        sink = self.host.sinks[sender, object_id]
        assert isinstance(sink, CheckedSink)
        return bytes(sink.content)


class SenderHarness:
    """NORM sender (node 1) whose packets are kept with their times."""

    def __init__(self, instance: int = 7, kind: type[NormSender] = NormSender, **settings: Any) -> None:
        self.config = quick(**settings)
        self.host = FakeHost("sender")
        self.machine = kind(self.host, self.config, 1, GROUP, instance)
        self.sent: list[tuple[float, int, Any]] = []
        """(time, size, message) of every packet it sent."""
        self.host.on_send = lambda packet, port: self.sent.append((self.host.now, packet.size, packet.message))
        self.host.run(self.machine)

    @property
    def now(self) -> float:
        """Time of the last input in seconds."""
        return self.host.now

    def submit(self, *sizes: int, info: bytes = b"", counted: bool = False) -> list[int]:
        """Submit objects of these sizes and return their ids."""
        made = [Content(Extent(n) if counted else Bytes(pattern(n, seed=i + 1)), info) for i, n in enumerate(sizes)]
        return [self.host.call(self.machine.submit, content) for content in made]

    def run_until(self, when: float, over: Callable[[], bool] = lambda: False) -> None:
        """Advance the time, with every wake-up that is due, up to `when` or until `over()`."""
        while not over():
            if self.host.due > when:
                self.host.turn(max(when, self.now))
                return
            self.host.turn(max(self.host.due, self.now))

    def nack(self, *requests: Request, now: float | None = None, instance: int = 7, sender: int = 1, echo: int = 0) -> None:
        """Deliver a NACK; `echo` is its probe response in microseconds of the sender's clock."""
        nack = Nack(9, 0, sender, instance, *divmod(echo, 1_000_000), requests)
        assert size_of(nack)
        self.host.deliver(nack, "r", GROUP, self.now if now is None else now)

    def respond(self, echo: int, now: float) -> None:
        """Deliver an ACK with a probe response."""
        self.host.deliver(Ack(9, 0, 1, 7, 1, 0, *divmod(echo, 1_000_000)), "r", GROUP, now)

    def messages_of(self, kind: type[M]) -> list[M]:
        """Return the sent messages of this kind."""
        return [message for _, _, message in self.sent if isinstance(message, kind)]

    def times(self, kind: type[Message]) -> list[float]:
        """Return the send times of messages of this kind."""
        return [when for when, _, message in self.sent if isinstance(message, kind)]

    def symbols(self, since: int = 0) -> list[tuple[int, int, int]]:
        """Return (object, block, symbol) of the DATA messages sent, without the first `since`."""
        return [(data.object_id, data.block, data.symbol) for data in self.messages_of(Data)[since:]]

    def events_of(self, kind: type[E]) -> list[E]:
        """Return the events of this kind."""
        return [event for event in self.host.events if isinstance(event, kind)]


def items(*names: tuple[int, ...], level: int = LEVEL_SEGMENT, fec: int = 5) -> Request:
    """Build a request with items, each (object, block, symbol)."""
    return Request(FORM_ITEMS, level, tuple(Item(fec, *name) for name in names))


def ranges(*names: tuple[int, ...], level: int = LEVEL_SEGMENT, fec: int = 5) -> Request:
    """Build a request with ranges, given as pairs of first and last item."""
    return Request(FORM_RANGES, level, tuple(Item(fec, *name) for name in names))


def symbols(requested: RequestedRepairs, object_id: int, block: int) -> list[int]:
    """Return the requested symbols of a block."""
    mask = requested.mask(object_id, block)
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
