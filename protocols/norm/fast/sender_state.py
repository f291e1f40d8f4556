"""A sender as one fast receiver sees it: messages that only advance the position are processed by short cuts."""

from math import inf
from typing import Final

from protocols.fast.contract import Coordinator, FastMessage, FastState
from protocols.norm.fast.messages import FastData, FastFlush, FastInfo, FastProbe, Loss
from protocols.norm.fast.nack_log import FastNackProcess
from protocols.norm.maps import BlockBitmaps
from protocols.norm.messages import FLAG_REPAIR
from protocols.norm.position import Point, TransmitPosition
from protocols.norm.sender_state import SenderMessage
from protocols.norm.session import Session
from protocols.norm.stream_reception import StreamSenderState

__all__ = ["ADVANCED", "OTHER", "RESCHEDULE", "FastSenderState"]

OTHER: Final = 0
ADVANCED: Final = 1
RESCHEDULE: Final = 2
"""Results of a short cut: the message takes more than it; done; done, and the deadline may have changed."""


class FastSenderState(StreamSenderState, FastState):
    """One sender as one receiver sees it; `position` is the sender's own object wherever that is equal."""

    __slots__ = ("attentive", "coordinator", "overheard")
    process_type = FastNackProcess

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.attentive = False
        self.overheard = 0
        self.coordinator: Coordinator | None = None

    def take(self, message: FastData, now: float) -> int:
        """Process content by a short cut, if there is one, unless it `expects` this position, which takes no call.

        It may follow lost messages: only repairs were lost, or it is a new symbol further on in the block.
        Returns OTHER, ADVANCED or RESCHEDULE.
        """
        position = self.position
        if message.expects_if_complete is position:
            return self.advance(message, now) or self.interpret(message, now)
        gap = (message.sequence - position.sequence) & 0xFFFF
        if message.next_state is None or message.origin is not self.origin or self.idle_at == inf or gap >= 0x8000:
            return self.interpret(message, now)
        if message.expects is None:
            return self._advance_over_repairs(message, gap, now) or self.interpret(message, now)
        block, symbol = message.block, message.symbol
        # The last symbol of a block moves on to the next.
        if position.block != block or position.object_id != message.object_id:
            return self.interpret(message, now)
        if not position.symbol < symbol < message.block_length - 1:
            return self.interpret(message, now)
        key, objects = message.object_id, self.objects
        item = objects.item if objects.key == key else objects.get(key)
        if item is None or message.payload is not None:
            return self.interpret(message, now)
        self.last_heard = now
        self.lost += gap
        item.lose(block, (1 << symbol) - (1 << position.symbol))
        self.position = message.next_state
        if self.is_complete:
            # Everything before this block arrived, so there is nothing to request yet.
            self.is_complete = False
        elif not position.symbol and self.check((key, block, 0), now):
            # Within a block there is nothing new to request.
            return RESCHEDULE
        return ADVANCED

    def interpret(self, message: FastData | FastInfo | FastProbe, now: float) -> int:
        """Process a message as the plain receiver does, which looks for the sender first; OTHER if that takes more."""
        if message.origin is not self.origin:
            return OTHER
        self.receive(message, now)
        return RESCHEDULE

    def process_in_lockstep(self, message: FastMessage, now: float) -> bool:
        """Process a message that keeps receivers in lockstep; return False for one that takes more.

        The group has the position, and when the message came. Afterwards the position is that after the message, but after a
        CMD(CC) that of the group, and the receiver's own if its application postpones an object.
        """
        if isinstance(message, FastProbe):
            # As `receive` does.
            if message.origin is not self.origin:
                self._update_origin(message)
            self._on_probe(message, now)
            return True
        if isinstance(message, FastData) and not message.opens:
            return self._end_object(message, now)
        return isinstance(message, (FastData, FastInfo)) and self._begin_object(message, now)

    def _begin_object(self, message: FastData | FastInfo, now: float) -> bool:
        """Process the first message of an object in lockstep; return False for one that takes more."""
        objects, key, session = self.objects, message.object_id, self.session
        if message.origin is not self.origin or len(objects) >= session.window or session.is_silent:
            return False
        if objects and objects.get((key - 1) & 0xFFFF) is not None:
            # The end of the object before may be missing.
            return False
        following: TransmitPosition = message.next_state
        objects[key] = None
        self.is_complete = False
        self._set_next_new(key)
        item, self.position = self._object_of(message), following
        if isinstance(message, FastInfo):
            self.store_info(item, message)
        else:
            self.store(item, message, message.block_length, True)
        if not self.is_complete:
            if self._is_postponed(following):
                next_new = key, following.block, following.symbol
                self.position = TransmitPosition(*next_new, following.sequence, next_new)
            self.check((key, 0, 0), now)
        return True

    def take_info_again(self, message: FastInfo, now: float) -> bool:
        """Process a repeated NORM_INFO in lockstep; return False for one that opens its object."""
        objects, start = self.objects, (message.object_id, 0, 0)
        item = objects.get(message.object_id)
        if message.origin is not self.origin or (item is None and message.object_id in objects):
            return False
        self.position, self.last_heard = message.next_state, now
        self.store_info(item, message)
        self._rewind(start, now)
        self.check(start, now)
        return True

    def _end_object(self, message: FastData, now: float) -> bool:
        """Process the last symbol of an object in lockstep; return False for a message that takes more."""
        objects, key = self.objects, message.object_id
        item = objects.item if objects.key == key else objects.get(key)
        if message.origin is not self.origin or (item is None and key in objects):
            return False
        self.position = message.next_state
        self.store(item, message, message.block_length, True)
        if not (message.symbol or self.is_complete):
            self.check((key, message.block, 0), now)
        return True

    def advance(self, message: FastData | FastFlush, now: float, position: TransmitPosition | None = None) -> int:
        """Process a message with `expects_if_complete` at this position. `position` is that after it; None for the sender's.

        Returns OTHER, ADVANCED or RESCHEDULE.
        """
        item, key = None, message.object_id
        if not self.is_complete:
            objects = self.objects
            item = objects.item if objects.key == key else objects.get(key)
            if (item is None and key in objects) or self._is_postponed(self.position):
                return OTHER
        self.last_heard = now
        next_state: TransmitPosition = message.next_state
        self.position = next_state if position is None else position
        block = message.block
        if type(message) is FastData:
            length = message.block_length
            number, repair = message.symbol - length, message.flags & FLAG_REPAIR
            if item is None:
                self.duplicates += bool(repair or number >= 0)
            elif repair or number >= 0:
                self.store(item, message, length, False)
            process = self.nack_process
            if repair and process is not None:
                process.rewind(next_state.tx_point, now)
        else:
            # A flush goes through the end of its block.
            block += 1
            self.shorten_holdoff()
        if self.is_complete:
            return RESCHEDULE if self.attentive and self.nack_process is not None else ADVANCED
        return RESCHEDULE if self.check((key, block, 0), now) else ADVANCED

    def _advance_over_repairs(self, message: FastData, gap: int, now: float) -> int:
        """Process a message after `gap` lost ones if these were repairs, as they are if the next new symbol is the sender's.

        Or process a repair of what was sent before this receiver's next new symbol, if it lost the symbols from there on.
        """
        position, after = self.position, None
        expected: TransmitPosition | None = message.expects_if_complete
        if expected is None or not (position.block or position.symbol):
            # At the beginning of an object, its NORM_INFO may be what was lost.
            return OTHER
        key, next_new = position.object_id, (position.block, position.symbol)
        if next_new != (expected.block, expected.symbol) or key != expected.object_id:
            if not message.flags & FLAG_REPAIR or message.object_id != key or (message.block, message.symbol) >= next_new:
                return OTHER
            following: TransmitPosition = message.next_state
            after = TransmitPosition(key, position.block, position.symbol, following.sequence, following.tx_point)
        result = self.advance(message, now, after)
        self.lost += gap if result else 0
        return result

    def skip(self, numbers: tuple[int, ...], losses: dict[int, Loss | None]) -> bool:
        """Record the loss of messages of bursts; an object that is not wanted misses nothing.

        Returns whether something is missing for the first time, or behind what others have requested.
        """
        was_complete, objects, is_more = self.is_complete, self.objects, False
        for number in numbers:
            self.lost += 1
            loss = losses[number]
            if loss is None:
                continue
            key, block, mask = loss
            item = objects.item if objects.key == key else objects.get(key)
            if item is not None:
                is_more, self.is_complete = True, False
                # As `RxObject.lose`, without a call.
                missing = item.missing_symbols
                if missing is None:
                    item.missing_symbols = BlockBitmaps(block, mask)
                else:
                    missing.add(block, mask)
        if not is_more or was_complete:
            return is_more
        process, first = self.nack_process, objects.item
        return process is not None and process.suppressed_to is not None and first is not None and not first.fti.is_coded

    def unlink(self) -> None:
        """Become independent of what is kept for the whole group that the receiver was in."""
        if isinstance(self.nack_process, FastNackProcess):
            self.nack_process.unlink()

    # -- hooks of the plain state ----------------------------------------------------------------------------------

    def _move(self, message: SenderMessage, next_new: Point, sequence: int, tx_point: Point | None = None) -> None:
        """Set the position after `message`: the sender's own where the next new symbol is the same."""
        # A receiver that has not joined is not in the state of those at the sender's position. Nor is a late message's
        # position, which leaves the sequence number where it was, that of the sender now.
        if self.first_sequence is None and sequence != self.position.sequence and isinstance(message, FastMessage):
            following: TransmitPosition | None = message.next_state
            if following is not None:
                if (following.object_id, following.block, following.symbol) == next_new and not self._is_postponed(following):
                    self.position = following
                    return
                sequence = following.sequence
        object_id, block, symbol = next_new
        self.position = TransmitPosition(object_id, block, symbol, sequence, tx_point or next_new)

    def _is_postponed(self, position: TransmitPosition) -> bool:
        """Return whether the object that is being sent is not open yet, so that each of its messages is to be looked at."""
        key, objects = position.object_id, self.objects
        if objects.more is None:
            return bool(key == objects.key) and objects.item is None
        return key in objects.more and objects.more[key] is None

    def _ordinal(self, message: SenderMessage) -> int:
        """Return the sender's count of messages where it is known, so that positions can be shared."""
        if isinstance(message, FastMessage) and message.next_state is not None:
            following: TransmitPosition = message.next_state
            return following.sequence - 1
        return message.sequence
