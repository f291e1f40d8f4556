"""A NORM sender or receiver alone on a fake host, with its other end written by hand."""

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
from protocols.norm.messages import (
    FLAG_FILE,
    FLAG_INFO,
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_SEGMENT,
    Ack,
    Data,
    Flush,
    Fti,
    Info,
    Item,
    Nack,
    Origin,
    Probe,
    Request,
    Squelch,
)
from protocols.norm.quantise import gsize_code, rtt_code, rtt_seconds
from protocols.norm.receiver import NormReceiver
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.sender import NormSender
from protocols.norm.wire.sizes import size_of

__all__ = ["GROUP", "GRTT", "Listener", "Talker", "Voice", "items", "quick", "ranges", "symbols"]

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Message)

GROUP = Group("239.1.1.1:5001")
GRTT = rtt_seconds(rtt_code(0.02))
"""The round-trip time all these sessions begin with, as its code has it."""


def quick(**settings: Any) -> NormConfig:
    """Parameters that make a session short; GRTT probing only where a test asks for it."""
    usual = {"rate": 1e6, "segment": 100, "block": 8, "parity": 4, "grtt": 0.02, "gsize": 10, "robust": 4, "probing": "none"}
    return NormConfig(**{**usual, **settings})


class Voice:
    """What a sender says, made by hand: every method gives the next message, whether it is then heard or lost.

    All objects have the same `content`; `info` None: without NORM_INFO.
    """

    def __init__(
        self, content: bytes, *, node: int = 1, instance: int = 1, info: bytes | None = None, sequence: int = 0, **settings: Any
    ) -> None:
        config = self.config = quick(**settings)
        self.content = content
        self.info_bytes = info
        self.origin = Origin(node, instance, rtt_code(config.grtt), config.backoff, gsize_code(config.gsize))
        self.fti = Fti(config.fec, len(content), config.segment, config.block, config.parity)
        self.sequence = sequence

    def _number(self) -> int:
        self.sequence += 1
        return self.sequence - 1 & 0xFFFF

    @property
    def flags(self) -> int:
        """The flags of every message of content."""
        return FLAG_FILE | (FLAG_INFO if self.info_bytes is not None else 0)

    def data(self, block: int, symbol: int, object_id: int = 0, flags: int = 0) -> Data:
        """A source symbol, or a parity symbol when `symbol` lies beyond the block."""
        length = self.fti.partition.length(block)
        payload = self.payload(block, symbol)
        names = self.fti.fec_id, object_id, block, symbol, length, self.fti
        return Data(self.origin, self._number(), self.flags | flags, *names, payload, len(payload))

    def payload(self, block: int, symbol: int) -> bytes:
        """The content of a symbol."""
        fti, partition = self.fti, self.fti.partition
        first, length = partition.first(block), partition.length(block)
        cut = [self.content[i * fti.segment : (i + 1) * fti.segment] for i in range(first, first + length)]
        return cut[symbol] if symbol < length else encode(fti.block, fti.parity, cut, [symbol - length])[0]

    def block(self, block: int, object_id: int = 0, without: tuple[int, ...] = ()) -> list[Data]:
        """All source symbols of a block in order; those `without` are lost on their way."""
        made = [self.data(block, symbol, object_id) for symbol in range(self.fti.partition.length(block))]
        return [message for message in made if message.symbol not in without]

    def whole(self, object_id: int = 0) -> list[Data]:
        """All source symbols of an object in order."""
        return [message for block in range(self.fti.partition.blocks) for message in self.block(block, object_id)]

    def info(self, object_id: int = 0, flags: int = 0) -> Info:
        """NORM_INFO."""
        return Info(
            self.origin, self._number(), self.flags | flags, self.fti.fec_id, object_id, self.fti, self.info_bytes or b""
        )

    def flush(self, object_id: int = 0) -> Flush:
        """CMD(FLUSH) at the end of an object."""
        partition = self.fti.partition
        block = partition.blocks - 1
        length = partition.length(block)
        return Flush(self.origin, self._number(), self.fti.fec_id, object_id, block, length - 1, length)

    def squelch(self, object_id: int, *invalid: int) -> Squelch:
        """CMD(SQUELCH): nothing before `object_id` is repaired, nor any of `invalid`."""
        return Squelch(self.origin, self._number(), self.fti.fec_id, object_id, 0, 0, self.fti.partition.length(0), invalid)

    def probe(self, seconds: int = 1, microseconds: int = 0, *, active: bool = True) -> Probe:
        """CMD(CC)."""
        return Probe(self.origin, self._number(), 0, seconds, microseconds, 0x4005 if active else None)

    def retime(self, **codes: int) -> None:
        """Advertise other codes from now on."""
        self.origin = replace(self.origin, **codes)


class Listener:
    """A NORM receiver, node 9 unless told otherwise, that hears what a test gives it."""

    def __init__(self, node: int = 9, seed: int = 1, **settings: Any) -> None:
        self.host = FakeHost(f"r{node}", seed=seed)
        self.machine = NormReceiver(self.host, quick(**settings), node, GROUP)
        self.said: list[tuple[float, Message]] = []
        """(time, message) of everything it sent."""
        self.host.on_send = lambda packet: self.said.append((self.host.now, packet.message))
        self.host.run(self.machine)

    @property
    def now(self) -> float:
        """The time of the last input."""
        return self.host.now

    def hear(self, *messages: Message, now: float | None = None, source: str = "sender") -> None:
        """These messages arrive, all at the same time."""
        for message in messages:
            self.host.deliver(message, source, GROUP, self.now if now is None else now)

    def until(self, when: float) -> None:
        """Let time pass, with all the wake-ups the machine wants."""
        while self.host.due <= when:
            self.host.turn(max(self.host.due, self.now))
        self.host.turn(when)

    def at_expiry(self) -> float:
        """Wait for the next wake-up; its time."""
        self.until(self.host.due)
        return self.now

    @property
    def nacks(self) -> list[Nack]:
        """The NACKs it sent."""
        return [message for _, message in self.said if isinstance(message, Nack)]

    @property
    def acks(self) -> list[Ack]:
        """The ACKs it sent."""
        return [message for _, message in self.said if isinstance(message, Ack)]

    def demands(self) -> list[RequestedRepairs]:
        """What the NACKs asked for."""
        return [requested_repairs(nack.requests, 5) for nack in self.nacks]

    def told(self, kind: type[E]) -> list[E]:
        """The events of this kind."""
        return [event for event in self.host.events if isinstance(event, kind)]

    def received(self) -> list[int]:
        """Object ids in the order they were completed."""
        return [event.object_id for event in self.told(ObjectReceived)]

    def aborted(self) -> list[tuple[int, str]]:
        """(object id, reason) of what was given up."""
        return [(event.object_id, event.reason) for event in self.told(ObjectAborted)]

    def content(self, object_id: int = 0, sender: int = 1) -> bytes:
        """What the sink of the object holds."""
        sink = self.host.sinks[sender, object_id]
        assert isinstance(sink, CheckedSink)
        return bytes(sink.content)


class Talker:
    """A NORM sender, node 1, whose packets are kept with their times."""

    def __init__(self, instance: int = 7, kind: type[NormSender] = NormSender, **settings: Any) -> None:
        self.config = quick(**settings)
        self.host = FakeHost("sender")
        self.machine = kind(self.host, self.config, 1, GROUP, instance)
        self.said: list[tuple[float, int, Any]] = []
        """(time, size, message) of everything it sent."""
        self.host.on_send = lambda packet: self.said.append((self.host.now, packet.size, packet.message))
        self.host.run(self.machine)

    @property
    def now(self) -> float:
        """The time of the last input."""
        return self.host.now

    def submit(self, *sizes: int, info: bytes = b"", counted: bool = False) -> list[int]:
        """Objects of these sizes; their ids."""
        made = [Content(Extent(n) if counted else Bytes(pattern(n, seed=i + 1)), info) for i, n in enumerate(sizes)]
        return [self.host.call(self.machine.submit, content) for content in made]

    def until(self, when: float, over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, with all the wake-ups the machine wants, up to `when` or until `over()`."""
        while not over():
            if self.host.due > when:
                self.host.turn(max(when, self.now))
                return
            self.host.turn(max(self.host.due, self.now))

    def nack(self, *requests: Request, now: float | None = None, instance: int = 7, sender: int = 1, echo: int = 0) -> None:
        """A receiver asks for this; `echo` is its answer to a probe in microseconds of the sender's clock."""
        nack = Nack(9, 0, sender, instance, *divmod(echo, 1_000_000), requests)
        assert size_of(nack)
        self.host.deliver(nack, "r", GROUP, self.now if now is None else now)

    def answer(self, echo: int, now: float) -> None:
        """A receiver answers a probe."""
        self.host.deliver(Ack(9, 0, 1, 7, 1, 0, *divmod(echo, 1_000_000)), "r", GROUP, now)

    def of(self, kind: type[M]) -> list[M]:
        """The messages of this kind that it sent."""
        return [message for _, _, message in self.said if isinstance(message, kind)]

    def times(self, kind: type[Message]) -> list[float]:
        """When it sent messages of this kind."""
        return [when for when, _, message in self.said if isinstance(message, kind)]

    def symbols(self, since: int = 0) -> list[tuple[int, int, int]]:
        """(object, block, symbol) of the DATA messages sent, without the first `since`."""
        return [(data.object_id, data.block, data.symbol) for data in self.of(Data)[since:]]

    def told(self, kind: type[E]) -> list[E]:
        """The events of this kind."""
        return [event for event in self.host.events if isinstance(event, kind)]


def items(*names: tuple[int, ...], level: int = LEVEL_SEGMENT, fec: int = 5) -> Request:
    """A request for single things, each (object, block, symbol)."""
    return Request(FORM_ITEMS, level, tuple(Item(fec, *name) for name in names))


def ranges(*names: tuple[int, ...], level: int = LEVEL_SEGMENT, fec: int = 5) -> Request:
    """A request for ranges: pairs of first and last."""
    return Request(FORM_RANGES, level, tuple(Item(fec, *name) for name in names))


def symbols(demand: RequestedRepairs, object_id: int, block: int) -> list[int]:
    """The symbols of a block that are asked for."""
    mask = demand.symbols.get((object_id, block), 0)
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
