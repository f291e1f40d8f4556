"""The NORM receiver of a program that ends by itself: it reports whether a sender may still request an ACK."""

from typing import Final

from protocols.machine import Address, Group, Message, Ports
from protocols.norm.config import NormConfig
from protocols.norm.messages import Flush
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender_requests import is_asked
from protocols.norm.sender_state import SenderState

__all__ = ["NormHostReceiver"]

_GONE: Final = 1.0
"""Seconds after which a sender that was not heard is not waited for."""
_LEAST: Final = 0.1
_ROUNDS: Final = 5
"""Seconds, and GRTT, for which a receiver waits after the last request for its ACK: in these the next one would come."""


class NormHostReceiver(NormBatchReceiver):
    """A `NormBatchReceiver` that can be asked whether it `is_awaited`."""

    __slots__ = ("_flushed",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        # Sender -> object of the last FLUSH, when it was received, and whether it asked for an ACK.
        self._flushed: dict[int, tuple[int, float, bool]] = {}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of a sender, or the feedback of another receiver."""
        super().receive(message, source, to, now)
        if isinstance(message, Flush) and self._known(message.origin.source_id) is not None:
            if len(self._flushed) > self.session.config.senders:
                self._flushed.clear()
            self._flushed[message.origin.source_id] = message.object_id, now, is_asked(message, self.session.node)

    def is_awaited(self, now: float) -> bool:
        """Return whether a sender may still ask for an ACK: it has not announced its end, or has asked just now."""
        return not self.session.is_silent and any(self._is_awaited_by(sender, now) for sender in self.senders())

    def _is_awaited_by(self, sender: SenderState, now: float) -> bool:
        if not sender.is_joined or now > sender.last_heard + _GONE:
            return False
        object_id, heard, is_asked = self._flushed.get(sender.node, (-1, 0.0, False))
        if object_id != sender.position.object_id:
            return True
        return is_asked and now < heard + max(_LEAST, _ROUNDS * sender.grtt)
