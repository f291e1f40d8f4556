"""Receive a run of NORM_DATA: several new source symbols of a block, which arrived in one batch of packets."""

from protocols.norm.messages import DataRun
from protocols.norm.position import TransmitPosition
from protocols.norm.sender_state import SenderState

__all__ = ["receive_run"]


def receive_run(state: SenderState, run: DataRun, now: float) -> None:
    """Process the messages of a run from the sender of `state`: like one by one, but at once from where nothing is missing."""
    if not _continues(state, run):
        # Behind a loss, or at the beginning of a block before which something is missing.
        state.receive(next(run.messages()), now)
        run = run.rest()
    if _continues(state, run):
        _store(state, run, now)
        return
    for message in run.messages():
        state.receive(message, now)


def _continues(state: SenderState, run: DataRun) -> bool:
    """Return whether each message of a run only moves the position and stores a symbol.

    The first of a block would begin a NACK process, too, if anything was missing.
    """
    position, item = state.position, state.objects.get(run.object_id)
    if item is None or run.origin is not state.origin or not state.is_active:
        return False
    if (item.fti is not run.fti and item.fti != run.fti) or not (run.symbol or state.is_complete):
        return False
    next_new = (position.object_id, position.block, position.symbol)
    return next_new == (run.object_id, run.block, run.symbol) and run.sequence == position.sequence & 0xFFFF


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
