"""The messages of a sender, tied into the chain of positions that receivers follow by identity (`Message.expects`)."""

from collections.abc import Iterable

from protocols.norm.config import NormConfig
from protocols.norm.identity import info_identity
from protocols.norm.messages import EMPTY_OBJECT, Command, Data, Flush, Info, Origin, Probe, Squelch, TransmitPosition
from protocols.norm.tx_object import TxObject

__all__ = ["MessageFactory"]


class MessageFactory:
    """Makes messages of one sender and numbers them."""

    __slots__ = ("_config", "ordinal", "origin", "place", "position", "said")

    def __init__(self, config: NormConfig, origin: Origin) -> None:
        self._config = config
        self.origin = origin
        self.said: Origin | None = None
        """The origin of the message before: receivers have to look at a message with another."""
        self.ordinal = 0
        """How many messages were made; their sequence number comes from this."""
        self.position: TransmitPosition | None = None
        """Where who heard everything stands; None while there is no chain."""
        self.place: tuple[int, int, int] = (0, 0, 0)
        """Where the sender transmits."""

    def retime(self, grtt: int) -> None:
        """From now on the sender says that this is its round-trip time."""
        origin = self.origin
        self.origin = Origin(origin.source_id, origin.instance_id, grtt, origin.backoff, origin.gsize)

    def _number(self) -> int:
        ordinal = self.ordinal
        self.ordinal = ordinal + 1
        return ordinal & 0xFFFF

    def _known(self) -> TransmitPosition | None:
        return self.position if self.said is self.origin else None

    def data(self, item: TxObject, block: int, symbol: int, repair: int) -> Data:
        """A symbol; `repair` is FLAG_REPAIR or 0. Raises OSError when the source can't be read."""
        payload, size, identity = item.payload(block, symbol)
        length = item.partition.length(block)
        key, fti = item.object_id, item.fti
        number, flags = self._number(), item.flags | repair
        message = Data(self.origin, number, flags, fti.fec_id, key, block, symbol, length, fti, payload, size, identity)
        self.place = (key, block, symbol)
        if not item.counted:
            self.position = None
            return message
        known = self._known()
        if repair:
            self._link(message, None, self.place)
            message.expects_if_complete = known
            return message
        self._link(message, (key, block, symbol + 1) if symbol + 1 < length else (key, block + 1, 0))
        if (block or symbol) and (symbol + 1 != length or block + 1 < item.partition.blocks):
            # At both ends of an object every receiver has something to do; at the start of a block and with parity, those
            # that lack something.
            message.expects_if_complete = known
            message.expects = known if 0 < symbol < length else None
        return message

    def middle(self, item: TxObject) -> Data:
        """The symbol of counted content at the item's cursor, which is inside a block; moves the cursor.

        As `data`, without its questions: most messages of many simulated runs are made here.
        """
        position, block, symbol, fti, key = self.position, item.block, item.symbol, item.fti, item.object_id
        next_state = item.symbol = symbol + 1
        ordinal = self.ordinal
        self.ordinal = ordinal + 1
        place = self.place = (key, block, next_state)
        self.position = moved = TransmitPosition(key, block, next_state, ordinal + 1, place)
        return Data(
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
            item.bases[0] | (item.first + symbol) & 0xFFFFFFFF,
            (),
            position,
            position,
            moved,
        )

    def _link(
        self, message: Data | Info | Command, front: tuple[int, int, int] | None, place: tuple[int, int, int] | None = None
    ) -> None:
        """Tie in a message of counted content. `front` None leaves the front where it is; `place` is given for repairs."""
        position = self.position
        if position is None and isinstance(message, Command):
            return
        if front is None:
            front = (position.object_id, position.block, position.symbol) if position else self.place
        key, block, symbol = front
        message.next_state = self.position = TransmitPosition(key, block, symbol, self.ordinal, place or front)

    def info(self, item: TxObject, repair: int) -> Info:
        """The object's information; `repair` as in `data`."""
        origin, key, fti = self.origin, item.object_id, item.fti
        identity = info_identity(origin.source_id, key)
        message = Info(origin, self._number(), item.flags | repair, fti.fec_id, key, fti, item.content.info, identity)
        self.place = (key, 0, 0)
        if item.counted:
            self._link(message, None if repair else self.place, self.place)
        else:
            self.position = None
        return message

    def flush(self, item: TxObject) -> Flush:
        """Everything through the end of this object was sent."""
        fec = self._config.fec
        block, symbol, length = *EMPTY_OBJECT[fec], 0
        if item.partition.blocks:
            block = item.partition.blocks - 1
            length = item.partition.length(block)
            symbol = length - 1
        known = self._known()
        message = Flush(self.origin, self._number(), fec, item.object_id, block, symbol, length)
        self._link(message, None)
        message.expects_if_complete = known
        return message

    def squelch(self, first: int, length: int, invalid: Iterable[int]) -> Squelch:
        """What comes before object `first`, whose first block has this length, can't be repaired, nor the `invalid`."""
        gone = tuple(sorted(invalid)[: self._config.segment // 2])
        message = Squelch(self.origin, self._number(), self._config.fec, first, 0, 0, length, gone)
        self._link(message, None)
        return message

    def probe(self, sequence: int, clock: int, rate: int | None) -> Probe:
        """A probe of the round-trip time; `clock` is the sender's in microseconds."""
        seconds, microseconds = divmod(clock, 1_000_000)
        message = Probe(self.origin, self._number(), sequence, seconds, microseconds, rate)
        self._link(message, None)
        return message
