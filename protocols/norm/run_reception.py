"""Receive on a real host: a run of NORM_DATA, consecutive source symbols of a block that arrived in one batch, at once.

Packets that would change nothing are not even decoded.
"""

from math import inf

from protocols.machine import Address, Message
from protocols.norm.limits import NEW_SENDERS_RATE
from protocols.norm.messages import FLAG_REPAIR, FLAG_STREAM, Command, Data, DataRun, Info
from protocols.norm.position import TransmitPosition
from protocols.norm.sender_host import is_sent_by
from protocols.norm.sender_state import SenderState
from protocols.norm.stream_receiver import NormStreamReceiver
from protocols.norm.stream_reception import StreamSenderState
from protocols.norm.wire.preview import feedback_to, sender_in
from protocols.run import Run
from protocols.serial import ahead

__all__ = ["NormBatchReceiver"]

LONGEST_FEEDBACK = 8192
"""Bytes of feedback from which on it is not overheard; NACKs are no longer than a segment (RFC 5740 4.3.1)."""


class NormBatchReceiver(NormStreamReceiver):
    """A `NormStreamReceiver` that takes runs, too, and chooses packets before they are decoded."""

    __slots__ = ()

    def receive_run(self, run: Run, source: Address, to: Address, now: float) -> None:
        """Process consecutive messages of a sender; at once if it is known."""
        assert isinstance(run, DataRun)
        sender = self._known(run.origin.source_id)
        if sender is None or sender.extras.source not in (None, source) or sender.extras.congestion is not None:
            # Congestion control counts every message.
            for message in run.messages():
                self.receive(message, source, to, now)
        else:
            (_receive_stream if run.flags & FLAG_STREAM else _receive)(sender, run, now)
            self.settle(sender)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message whose packet a queue has marked; congestion control may count that as a loss."""
        if isinstance(message, (Data, Info, Command)):
            sender = self._known(message.origin.source_id)
            if sender is not None and sender.extras.congestion is not None:
                sender.extras.congestion.note_mark()
        self.receive(message, source, to, now)

    def leave(self, now: float) -> None:
        """Tell the senders whose rate this receiver may limit that it leaves (RFC 5740 5.5.2)."""
        for sender in self.senders():
            if sender.extras.congestion is not None and sender.extras.congestion.is_listed:
                sender.extras.congestion.leave(now)
                sender.wake(now)

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        """Return whether the message in a packet could have an effect; False for most of what a flood consists of.

        Feedback of others has one during a back-off, if it is to a sender that is known.
        """
        node = sender_in(data)
        if node is not None:
            known = self._senders.get(node)
            if known is None:
                return self.extras.newcomers.left(source, now, NEW_SENDERS_RATE) >= 1.0
            # Those of replaced ports are counted.
            return is_sent_by(known, source, now) or not known.is_established or source in known.extras.replaced
        to = feedback_to(data)
        if to is None:
            return True
        known = self._senders.get(to[0])
        return known is not None and len(data) <= LONGEST_FEEDBACK and _is_affected(known, to[1], now)


def _is_affected(state: SenderState, instance_id: int, now: float) -> bool:
    """Return whether another receiver's NACK or ACK to this instance of the sender can have an effect now."""
    process, response, origin, congestion = state.nack_process, state.probe_response, state.origin, state.extras.congestion
    if origin is None or origin.instance_id != instance_id:
        return False
    if congestion is not None and congestion.due < inf:
        return True
    return (process is not None and now < process.backoff_end) or (response is not None and response.due < inf)


def _receive(state: SenderState, run: DataRun, now: float) -> None:
    """Process the messages of a run from the sender of `state`: like one by one, but at once as soon as that is simple."""
    if not _continues(state, run):
        # Behind a loss, at the beginning of a block before which something is missing, or the first of some repairs.
        state.receive(next(run.messages()), now)
        run = run.rest()
    if _continues(state, run):
        _store(state, run, now)
    elif _repairs(state, run, now):
        _fill(state, run, now)
    else:
        for message in run.messages():
            state.receive(message, now)


def _receive_stream(state: StreamSenderState, run: DataRun, now: float) -> None:
    """Process the messages of a run of a stream, at once as far as they only continue it."""
    if state.store_run(run, now):
        return
    state.receive(next(run.messages()), now)
    run = run.rest()
    if run.symbols and not state.store_run(run, now):
        for message in run.messages():
            state.receive(message, now)


def _continues(state: SenderState, run: DataRun) -> bool:
    """Return whether each message of a run only moves the position and stores a symbol.

    The first of a block would begin a NACK process, too, if anything was missing.
    """
    position = state.position
    next_new = (position.object_id, position.block, position.symbol)
    if next_new != (run.object_id, run.block, run.symbol) or run.flags & FLAG_REPAIR:
        return False
    return bool(run.symbol or state.is_complete) and _is_next(state, run)


def _repairs(state: SenderState, run: DataRun, now: float) -> bool:
    """Return whether each message of a run only fills a gap or is a duplicate.

    The transmit point of the first message has to be known: then those of the others change no NACK process.
    """
    position, process, point = state.position, state.nack_process, (run.object_id, run.block, run.symbol - 1)
    if position.tx_point != point or not run.flags & FLAG_REPAIR or not _is_next(state, run):
        return False
    if process is not None and not (now < process.holdoff_end and process.is_idle_before((*point[:2], 0), now)):
        return False
    order, last = ahead(run.object_id, position.object_id), (run.block, run.symbol + len(run.symbols) - 1)
    return order < 0 or (order == 0 and last < (position.block, position.symbol))


def _is_next(state: SenderState, run: DataRun) -> bool:
    """Return whether a run comes next in sequence, and is of an incomplete object as it is known."""
    item = state.objects.get(run.object_id)
    if item is None or item.is_stream or run.origin is not state.origin or not state.is_active:
        return False
    return (item.fti is run.fti or item.fti == run.fti) and run.sequence == state.position.sequence & 0xFFFF


def _store(state: SenderState, run: DataRun, now: float) -> None:
    """Store the symbols and move the position behind them."""
    item, count = state.objects[run.object_id], len(run.symbols)
    assert item is not None
    key, block, symbol = run.object_id, run.block, run.symbol + count
    next_new = (key, block, symbol) if symbol < item.fti.partition.length(block) else (key, block + 1, 0)
    state.position = TransmitPosition(*next_new, state.position.sequence + count, next_new)
    state.last_heard = now
    try:
        item.write_all(block, run.symbol, run.symbols)
    except OSError as error:
        state.abandon(key, f"sink: {error}")
        return
    if next_new[1] >= item.fti.partition.blocks:
        state.finish(item)


def _fill(state: SenderState, run: DataRun, now: float) -> None:
    """Store the symbols that are missing, and note the transmit point."""
    item, position, key = state.objects.get(run.object_id), state.position, run.object_id
    sequence, last = position.sequence + len(run.symbols), run.symbol + len(run.symbols) - 1
    next_new = (position.object_id, position.block, position.symbol)
    state.position = TransmitPosition(*next_new, sequence, (key, run.block, last))
    state.last_heard = now
    for step, payload in enumerate(run.symbols):
        try:
            if item is None or not item.fill(run.block, run.symbol + step, payload):
                state.duplicates += 1
                continue
        except OSError as error:
            state.abandon(key, f"sink: {error}")
        else:
            state.finish(item)
        item = state.objects.get(key)
