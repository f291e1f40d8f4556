"""Packets of a sender besides content and its end: commands, CMD(REPAIR_ADV), and FLUSH that asks for ACKs."""

from collections import deque
from collections.abc import Callable
from math import inf

from protocols.events import CommandSent, Event
from protocols.norm.ack_collector import AckCollector
from protocols.norm.config import NormConfig
from protocols.norm.congestion.states import FLAG_CLR
from protocols.norm.message_factory import MessageFactory
from protocols.norm.messages import ACK_CC, Ack, CcFeedback, Nack, NormMessage
from protocols.norm.repair_advertisement import pending_requests
from protocols.norm.sender_requests import app_ack
from protocols.norm.window import Window

__all__ = ["SenderControl"]


class _Command:
    __slots__ = ("command_id", "content", "left")

    def __init__(self, command_id: int, content: bytes, left: int) -> None:
        self.command_id, self.content, self.left = command_id, content, left


class SenderControl:
    """The queue of control messages of one sender; `due` is when the next one is to be sent, inf for none.

    They come before content, in this order: CMD(REPAIR_ADV), commands, FLUSH.
    """

    __slots__ = (
        "_command_due",
        "_commands",
        "_config",
        "_factory",
        "_feedback",
        "_is_advertising",
        "_notify",
        "_window",
        "acks",
        "due",
        "last_command",
    )

    def __init__(self, config: NormConfig, factory: MessageFactory, window: Window, notify: Callable[[Event], None]) -> None:
        self._config = config
        self._factory = factory
        self._window = window
        self._notify = notify
        self.acks = AckCollector(window, notify, max(1, config.robust), config.segment // 4)
        self._commands: deque[_Command] = deque()
        self._command_due = inf
        self.last_command = 0
        """The id of the last command."""
        self._is_advertising = False
        self._feedback: CcFeedback | None = None
        self.due = inf

    def configure(self, config: NormConfig) -> None:
        """Take other parameters; a command that is queued keeps its number of copies."""
        self._config = config
        self.acks.robust = max(1, config.robust)

    def update(self) -> None:
        """Set `due` after a change."""
        self.due = -inf if self._is_advertising else min(self._command_due, self.acks.due)

    def heard(self, feedback: Nack | Ack, now: float) -> None:
        """Take a receiver's feedback, which may be an ACK that is awaited."""
        self.acks.heard(feedback, now)
        self.update()

    def content_sent(self, now: float) -> None:
        """Begin to ask for ACKs if everything before the first watermark was sent."""
        self.acks.look(now)
        self.update()

    def command(self, content: bytes, copies: int, now: float) -> int:
        """Queue a command and return its id."""
        self.last_command += 1
        self._commands.append(_Command(self.last_command, content, copies or max(1, self._config.robust)))
        if len(self._commands) == 1:
            self._command_due = now
        self.update()
        return self.last_command

    def cancel_command(self, command_id: int, now: float) -> bool:
        """Remove a command from the queue; return False if it is not there."""
        found = next((command for command in self._commands if command.command_id == command_id), None)
        if found is None:
            return False
        if found is self._commands[0]:
            self._command_due = now if len(self._commands) > 1 else inf
        self._commands.remove(found)
        self.update()
        return True

    def advertise(self, feedback: Nack | Ack, is_news: bool) -> bool:
        """Advertise feedback that came to this sender alone, if it suppresses that of others; return whether it does.

        A NACK that asks for something new does, and an answer to a probe, except that of the current limiting receiver.
        """
        is_answer = isinstance(feedback, Ack) and feedback.ack_type == ACK_CC
        if is_answer and feedback.cc is not None and feedback.cc.flags & FLAG_CLR:
            is_answer = False
        if not self._config.backoff or not (is_news or is_answer):
            return False
        self._is_advertising, self._feedback = True, feedback.cc
        self.update()
        return True

    def next(self, now: float, grtt: float, repairing_until: float) -> NormMessage | None:
        """Make the next message, if one is due.

        FLUSH waits while repairs are aggregated or sent, before `repairing_until`; -inf for no repairs.
        """
        message: NormMessage | None = None
        if self._is_advertising:
            self._is_advertising = False
            requests, is_partial = pending_requests(self._window.objects.values(), self._config)
            message = self._factory.repair_adv(requests, is_partial, self._feedback)
        elif self._command_due <= now:
            message = self._next_command(now, grtt)
        elif self.acks.due <= now:
            message = self._next_flush(now, grtt, repairing_until)
        self.update()
        return message

    def _next_command(self, now: float, grtt: float) -> NormMessage:
        command = self._commands[0]
        command.left -= 1
        self._command_due = now + 2 * grtt
        if not command.left:
            self._commands.popleft()
            self._notify(CommandSent(command.command_id))
            if not self._commands:
                self._command_due = inf
        return self._factory.application(command.content)

    def _next_flush(self, now: float, grtt: float, repairing_until: float) -> NormMessage | None:
        acks = self.acks
        if repairing_until > now:
            acks.due = repairing_until
            return None
        asked = None
        while asked is None and acks.due <= now:
            asked = acks.next(now, 2 * grtt, max(2, self._config.backoff + 2) * grtt)
        if asked is None:
            return None
        watermark, nodes = asked
        item, (block, symbol) = watermark.item, watermark.wire_point
        length = item.partition.length(watermark.block) if item.partition.blocks else 0
        extensions = app_ack(watermark.request.content)
        return self._factory.acking_flush(watermark.object_id, block, symbol, length, nodes, extensions)
