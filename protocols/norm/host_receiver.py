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
"""Seconds after which a sender that was not heard is not waited for, if that is longer than `_ROUNDS`."""
_LEAST: Final = 0.1
_ROUNDS: Final = 5
"""Seconds, and GRTT, for which a receiver that was asked for its ACK waits after the last message of the sender: in these the
next request would come. While the sender repairs, it does not ask (RFC 5740 5.5.3)."""
_LONGEST: Final = 10.0
"""Seconds for which a complete receiver is awaited at the most, if that is longer than the activity period of the sender."""


class NormHostReceiver(NormBatchReceiver):
    """A `NormBatchReceiver` that can be asked whether it `is_awaited`."""

    __slots__ = ("_flushed",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        # Sender -> its instance and the object of its last FLUSH, and whether it asked for an ACK.
        self._flushed: dict[int, tuple[tuple[int, int], bool]] = {}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of a sender, or the feedback of another receiver."""
        super().receive(message, source, to, now)
        if isinstance(message, Flush) and self._known(message.origin.source_id) is not None:
            if len(self._flushed) > self.session.config.senders:
                self._flushed.clear()
            flushed = message.origin.instance_id, message.object_id
            self._flushed[message.origin.source_id] = flushed, is_asked(message, self.session.node)

    def is_awaited(self, now: float, since: float) -> bool:
        """Return whether a sender may still ask for an ACK: it has not announced its end, or asks or repairs.

        The receiver is complete `since` this time; it is awaited for one activity period (RFC 5740 5.3) at the most, in which a
        sender asks as often as its robust factor says.
        """
        return not self.session.is_silent and any(self._is_awaited_by(sender, now, since) for sender in self.senders())

    def _is_awaited_by(self, sender: SenderState, now: float, since: float) -> bool:
        silence, rounds = now - sender.last_heard, _ROUNDS * sender.grtt
        if not sender.is_joined or silence > max(_GONE, rounds) or now - since >= max(_LONGEST, sender.activity_period()):
            return False
        assert sender.origin is not None
        flushed, is_asked = self._flushed.get(sender.node, (None, False))
        # Objects of a sender that was started again have the same ids.
        last = sender.origin.instance_id, sender.position.object_id
        return flushed != last or (is_asked and silence < max(_LEAST, rounds))
