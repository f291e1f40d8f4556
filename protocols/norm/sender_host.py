"""The host a sender's messages come from: without authentication, all that tells them from forged ones.

A sender is known by its id and by its host, whatever the port: a program that is started again has another. Messages in its
name from other hosts are ignored while it is heard. Who can forge source addresses, or is on the same host, is not kept off.
"""

from protocols.machine import Address
from protocols.norm.sender_state import SenderState

__all__ = ["is_sent_by", "note_host"]


def is_sent_by(sender: SenderState, host: Address, now: float) -> bool:
    """Return whether a message in the sender's name is taken for its own.

    It is if it comes from the sender's host, or when nothing was heard from there for an activity period.
    """
    return sender.host == host or sender.host is None or sender.last_heard + sender.activity_period() <= now


def note_host(sender: SenderState, host: Address, now: float) -> bool:
    """Note the host of a message in the sender's name; return False if it is to be ignored.

    Of a sender that is new, that host counts from which more messages come, so that a few forged ones that came before its
    own do no harm.
    """
    if sender.host == host:
        return True
    if not is_sent_by(sender, host, now):
        sender.strangers += 1
        if sender.is_established or sender.strangers <= sender.received:
            return False
    sender.host, sender.strangers = host, 0
    return True
