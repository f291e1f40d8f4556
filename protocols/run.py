"""Runs: several messages that a host sends or receives in one batch of packets."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from mypy_extensions import mypyc_attr

from protocols.machine import Message

__all__ = ["Run"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Run(Message):
    """Several messages that travel in packets of their own, in this order: what a host sends or receives by one system call.

    A run means the same as its messages one by one.
    """

    __slots__ = ()
    packet_kind: ClassVar[str]
    """Kind of its messages."""

    @property
    @abstractmethod
    def packets(self) -> int:
        """The number of messages."""

    @abstractmethod
    def messages(self) -> Iterator[Message]:
        """Make the messages."""
