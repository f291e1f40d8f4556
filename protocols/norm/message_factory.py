"""The messages of one sender, numbered as they are made."""

from collections.abc import Iterable
from typing import ClassVar

from protocols.norm.config import NormConfig
from protocols.norm.identity import info_identity, symbol_identity
from protocols.norm.messages import (
    Application,
    CcFeedback,
    CcNode,
    Data,
    DataRun,
    Extension,
    Flush,
    Fti,
    Info,
    Origin,
    Probe,
    RepairAdv,
    Squelch,
)
from protocols.norm.position import Point
from protocols.norm.quantise import gsize_code
from protocols.norm.requests import Request
from protocols.norm.tx_object import TxObject

__all__ = ["MessageFactory"]


class MessageFactory:
    """Makes the messages of one sender and numbers them. A subclass may make messages of its own types."""

    __slots__ = ("_config", "ordinal", "origin", "tx_point")

    data_type: ClassVar[type[Data]] = Data
    info_type: ClassVar[type[Info]] = Info
    flush_type: ClassVar[type[Flush]] = Flush
    squelch_type: ClassVar[type[Squelch]] = Squelch
    probe_type: ClassVar[type[Probe]] = Probe
    application_type: ClassVar[type[Application]] = Application
    repair_adv_type: ClassVar[type[RepairAdv]] = RepairAdv

    def __init__(self, config: NormConfig, origin: Origin) -> None:
        self._config = config
        self.origin = origin
        """Node, instance and advertised timing: what every message begins with."""
        self.ordinal = 0
        """Number of messages made; its low 16 bits are the next sequence number."""
        self.tx_point: Point = (0, 0, 0)
        """Object, block and symbol sent last."""

    def advertise(self, grtt: int) -> None:
        """Advertise another group round-trip time (its 8-bit code) from now on."""
        origin = self.origin
        self.origin = Origin(origin.source_id, origin.instance_id, grtt, origin.backoff, origin.gsize)

    def configure(self, config: NormConfig) -> None:
        """Advertise the timing of another configuration from now on."""
        self._config = config
        origin = self.origin
        self.origin = Origin(origin.source_id, origin.instance_id, origin.grtt, config.backoff, gsize_code(config.gsize))

    def _number(self) -> int:
        ordinal = self.ordinal
        self.ordinal = ordinal + 1
        return ordinal & 0xFFFF

    def data(self, item: TxObject, block: int, symbol: int, repair: int) -> Data:
        """Make a symbol's NORM_DATA; `repair` is FLAG_REPAIR or 0. Raises OSError when the source can't be read."""
        payload, size, identity = item.payload(block, symbol)
        length = item.partition.length(block)
        key, fti = item.object_id, item.fti
        number, flags = self._number(), item.flags | repair
        self.tx_point = (key, block, symbol)
        block &= item.block_mask
        told: Fti | None = fti
        if self._config.fti != "always":
            # Receivers that don't know it can't number the symbol by it.
            told, identity = None, symbol_identity(self.origin.source_id, key, block, symbol, None, fti.m)
        return self.data_type(self.origin, number, flags, fti.fec_id, key, block, symbol, length, told, payload, size, identity)

    @property
    def most(self) -> int:
        """Messages of a run at the most: their sequence numbers do not begin again at 0."""
        return 0x10000 - (self.ordinal & 0xFFFF)

    def run(self, item: TxObject, block: int, symbol: int, count: int, repair: int) -> DataRun:
        """Make the NORM_DATA of `count` source symbols of a block, which has bytes; `repair` and OSError as with `data`."""
        symbols, identity = item.payloads(block, symbol, count)
        number, self.ordinal = self.ordinal & 0xFFFF, self.ordinal + count
        self.tx_point = (item.object_id, block, symbol + count - 1)
        at, length = (item.object_id, block & item.block_mask, symbol), item.partition.length(block)
        return DataRun(self.origin, number, item.flags | repair, *at, length, item.fti, symbols, identity)

    def info(self, item: TxObject, repair: int) -> Info:
        """Make the NORM_INFO of an object; `repair` as in `data`."""
        origin, key, fti = self.origin, item.object_id, item.fti
        identity = info_identity(origin.source_id, key)
        self.tx_point = (key, 0, 0)
        told = None if self._config.fti == "preset" else fti
        return self.info_type(origin, self._number(), item.flags | repair, fti.fec_id, key, told, item.content.info, identity)

    def flush(self, item: TxObject) -> Flush:
        """Make a CMD(FLUSH): everything through the end of this object was sent."""
        block, symbol = item.end
        length = item.partition.length(block) if item.partition.blocks else 0
        return self.flush_type(self.origin, self._number(), self._config.fec, item.object_id, block, symbol, length)

    def acking_flush(
        self, key: int, block: int, symbol: int, length: int, nodes: tuple[int, ...], extensions: tuple[Extension, ...]
    ) -> Flush:
        """Make a CMD(FLUSH) that asks nodes to confirm everything through a symbol of object `key`."""
        fec_id = self._config.fec
        return self.flush_type(self.origin, self._number(), fec_id, key, block, symbol, length, nodes, extensions)

    def application(self, content: bytes) -> Application:
        """Make a CMD(APPLICATION)."""
        return self.application_type(self.origin, self._number(), content)

    def repair_adv(self, requests: tuple[Request, ...], is_partial: bool, cc: CcFeedback | None) -> RepairAdv:
        """Make a CMD(REPAIR_ADV); `is_partial` when not all of the requests have room in it."""
        return self.repair_adv_type(self.origin, self._number(), int(is_partial), requests, cc)

    def squelch(self, first: int, block: int, length: int, invalid: Iterable[int]) -> Squelch:
        """Make a CMD(SQUELCH): what is before this block of object `first` can't be repaired, nor can the `invalid` objects.

        `length` is the number of source symbols of the block.
        """
        gone = tuple(sorted(invalid)[: self._config.segment // 2])
        return self.squelch_type(self.origin, self._number(), self._config.fec, first, block, 0, length, gone)

    def probe(self, sequence: int, clock: int, rate: int | None, nodes: tuple[CcNode, ...] = ()) -> Probe:
        """Make a CMD(CC) that probes the round-trip time; `clock` is the sender's in microseconds, `rate` a 16-bit code."""
        seconds, microseconds = divmod(clock, 1_000_000)
        return self.probe_type(self.origin, self._number(), sequence, seconds, microseconds, rate, nodes)
