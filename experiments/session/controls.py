"""Controls of a running session: parameters, commands, objects sent again, and requests to senders."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from emu.host import UdpHost
from experiments.scenario.user_settings import read_values
from experiments.session.arguments import as_bytes, as_whole, refused
from experiments.session.membership import Membership
from experiments.session.outbox import Outbox, transmission_of
from experiments.session.transmission import Transmission
from protocols.acknowledgement import AckAnswerer, AckReceiver
from protocols.errors import UsageError
from protocols.machine import Machine

__all__ = ["SessionControls"]


class SessionControls(ABC):
    """The part of a session by which a program controls its machines; all methods are called within the block."""

    membership: Membership
    host: UdpHost
    """The host, from the beginning of the block on; its counters can be read after the end."""

    @abstractmethod
    def _sending(self) -> Outbox:
        """Return what is sent. UsageError for a session that only receives, TransferError for one that is over."""

    @abstractmethod
    def _receiving(self) -> Machine:
        """Return the receiver. UsageError for a session that only sends, TransferError for one that is over."""

    # -- of the sender ---------------------------------------------------------------------------------------------

    def cancel(self, what: Transmission) -> bool:
        """Drop an object that is not needed any more: it is neither sent nor repaired, and requests for it are refused.

        Returns False if it was not kept any more. UsageError for a protocol that can't.
        """
        return self._sending().cancel(transmission_of(what))

    def requeue(self, what: Transmission) -> bool:
        """Send an object that is still kept for repairs once more, for receivers that join late; `sent` waits for it again.

        Returns False if it is not kept any more, or was not sent yet. UsageError for a protocol that can't.
        """
        return self._sending().requeue(transmission_of(what))

    def adjust(self, **parameters: Any) -> None:
        """Change parameters of the sender from now on, with units as in `mcastlab.session`: `adjust(rate="20Mbit")`.

        UsageError for a parameter that can't change while it runs, or a value that is not allowed.
        """
        outbox = self._sending()
        outbox.adjust(read_values(self.membership.protocol.config, parameters, "adjust"))

    async def send_command(self, content: bytes, *, copies: int = 0) -> None:
        """Send a command to all receivers, out of band and without repair, and wait until its last copy was sent.

        There are so many `copies`, 0: as many as the parameter `robust`. The application of a receiver gets one
        `CommandReceived`. A task that is cancelled withdraws copies not sent yet. UsageError for one longer than a segment.
        """
        await self._sending().command(as_bytes("content", content), as_whole("copies", copies, 0))

    # -- of the receiver -------------------------------------------------------------------------------------------

    def answer_acks(self, answer: AckAnswerer) -> None:
        """Have `answer(sender, content)` called before a request with `content` (`AckRequest`) is confirmed.

        It returns the content of the acknowledgement, or None to confirm nothing yet; it is asked again then.
        """
        if not callable(answer):
            raise refused("answer", answer, "a function of a node id and bytes")
        receiver = self._receiving()
        if not isinstance(receiver, AckReceiver):
            raise UsageError("the receiver of this protocol confirms nothing; that of norm does")
        receiver.answer_acks(answer)

    def set_nacking(self, mode: str, sender: int | None = None, object_id: int | None = None) -> None:
        """Request all that is missing ("normal"), only the information of objects ("info"), or nothing ("none").

        Of one object; without `object_id` of all objects of a sender that have no mode of their own; without `sender` of the
        senders heard from now on. UsageError for a sender that was not heard.
        """
        self._call("set_nacking", mode, sender, object_id)

    def set_repair_boundary(self, boundary: str, sender: int | None = None) -> None:
        """Look for a sender's losses behind each "block" or each "object"; without `sender` for those heard from now on."""
        self._call("set_repair_boundary", boundary, sender)

    def give_up(self, sender: int, object_id: int, reason: str = "not wanted") -> None:
        """Receive nothing more of an object or a stream of a sender; it ends with `ObjectAborted` and this reason."""
        self._call("abandon", sender, object_id, reason)

    def forget_sender(self, sender: int) -> bool:
        """Give up all objects of a sender and what is known of it; with its next message it is new. False if not heard."""
        return bool(self._call("forget_sender", sender))

    def _call(self, name: str, *arguments: object) -> object:
        verb: Callable[..., object] | None = getattr(self._receiving(), name, None)
        if verb is None:
            raise UsageError(f"{name}: the receiver of this protocol can't; that of norm can")
        return self.host.call(verb, *arguments)
