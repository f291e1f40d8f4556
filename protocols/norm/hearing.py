"""How each message of a sender changes what a receiver knows of it (RFC 5740 5.3): one function per message.

A function is given the sender as the receiver sees it, the message, the sequence number that comes next, and the time. It
returns True when it has moved `remote.at` itself.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from protocols.norm.messages import EMPTY_OBJECT, FLAG_REPAIR, FLAG_STREAM, Data, Flush, Fti, Info, NormMessage, Probe, Squelch
from protocols.norm.probe_response import NOTHING_HEARD
from protocols.serial import ahead

if TYPE_CHECKING:
    from protocols.norm.sender_state import SenderState

__all__ = ["HANDLERS"]

JUST_BEGUN = 64
"""A sender that has sent fewer messages than this has just begun: to catch up costs at most as many repairs."""


# -- joining -----------------------------------------------------------------------------------------------------------


def _joined(remote: "SenderState", message: Data | Info) -> bool:
    """Join at the first object whose beginning is heard (NRL's policy CURRENT), or with a sender that has just begun."""
    if remote.synced:
        return True
    part = 0
    if isinstance(message, Data):
        part = message.block if message.fti is None else message.fti.partition.first(message.block)
    if not _joined_start(remote, message, part) and not message.flags & FLAG_REPAIR and not part:
        remote.join(message.object_id, message.fec_id)
    return remote.synced


def _joined_start(remote: "SenderState", message: Data | Info | Flush, part: int) -> bool:
    """Join at object 0 if the sender's few messages so far can hold no more than this object's `part` and those before it.

    Otherwise a receiver that was there all the time, but lost the one INFO or DATA message it may join at, would miss a
    small object without a word. A sender's ids begin at 0, NRL's too; its sequence numbers begin anywhere, but with the
    first probe. A FLUSH of one block of object 0 alone says as much.
    """
    sent = (message.sequence - remote.began) & 0xFFFF
    leave_lockstep = isinstance(message, Flush) and not message.object_id and not part
    if leave_lockstep or message.object_id + part <= sent < JUST_BEGUN:
        remote.join(0, message.fec_id)
    return remote.synced


def _reached(remote: "SenderState", object_id: int) -> bool:
    """Bring the front to this object if it is new; True when the object is at the front."""
    order = ahead(object_id, remote.at.object_id)
    if order > 0:
        remote.open_through(object_id)
    return order >= 0


# -- content -----------------------------------------------------------------------------------------------------------


def _on_info(remote: "SenderState", message: Info, sequence: int, now: float) -> bool:
    """NORM_INFO: the object's information, and the news that the object began."""
    if message.flags & FLAG_STREAM or not _joined(remote, message):
        return False
    _reached(remote, message.object_id)
    item = remote.item_of(message)
    at, place = remote.at, (message.object_id, 0, 0)
    repair = message.flags & FLAG_REPAIR
    remote.move(message, (at.object_id, at.block, at.symbol), sequence, place if repair else None)
    if item is not None and item.info is None:
        remote.inform(item, message.payload)
    if repair:
        remote.rewind(place, now)
    remote.check(place, now)
    return True


def _on_data(remote: "SenderState", message: Data, sequence: int, now: float) -> bool:
    """NORM_DATA: a symbol, and the news that everything before it was sent."""
    if message.flags & FLAG_STREAM or not _joined(remote, message):
        return False
    key, block, symbol = message.object_id, message.block, message.symbol
    at_front = key == remote.at.object_id or _reached(remote, key)
    item = remote.objects.get(key) or remote.item_of(message)
    fti = item.fti if item is not None else message.fti
    if fti is None or not _fits(message, fti):
        remote.receiver.count("ignored")
        return False
    at, length = remote.at, fti.partition.length(block)
    # Source symbols of a block are sent in order, and parity behind them all.
    parity = symbol >= length
    start = (block + 1, 0) if parity else (block, symbol)
    front = (at.block, at.symbol)
    fresh = at_front and (start > front if parity else start >= front)
    repair = bool(message.flags & FLAG_REPAIR) or not (fresh or (parity and start == front))
    place = (key, block, symbol) if repair else None
    if not fresh:
        remote.move(message, (at.object_id, *front), sequence, place)
    else:
        if start != front and item is not None:
            item.skip(*front, *start)
            remote.whole = False
        end = start if parity else (block, symbol + 1) if symbol + 1 < length else (block + 1, 0)
        remote.move(message, (key, *end), sequence, place)
    remote.take(item, message, length, fresh)
    if place is not None:
        remote.rewind(place, now)
    if not (fresh and front[1] and start[0] == front[0]):
        # Not within a block, where nothing new is to be asked for.
        remote.check((key, block, 0), now)
    return True


def _fits(message: Data, fti: Fti) -> bool:
    """Is the symbol one of its object, with the right number of bytes?"""
    if message.fti is not None and message.fti is not fti and message.fti != fti:
        return False
    partition = fti.partition
    if message.block >= partition.blocks:
        return False
    length = partition.length(message.block)
    if message.symbol >= length:
        return message.symbol - length < fti.parity and message.length == partition.vector(message.block)
    return message.length == partition.payload(partition.first(message.block) + message.symbol)


# -- commands ----------------------------------------------------------------------------------------------------------


def _on_flush(remote: "SenderState", message: Flush, sequence: int, now: float) -> bool:
    """CMD(FLUSH): everything through the end of this block was sent."""
    empty = (message.block, message.symbol) == EMPTY_OBJECT.get(message.fec_id)
    if not remote.synced and not _joined_start(remote, message, 0 if empty else message.block):
        return False
    at_front = _reached(remote, message.object_id)
    if empty and message.object_id in remote.objects:
        # Only its information is missing. Asked for the whole of an empty object, libnorm1 crashes.
        remote.open_empty(message.object_id, message.fec_id)
    at = remote.at
    block, symbol = at.block, at.symbol
    if at_front and at.object_id in remote.objects:
        to = message.block + 1
        item = remote.objects.get(at.object_id)
        if empty:
            # The end lies behind the information.
            to = 1
        elif item is not None:
            to = min(to, item.fti.partition.blocks)
            if to > block:
                item.skip(block, symbol, to, 0)
                remote.whole = False
        if to > block:
            block, symbol = to, 0
    remote.move(message, (at.object_id, block, symbol), sequence)
    remote.check((message.object_id, message.block + 1, 0), now)
    return True


def _on_squelch(remote: "SenderState", message: Squelch, sequence: int, now: float) -> bool:
    """CMD(SQUELCH): what comes before this object will not be repaired, nor what is listed."""
    if not remote.synced:
        return False
    if ahead(message.object_id, remote.at.object_id) > 0:
        remote.open_through(message.object_id)
    remote.give_up([key for key in remote.objects if ahead(key, message.object_id) < 0 or key in message.invalid], "squelched")
    return False


def _on_probe(remote: "SenderState", message: Probe, sequence: int, now: float) -> bool:
    """CMD(CC): note the sender's clock, and answer in time."""
    if not message.cc_sequence and not remote.synced:
        remote.began = message.sequence
    feedback = remote.feedback or NOTHING_HEARD
    rng = remote.receiver.ports.rng
    remote.feedback = feedback.probed(message, now, remote.grtt, remote.backoff, remote.gsize, rng)
    return False


HANDLERS: dict[type[NormMessage], Callable[["SenderState", Any, int, float], bool]] = {
    Data: _on_data,
    Info: _on_info,
    Flush: _on_flush,
    Squelch: _on_squelch,
    Probe: _on_probe,
}
