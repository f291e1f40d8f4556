"""The NORM messages (RFC 5740 4) as slotted objects. Fields hold what the wire holds: codes, not seconds.

Two small immutable parts are shared by many messages, and receivers compare them by identity first: `Origin` (node, instance
and timing of the sender) and `Fti` (the coding of an object).

For the compiled build (docs/simulator.md) `kind`s are set at the end of the file, and `Data` and `Nack` write their `__init__`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from protocols.fec import ELEMENT_BITS, MOST_SYMBOLS
from protocols.machine import Message
from protocols.norm.partition import Partition
from protocols.norm.requests import Item, Request, names_of
from protocols.run import Run

__all__ = [
    "ACK_CC",
    "ACK_FLUSH",
    "ANY_NODE",
    "EMPTY_OBJECT",
    "FLAG_FILE",
    "FLAG_INFO",
    "FLAG_REPAIR",
    "FLAG_STREAM",
    "FLAG_UNRELIABLE",
    "Ack",
    "AckReq",
    "Application",
    "CcFeedback",
    "CcNode",
    "Data",
    "DataRun",
    "Eot",
    "Extension",
    "Flush",
    "Fti",
    "Command",
    "Info",
    "Nack",
    "NormMessage",
    "Origin",
    "Probe",
    "ReceiverMessage",
    "RepairAdv",
    "Report",
    "Squelch",
]

FLAG_REPAIR: Final = 1
FLAG_INFO: Final = 4
FLAG_UNRELIABLE: Final = 8
FLAG_FILE: Final = 16
FLAG_STREAM: Final = 32
ACK_CC: Final = 1
ACK_FLUSH: Final = 2
"""Values of `Ack.ack_type`; from 16 on they are the application's."""
ANY_NODE: Final = 0xFFFFFFFF
"""NORM_NODE_ANY (RFC 5740 2): in the list of a FLUSH it asks every receiver for an ACK."""
_BRIEF: Final = 2
EMPTY_OBJECT: Final = {
    (0, 8): (0xFFFF, 0xFFFF),
    (2, 8): (0xFFFFFF, 0xFF),
    (2, 16): (0xFFFF, 0xFFFF),
    (5, 8): (0xFFFFFF, 0xFF),
    (129, 8): (0xFFFFFFFF, 0xFFFF),
}
"""(block, symbol) that FLUSH names for an object without symbols, by fec_id and m: the number before the first."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Bytes 4..11 of every sender message: node, instance and the advertised timing, as codes."""

    source_id: int
    instance_id: int
    grtt: int
    backoff: int
    gsize: int


@dataclass(frozen=True, slots=True)
class Fti:
    """FEC object transmission information, EXT_FTI (RFC 5740 4.2.1; parity *count* as in NRL, not RFC 5510's max_n)."""

    fec_id: int
    object_size: int
    segment: int
    block: int
    parity: int
    m: int = 8
    """Bits per FEC symbol element; carried on the wire by fec_id 2 only."""
    carried: Any = field(default=None, compare=False, repr=False)
    """`Content.carried` of the object, which is not on the wire."""
    partition: Partition = field(init=False, compare=False, repr=False)
    is_coded: bool = field(init=False, compare=False, repr=False)
    """Whether the FEC code has parity symbols that can be decoded; unchanged where a receiver sets `usable` to 0."""
    usable: int = field(init=False, compare=False, repr=False)
    """Parity symbols per block that can be decoded: none of elements of 16 bits if they may have an odd number of bytes, as NRL
    NORM does not send the second byte of their last element."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", Partition(self.object_size, self.segment, self.block))
        object.__setattr__(self, "usable", self.parity if self._is_decodable() else 0)
        object.__setattr__(self, "is_coded", self.usable > 0)

    def parity_size(self, block: int) -> int:
        """Return the bytes of a parity symbol of a block: those of its longest segment, or of whole symbol elements."""
        size = self.partition.vector(block)
        return size + (size & 1) if self.m == 16 else size

    def _is_decodable(self) -> bool:
        partition = self.partition
        is_whole = self.m == 8 or not (self.segment & 1 or (partition.blocks and partition.vector(partition.blocks - 1) & 1))
        return is_whole and self.block + self.parity <= MOST_SYMBOLS.get(self.m, 0)


class NormMessage(Message):
    """Base of all NORM messages."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Extension:
    """A header extension kept as bytes: `content` is what follows HET and HEL (or HET alone when het >= 128)."""

    het: int
    content: bytes


@dataclass(frozen=True, slots=True)
class CcFeedback:
    """EXT_CC (RFC 5740 4.2.3.4); `loss_low` is the low half of NRL's 32-bit loss, in the reserved field."""

    sequence: int
    flags: int
    rtt: int
    loss: int
    rate: int
    loss_low: int = 0


@dataclass(frozen=True, slots=True)
class CcNode:
    """One entry of the node list of CMD(CC)."""

    node_id: int
    flags: int
    rtt: int
    rate: int


@dataclass(slots=True)
class Data(NormMessage):
    """NORM_DATA: one source or parity symbol. `payload` None: content without bytes, `length` of them."""

    origin: Origin
    sequence: int
    flags: int
    fec_id: int
    object_id: int
    block: int
    symbol: int
    block_length: int
    """Source symbols of the block; on the wire with fec_id 129, elsewhere 0 when the FTI is absent."""
    fti: Fti | None
    payload: bytes | None
    length: int
    identity: int | None = None
    extensions: tuple[Extension, ...] = ()

    def __init__(
        self,
        origin: Origin,
        sequence: int,
        flags: int,
        fec_id: int,
        object_id: int,
        block: int,
        symbol: int,
        block_length: int,
        fti: Fti | None,
        payload: bytes | None,
        length: int,
        identity: int | None = None,
        extensions: tuple[Extension, ...] = (),
    ) -> None:
        self.origin = origin
        self.sequence = sequence
        self.flags = flags
        self.fec_id = fec_id
        self.object_id = object_id
        self.block = block
        self.symbol = symbol
        self.block_length = block_length
        self.fti = fti
        self.payload = payload
        self.length = length
        self.identity = identity
        self.extensions = extensions

    @property
    def repair(self) -> bool:
        """Whether it is a retransmission."""
        return bool(self.flags & FLAG_REPAIR)

    @property
    def brief(self) -> str:
        """Object, block and symbol; parity is counted from p0."""
        parity = self.symbol - self.block_length
        symbol = f"p{parity}" if self.block_length and parity >= 0 else str(self.symbol)
        return f"{self.object_id}.{self.block}.{symbol}"

    @property
    def is_parity(self) -> bool:
        """Whether it carries a parity symbol."""
        return self.symbol >= self.block_length


@dataclass(slots=True)
class DataRun(Run):
    """Consecutive source symbols of a block in NORM_DATA with consecutive sequence numbers, all or none of them repairs.

    The fields are those of the first message. Each of the `symbols` is as long as its segment of the object.
    """

    origin: Origin
    sequence: int
    flags: int
    object_id: int
    block: int
    symbol: int
    block_length: int
    fti: Fti
    symbols: Sequence[bytes | memoryview]
    first_identity: int
    extensions: tuple[Extension, ...] = ()

    @property
    def packets(self) -> int:
        """The number of messages."""
        return len(self.symbols)

    def messages(self) -> Iterator[Data]:
        """Make the messages."""
        fec_id = self.fti.fec_id
        for step, payload in enumerate(self.symbols):
            yield Data(
                self.origin,
                self.sequence + step & 0xFFFF,
                self.flags,
                fec_id,
                self.object_id,
                self.block,
                self.symbol + step,
                self.block_length,
                self.fti,
                bytes(payload),
                len(payload),
                self.first_identity + step,
                self.extensions,
            )

    def rest(self) -> "DataRun":
        """Return the run without its first message."""
        following = self.sequence + 1 & 0xFFFF, self.flags, self.object_id, self.block, self.symbol + 1
        coding = self.block_length, self.fti
        return DataRun(self.origin, *following, *coding, self.symbols[1:], self.first_identity + 1, self.extensions)


@dataclass(slots=True)
class Info(NormMessage):
    """NORM_INFO: the object's out-of-band information, at most one segment."""

    origin: Origin
    sequence: int
    flags: int
    fec_id: int
    object_id: int
    fti: Fti | None
    payload: bytes
    identity: int | None = None
    extensions: tuple[Extension, ...] = ()

    @property
    def repair(self) -> bool:
        """Whether it is a retransmission."""
        return bool(self.flags & FLAG_REPAIR)

    @property
    def brief(self) -> str:
        """The object."""
        return str(self.object_id)


@dataclass(slots=True)
class Command(NormMessage):
    """Base of NORM_CMD."""

    origin: Origin
    sequence: int


@dataclass(slots=True)
class Flush(Command):
    """CMD(FLUSH): everything up to this symbol was sent; nodes in `acking` are asked for an ACK."""

    fec_id: int
    object_id: int
    block: int
    symbol: int
    block_length: int = 0
    acking: tuple[int, ...] = ()
    extensions: tuple[Extension, ...] = ()

    @property
    def brief(self) -> str:
        """The last symbol sent."""
        return f"{self.object_id}.{self.block}.{self.symbol}"

    @property
    def is_of_empty_object(self) -> bool:
        """Whether it names the end of an object without symbols."""
        return (self.block, self.symbol) in (EMPTY_OBJECT.get((self.fec_id, m)) for m in ELEMENT_BITS)


@dataclass(slots=True)
class Eot(Command):
    """CMD(EOT): the sender leaves."""


@dataclass(slots=True)
class Squelch(Command):
    """CMD(SQUELCH): what comes before this object and block is not repaired any more, nor are the objects in `invalid`."""

    fec_id: int
    object_id: int
    block: int
    symbol: int
    block_length: int = 0
    invalid: tuple[int, ...] = ()
    extensions: tuple[Extension, ...] = ()

    @property
    def brief(self) -> str:
        """The first block that can be repaired."""
        return f"{self.object_id}.{self.block}"


@dataclass(slots=True)
class Probe(Command):
    """CMD(CC): GRTT and congestion-control probe. `rate` is the code of EXT_RATE, None without it (passive probing)."""

    cc_sequence: int
    send_sec: int
    send_usec: int
    rate: int | None = None
    nodes: tuple[CcNode, ...] = ()
    reserved: int = 0
    extensions: tuple[Extension, ...] = ()


@dataclass(slots=True)
class RepairAdv(Command):
    """CMD(REPAIR_ADV): the sender repeats what it was asked for by unicast."""

    flags: int
    requests: tuple[Request, ...]
    cc: CcFeedback | None = None
    extensions: tuple[Extension, ...] = ()

    @property
    def asks(self) -> Sequence[str]:
        """All symbols, blocks and objects asked for; a range is one entry."""
        return names_of(self.requests)


@dataclass(slots=True)
class AckReq(Command):
    """CMD(ACK_REQ): the nodes are asked for an ACK of `ack_type`."""

    ack_type: int
    ack_id: int
    nodes: tuple[int, ...] = ()
    extensions: tuple[Extension, ...] = ()


@dataclass(slots=True)
class Application(Command):
    """CMD(APPLICATION): application bytes out of band."""

    content: bytes
    extensions: tuple[Extension, ...] = ()


class ReceiverMessage(NormMessage):
    """Base of the messages of receivers."""

    __slots__ = ()
    is_feedback: ClassVar[bool] = True


@dataclass(slots=True)
class Nack(ReceiverMessage):
    """NORM_NACK: `response_sec`, `response_usec` echo the last probe plus the time since, 0, 0 for none."""

    source_id: int
    sequence: int
    sender_id: int
    instance_id: int
    response_sec: int
    response_usec: int
    requests: tuple[Request, ...]
    cc: CcFeedback | None = None
    extensions: tuple[Extension, ...] = ()

    def __init__(
        self,
        source_id: int,
        sequence: int,
        sender_id: int,
        instance_id: int,
        response_sec: int,
        response_usec: int,
        requests: tuple[Request, ...],
        cc: CcFeedback | None = None,
        extensions: tuple[Extension, ...] = (),
    ) -> None:
        self.source_id = source_id
        self.sequence = sequence
        self.sender_id = sender_id
        self.instance_id = instance_id
        self.response_sec = response_sec
        self.response_usec = response_usec
        self.requests = requests
        self.cc = cc
        self.extensions = extensions

    @property
    def brief(self) -> str:
        """The first symbols, blocks or objects asked for, and how many more entries there are."""
        entries = self.asks
        return ", ".join(entries[:_BRIEF]) + (f" +{len(entries) - _BRIEF}" if len(entries) > _BRIEF else "")

    @property
    def asks(self) -> Sequence[str]:
        """All symbols, blocks and objects asked for; a range is one entry."""
        return names_of(self.requests)


@dataclass(slots=True)
class Ack(ReceiverMessage):
    """NORM_ACK: type 1 answers CMD(CC), type 2 CMD(FLUSH), whose object and symbol are `flushed`; others have a `payload`."""

    source_id: int
    sequence: int
    sender_id: int
    instance_id: int
    ack_type: int
    ack_id: int
    response_sec: int
    response_usec: int
    payload: bytes = b""
    cc: CcFeedback | None = None
    extensions: tuple[Extension, ...] = ()
    flushed: Item | None = None


@dataclass(slots=True)
class Report(NormMessage):
    """NORM_REPORT: reserved for experiments."""

    source_id: int
    sequence: int
    payload: bytes = b""


Data.kind = DataRun.packet_kind = "data"
DataRun.kind = "run"
Info.kind = "info"
Flush.kind = "flush"
Eot.kind = "eot"
Squelch.kind = "squelch"
Probe.kind = "cc"
RepairAdv.kind = "repair_adv"
AckReq.kind = "ack_req"
Application.kind = "application"
Nack.kind = "nack"
Ack.kind = "ack"
Report.kind = "report"
