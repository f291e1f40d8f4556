"""The host a sender's messages come from: without authentication, all that tells them from forged ones.

A sender is known by its id and by its host, whatever the port: a program that is started again has another. Messages in its
name from other hosts are ignored while it is heard, and so are most from ports that it no longer has: two programs with one id
would reset each other for ever. An attacker who forges source addresses, or is on the same host, is not stopped.
"""

from typing import Final

from protocols.events import NodeClash
from protocols.machine import Address
from protocols.norm.limits import host_of
from protocols.norm.sender_state import SenderState

__all__ = ["MOST_REPLACED", "is_sent_by", "note_host"]

MOST_REPLACED: Final = 16
"""Ports of a sender's host that are remembered because another has replaced them."""
FEW, MANY_TIMES = 16, 8
"""A replaced port is followed again after so many messages, and so many for each from the port that replaced it.

So a few forged messages do not shut the sender out, and two programs that both send do not replace each other again and again.
"""


def is_sent_by(sender: SenderState, source: Address, now: float) -> bool:
    """Return whether a message in the sender's name is taken for its own.

    It is if it comes from the sender's host, but for ports that others have replaced, or when nothing was heard of the sender
    for an activity period. `note_host` makes one more exception.
    """
    known = sender.extras.source
    if known is None or (_is_on_host(sender, source) and source not in sender.extras.replaced):
        return True
    return sender.last_heard + sender.activity_period() <= now


def _is_on_host(sender: SenderState, source: Address) -> bool:
    return sender.extras.source is not None and host_of(sender.extras.source) == host_of(source)


def note_host(sender: SenderState, source: Address, now: float) -> bool:
    """Note the host of a message in the sender's name; return False if it is to be ignored.

    Of a sender that is new, that host counts from which more messages come, so that a few forged ones that came before its
    own do no harm. Of several ports of its host, the one that was heard first last counts.
    """
    if _is_on_host(sender, source):
        return _note_port(sender, source, now)
    if not is_sent_by(sender, source, now):
        sender.change_extras().strangers += 1
        if sender.extras.strangers == 1:
            sender.session.ports.notify(NodeClash(sender.node, str(host_of(source))))
        if sender.is_established or sender.extras.strangers <= sender.received:
            return False
    extras = sender.change_extras()
    extras.source, extras.strangers, extras.replaced = source, 0, ()
    return True


def _note_port(sender: SenderState, source: Address, now: float) -> bool:
    """Note the port of a message from the sender's host; return False if it is to be ignored."""
    extras = sender.change_extras()
    if not is_sent_by(sender, source, now):
        extras.ignored += 1
        if not extras.is_shared:
            extras.is_shared = True
            sender.session.ports.notify(NodeClash(sender.node, str(host_of(source))))
        if extras.ignored <= FEW + MANY_TIMES * (sender.received - extras.replaced_at):
            return False
    others = [each for each in (*extras.replaced, extras.source) if each != source]
    extras.source, extras.replaced = source, tuple(others[-MOST_REPLACED:])
    extras.ignored, extras.replaced_at = 0, sender.received
    return True
