"""The SRM receiver with a short way for the next unit and for repairs of units it has: most of what it receives."""

from math import inf

from protocols.arq.messages import Data
from protocols.arq.sender_state import SenderState
from protocols.arq.session import Session
from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Address, Group, Message, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.messages import Repair
from protocols.srm.receiver import SrmPolicy, SrmReceiver

__all__ = ["FastSrmReceiver", "make_receiver"]


_OWN = OwnState()
"""Shared by all receivers: nothing ever advances them from outside."""


class FastSrmReceiver(SrmReceiver, FastMachine):
    """An `SrmReceiver` that changes the state of a sender itself where no timer of a missing unit is concerned.

    There are no groups: at every request and every session message the members come to differ.
    """

    __slots__ = ("fast_state",)

    def __init__(self, session: Session, policy: SrmPolicy) -> None:
        super().__init__(session, policy)
        self.fast_state = _OWN

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a sender or of another member."""
        kind = type(message)
        if kind is Data or kind is Repair:
            assert isinstance(message, Data)
            sender = self._senders.get(message.sender)
            # Before the first message, of another instance and after a pause there is more to do.
            if sender is not None and sender.origin.instance == message.instance and self._srm.member.due < inf:
                is_done = self._take_repair if message.repair else self._take_next
                if is_done(sender, message, now):
                    sender.origin.address = source
                    return
        super().receive(message, source, to, now)

    def _take_next(self, sender: SenderState, message: Data, now: float) -> bool:
        """Store the next unit of an object that it does not complete; False if the message is anything else."""
        item = sender._objects.get(message.object_id)
        if item is None or not message.unit or sender._unit != message.unit or sender._object != message.object_id:
            return False
        if item._left == 1 or not item.fits(message):
            return False
        srm = self._srm
        self._session.data_received += 1
        sender.last_heard = srm.member.active_at = now
        sender._unit += 1
        if sender._store(item, message):
            srm.keep(message)
        else:
            self._due(self._next_timer())
        return True

    def _take_repair(self, sender: SenderState, message: Data, now: float) -> bool:
        """Handle a repair of a unit that was received; False if the message is anything else."""
        objects, object_id, unit = sender._objects, message.object_id, message.unit
        item = objects.get(object_id)
        if item is None or sender._object != object_id or unit >= sender._unit or message.first > next(iter(objects)):
            return False
        if not item.fits(message) or not item.has(unit):
            return False
        srm = self._srm
        self._session.data_received += 1
        self._session.duplicates += 1
        sender.last_heard = srm.member.active_at = now
        before = srm.deadline
        srm.on_repair(message, now)
        if srm.deadline != before:
            self._due(self._next_timer())
        return True


def make_receiver(ports: Ports, config: SrmConfig, node: int, group: Group) -> FastSrmReceiver:
    """Return an SRM receiver; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return FastSrmReceiver(session, SrmPolicy(session, config))
