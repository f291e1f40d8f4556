"""The senders that a fast receiver knows: the only one is its state; several are in a dictionary, and end the lockstep."""

from collections.abc import Collection
from typing import Any, Final

from protocols.arq.fast.sender_state import FastSenderState
from protocols.arq.sender_state import SenderState
from protocols.fast.contract import OwnState

__all__ = ["NO_SENDERS", "OWN", "enter", "known_sender", "states_of"]

NO_SENDERS: Final[dict[int, SenderState]] = {}
"""Shared by the receivers that know one sender at most; never modified. A dictionary takes 200 bytes."""
OWN: Final = OwnState()
"""Shared by the receivers that know no sender, or several: nothing ever advances them from outside."""

# A receiver is of any class here: those of the protocols have no fast class in common.


def known_sender(receiver: Any, node: int) -> SenderState | None:
    """Return the state of the sender `node`; None if no message of it was received."""
    state: Any = receiver.fast_state
    if state is not OWN and state.origin.node == node:
        only: SenderState = state
        return only
    senders: dict[int, SenderState] = receiver._senders
    return senders.get(node)


def states_of(receiver: Any) -> Collection[SenderState]:
    """Return the states of all senders."""
    if receiver.fast_state is not OWN:
        return (receiver.fast_state,)
    senders: dict[int, SenderState] = receiver._senders
    return senders.values()


def enter(receiver: Any, node: int, state: FastSenderState) -> FastSenderState:
    """Enter the state of the sender `node`, and return it; the former one of a sender that has restarted is replaced."""
    known: Any = receiver.fast_state
    if receiver._senders is NO_SENDERS:
        if known is OWN or known.origin.node == node:
            receiver.fast_state = state
            return state
        receiver._senders, receiver.fast_state = {known.origin.node: known}, OWN
    receiver._senders[node] = state
    return state
