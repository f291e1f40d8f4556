"""Messages linked into a chain of positions, which receivers follow by identity (`FastMessage.expects`)."""

from collections.abc import Iterable
from typing import cast

from protocols.fast.contract import FastMessage
from protocols.norm.config import NormConfig
from protocols.norm.fast.messages import FastApplication, FastData, FastFlush, FastInfo, FastProbe, FastRepairAdv, FastSquelch
from protocols.norm.fast.tx_object import FastTxObject
from protocols.norm.message_factory import MessageFactory
from protocols.norm.messages import (
    Application,
    CcFeedback,
    CcNode,
    Command,
    Data,
    Extension,
    Flush,
    Info,
    Origin,
    Probe,
    RepairAdv,
    Squelch,
)
from protocols.norm.position import Point, TransmitPosition
from protocols.norm.requests import Request
from protocols.norm.tx_object import TxObject

__all__ = ["FastMessageFactory"]


class FastMessageFactory(MessageFactory):
    """Makes the messages of one sender, numbers them, and links those of content without bytes."""

    __slots__ = ("_opened", "last_origin", "links", "position")

    data_type = FastData
    info_type = FastInfo
    flush_type = FastFlush
    squelch_type = FastSquelch
    probe_type = FastProbe
    application_type = FastApplication
    repair_adv_type = FastRepairAdv

    def __init__(self, config: NormConfig, origin: Origin) -> None:
        super().__init__(config, origin)
        self.last_origin: Origin | None = None
        """The origin of the message sent last: receivers process a message with another one in full."""
        self.position: TransmitPosition | None = None
        """The position of a receiver that received everything; None while there is no chain."""
        self._opened: TransmitPosition | None = None
        """The position after the NORM_INFO of the last object: a receiver there has opened that, or does not want it."""
        self.links = True
        """Whether messages are linked: not those of a sender that sends streams, each of which has a position of its own."""

    @property
    def _known(self) -> TransmitPosition | None:
        """The position before the next message, if that has the origin of the last one."""
        return self.position if self.last_origin is self.origin else None

    def data(self, item: TxObject, block: int, symbol: int, repair: int) -> Data:
        """Make a symbol's NORM_DATA and link it."""
        message = super().data(item, block, symbol, repair)
        assert isinstance(message, FastData)
        message.expects = message.expects_if_complete = message.next_state = None
        message.redundant = bool(repair) or symbol >= message.block_length
        if not item.counted or not self.links:
            self.position = None
            return message
        known = self._known
        if repair:
            self._link(message, None, self.tx_point)
            message.expects_if_complete = known
            return message
        key, length = item.object_id, message.block_length
        self._link(message, (key, block, symbol + 1) if symbol + 1 < length else (key, block + 1, 0))
        is_open = block > 0 or symbol > 0 or (known is not None and known is self._opened and known.object_id == key)
        if is_open and (symbol + 1 != length or block + 1 < item.partition.blocks):
            # A message that opens or ends an object concerns every receiver; at the start of a block, and with parity, those
            # with missing content.
            message.expects_if_complete = known
            message.expects = known if 0 < symbol < length else None
        return message

    def middle(self, item: FastTxObject) -> FastData:
        """Make the symbol at the cursor of `item`, content without bytes, which is inside a block; move the cursor.

        Equal to `data`, with fewer conditions: most messages of many simulated runs are made here.
        """
        position, block, symbol, fti, key = self.position, item.block, item.symbol, item.fti, item.object_id
        following = item.symbol = symbol + 1
        ordinal = self.ordinal
        self.ordinal = ordinal + 1
        tx_point = self.tx_point = (key, block, following)
        identity = item.bases[0] | (item.first + symbol) & 0xFFFFFFFF
        message = FastData(
            self.origin,
            ordinal & 0xFFFF,
            item.flags,
            fti.fec_id,
            key,
            block,
            symbol,
            item.length,
            fti,
            None,
            fti.segment,
            identity,
        )
        message.expects = message.expects_if_complete = position
        message.redundant = False
        message.next_state = self.position = TransmitPosition(key, block, following, ordinal + 1, tx_point)
        return message

    def info(self, item: TxObject, repair: int) -> Info:
        """Make the NORM_INFO of an object and link it."""
        message = super().info(item, repair)
        linked, known = self._unlink(message), self._known
        if item.counted and self.links:
            self._link(linked, None if repair else self.tx_point, self.tx_point)
            if repair:
                linked.expects_if_complete = known
            else:
                self._opened = self.position
        else:
            self.position = None
        return message

    def flush(self, item: TxObject) -> Flush:
        """Make a CMD(FLUSH) and link it."""
        known = self._known
        message = super().flush(item)
        self._link_command(message)
        cast(FastFlush, message).expects_if_complete = known
        return message

    def acking_flush(
        self, key: int, block: int, symbol: int, length: int, nodes: tuple[int, ...], extensions: tuple[Extension, ...]
    ) -> Flush:
        """Make a CMD(FLUSH) that asks nodes for ACKs, and link it; receivers process it in full."""
        message = super().acking_flush(key, block, symbol, length, nodes, extensions)
        self._link_command(message)
        return message

    def application(self, content: bytes) -> Application:
        """Make a CMD(APPLICATION) and link it."""
        message = super().application(content)
        self._link_command(message)
        return message

    def repair_adv(self, requests: tuple[Request, ...], is_partial: bool, cc: CcFeedback | None) -> RepairAdv:
        """Make a CMD(REPAIR_ADV) and link it."""
        message = super().repair_adv(requests, is_partial, cc)
        self._link_command(message)
        return message

    def squelch(self, first: int, block: int, length: int, invalid: Iterable[int]) -> Squelch:
        """Make a CMD(SQUELCH) and link it."""
        message = super().squelch(first, block, length, invalid)
        self._link_command(message)
        return message

    def probe(self, sequence: int, clock: int, rate: int | None, nodes: tuple[CcNode, ...] = ()) -> Probe:
        """Make a CMD(CC) and link it."""
        message = super().probe(sequence, clock, rate, nodes)
        self._link_command(message)
        return message

    def _unlink(self, message: Info | Command) -> FastMessage:
        assert isinstance(message, FastMessage)
        linked: FastMessage = message
        linked.expects = linked.expects_if_complete = linked.next_state = None
        linked.redundant = False
        return linked

    def _link_command(self, message: Command) -> None:
        """Link a command, which leaves the next new symbol where it is, if there is a chain."""
        linked = self._unlink(message)
        if self.position is not None:
            self._link(linked, None)

    def _link(self, message: FastMessage, next_new: Point | None, tx_point: Point | None = None) -> None:
        """Link a message; `next_new` None leaves the next new symbol where it is. `tx_point` is given for repairs."""
        position = self.position
        if next_new is None:
            next_new = (position.object_id, position.block, position.symbol) if position else self.tx_point
        key, block, symbol = next_new
        message.next_state = self.position = TransmitPosition(key, block, symbol, self.ordinal, tx_point or next_new)
