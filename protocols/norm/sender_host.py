"""The host a sender's messages come from: without authentication, all that tells them from forged ones.

A sender is known by its id and by its host, whatever the port: a program that is started again has another. Messages in its
name from other hosts are ignored while it is heard. Who can forge source addresses, or is on the same host, is not kept off.
"""

from protocols.events import NodeClash
from protocols.machine import Address
from protocols.norm.limits import host_of
from protocols.norm.sender_state import SenderState

__all__ = ["is_sent_by", "note_host"]


def is_sent_by(sender: SenderState, source: Address, now: float) -> bool:
    """Return whether a message in the sender's name is taken for its own.

    It is if it comes from the sender's host, or when nothing was heard from there for an activity period.
    """
    return sender.extras.source is None or _is_on_host(sender, source) or sender.last_heard + sender.activity_period() <= now


def _is_on_host(sender: SenderState, source: Address) -> bool:
    return sender.extras.source is not None and host_of(sender.extras.source) == host_of(source)


def note_host(sender: SenderState, source: Address, now: float) -> bool:
    """Note the host of a message in the sender's name; return False if it is to be ignored.

    Of a sender that is new, that host counts from which more messages come, so that a few forged ones that came before its
    own do no harm.
    """
    if _is_on_host(sender, source):
        sender.change_extras().source = source
        return True
    if not is_sent_by(sender, source, now):
        sender.change_extras().strangers += 1
        if sender.extras.strangers == 1:
            sender.session.ports.notify(NodeClash(sender.node, str(host_of(source))))
        if sender.is_established or sender.extras.strangers <= sender.received:
            return False
    extras = sender.change_extras()
    extras.source, extras.strangers = source, 0
    return True
