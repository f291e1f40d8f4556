"""What a receiver answers to a sender besides requests: ACKs of FLUSH (RFC 5740 5.5.3), and commands for its application."""

from protocols.events import CommandReceived
from protocols.norm.messages import Application, Flush
from protocols.norm.nack_process import is_missing_before
from protocols.norm.sender_requests import answer_to, is_asked
from protocols.norm.sender_state import SenderState

__all__ = ["AnsweringSenderState"]


class AnsweringSenderState(SenderState):
    """A `SenderState` that acknowledges what the sender asks for, and tells its commands."""

    __slots__ = ()

    def _on_acking_flush(self, message: Flush, sequence: int, now: float) -> bool:
        """CMD(FLUSH) with a list of nodes: acknowledge it if this node is listed and has everything (RFC 5740 5.5.3).

        A receiver that is listed and has not joined joins at the object.
        """
        node = self.session.node
        if not self.is_joined and node in message.acking:
            self._join(message.object_id, message.fec_id)
        has_moved = self._on_flush(message, sequence, now)
        if is_asked(message, node) and self.is_joined and self.has_all(message):
            self._confirm(message, now)
        return has_moved

    def has_all(self, flush: Flush) -> bool:
        """Return whether everything through the point that a FLUSH names is complete."""
        end = (0, 1) if flush.is_of_empty_object else (flush.block + 1, 0)
        return not is_missing_before(self.objects, (flush.object_id, *end))

    def _confirm(self, message: Flush, now: float) -> None:
        """Plan the ACK of a FLUSH: at a random time within a GRTT, at once if the sender has receivers wait for nothing."""
        requests, session, profile = self._requests_of_sender(), self.session, self._profile
        if session.is_silent or not requests.may_confirm(message, session.node):
            return
        content = answer_to(message, session.ack_answerer)
        if content is None:
            return
        spread = profile.grtt * (1 if session.node in message.acking else profile.backoff)
        requests.confirm(message, content, now + session.ports.rng.uniform() * spread if profile.backoff else now)
        if requests.due <= now:
            self._send_flush_ack(requests, now)

    def _on_command(self, message: Application, now: float) -> None:
        """CMD(APPLICATION): tell the application, once for all copies."""
        patience = 2 * self.session.config.robust * self._profile.grtt
        if self._requests_of_sender().is_new_command(message.content, now, patience):
            self.session.ports.notify(CommandReceived(message.origin.source_id, message.content))
