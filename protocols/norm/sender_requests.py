"""What a sender asks of one receiver besides content: acknowledgement (RFC 5740 5.5.3), and commands of its application."""

from hashlib import blake2b
from math import inf
from typing import Final

from protocols.acknowledgement import AckAnswerer
from protocols.norm.messages import ANY_NODE, Extension, Flush
from protocols.norm.requests import Item
from protocols.serial import ahead

__all__ = ["APP_ACK", "SenderRequests", "answer_to", "app_ack", "content_of", "is_asked"]

APP_ACK: Final = 65
"""The header extension for application data in an acknowledged FLUSH and its ACK: NRL NORM's, not in the RFC."""


def app_ack(content: bytes) -> tuple[Extension, ...]:
    """Return application data as an extension, filled with zeros to whole words; nothing without data."""
    return (Extension(APP_ACK, content + bytes(-(len(content) + 2) % 4)),) if content else ()


def content_of(extensions: tuple[Extension, ...]) -> bytes:
    """Return the application data in a message, with up to three bytes behind it that fill a word; b"" for none."""
    return next((extension.content for extension in extensions if extension.het == APP_ACK), b"")


def answer_to(message: Flush, answerer: AckAnswerer | None) -> bytes | None:
    """Return the application data of the ACK to a FLUSH, b"" for none; None: there is to be no ACK yet."""
    asked = content_of(message.extensions)
    return answerer(message.origin.source_id, asked) if asked and answerer is not None else b""


class SenderRequests:
    """One sender's requests to one receiver. It exists from the first one on, or from the first loss for good.

    An ACK confirms everything up to a point of the stream of objects, its watermark. The first watermark behind an object that
    was lost for good is not confirmed, later ones are.
    """

    __slots__ = ("_asked", "_command", "_command_at", "_confirmed", "_lost", "_refused", "content", "due", "flushed")

    def __init__(self) -> None:
        self.due = inf
        """When the ACK is to be sent; inf for no ACK."""
        self.flushed: Item | None = None
        """The watermark that it names."""
        self.content = b""
        """Its application data."""
        self._confirmed: Item | None = None
        # How often all receivers were asked to confirm the same watermark since this one did.
        self._asked = 0
        self._lost: int | None = None
        self._refused: Item | None = None
        self._command = b""
        self._command_at = -inf

    def lose(self, object_id: int) -> None:
        """Note an object that is lost for good."""
        if self._lost is None:
            self._lost = object_id

    def may_confirm(self, flush: Flush, node: int) -> bool:
        """Return whether a FLUSH that asks this node, which has everything, is to be answered.

        Of requests to all receivers, which go on although this one has answered, only the first, second, fourth... are.
        """
        flushed = _watermark(flush)
        if self._lost is not None and ahead(self._lost, flush.object_id) <= 0:
            self._refused, self._lost = flushed, None
        elif flushed != self._refused:
            # Object ids begin again, so that one that is equal later is another.
            self._refused = None
        if flushed == self._refused or (flushed == self.flushed and self.due < inf):
            return False
        if flushed != self._confirmed or node in flush.acking:
            return True
        self._asked += 1
        return not self._asked & (self._asked - 1)

    def confirm(self, flush: Flush, content: bytes, due: float) -> None:
        """Plan the ACK for a FLUSH."""
        self.flushed, self.content, self.due = _watermark(flush), content, due

    def confirmed(self) -> None:
        """Note that the ACK was sent."""
        if self.flushed != self._confirmed:
            self._confirmed, self._asked = self.flushed, 0
        self.due = inf

    def is_new_command(self, content: bytes, now: float, patience: float) -> bool:
        """Return whether a command is not another copy of the last one; copies follow each other within `patience` seconds."""
        # A digest, because there may be as many of them as senders, and each content as long as a datagram.
        digest = blake2b(content, digest_size=16).digest()
        is_new = digest != self._command or now > self._command_at + patience
        self._command, self._command_at = digest, now
        return is_new


def is_asked(flush: Flush, node: int) -> bool:
    """Return whether a FLUSH asks this node for an ACK."""
    return node in flush.acking or ANY_NODE in flush.acking


def _watermark(flush: Flush) -> Item:
    return Item(flush.fec_id, flush.object_id, flush.block, flush.symbol, flush.block_length)
