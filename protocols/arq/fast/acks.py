"""The ACKs of many receivers for one DATA message."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import compress
from typing import Any

from mypy_extensions import trait

from protocols.arq.fast.messages import FastData
from protocols.arq.messages import Ack
from protocols.arq.wire import size_of
from protocols.fast.feedback import FeedbackBatch, FeedbackGroup
from protocols.machine import Address, Message

__all__ = ["AckBatch", "AckGroup", "AckSink"]


@trait
class AckSink(ABC):
    """A sender that takes ACKs in batches."""

    __slots__ = ()

    @abstractmethod
    def take_acks(self, message: FastData, nodes: Sequence[int], times: Sequence[float]) -> None:
        """Handle the ACKs of these nodes for a message of this sender, which arrived at `times` (seconds)."""


class AckGroup(FeedbackGroup):
    """The receivers of a group; `nodes` are their ids, in the same order."""

    __slots__ = ("nodes",)

    def __init__(self, machines: list[Any], nodes: list[int]) -> None:
        super().__init__(machines)
        self.nodes = nodes

    def answer(self, answering: bytes, message: Message, source: Address) -> "AckBatch | None":
        """Return the ACKs of the receivers that a DATA message only advances."""
        return AckBatch(self, answering, message, source) if isinstance(message, FastData) else None


class AckBatch(FeedbackBatch):
    """One ACK of each of several receivers."""

    __slots__ = ("_data", "_nodes")

    def __init__(self, group: AckGroup, answering: bytes, data: FastData, to: Address) -> None:
        self._data = data
        self._nodes = list(compress(group.nodes, answering))
        super().__init__(group, answering, Ack.kind, size_of(self.message(0)), to)

    def message(self, number: int) -> Ack:
        """Return the ACK of receiver `number`, counted from 0."""
        data = self._data
        return Ack(data.sender, data.instance, data.object_id, data.unit, self._nodes[number])

    def without(self, numbers: Sequence[int]) -> "AckBatch | None":
        """Return the batch without these ACKs, None if it has no others."""
        if len(numbers) == len(self._nodes):
            return None
        group = self.group
        assert isinstance(group, AckGroup)
        return AckBatch(group, self.answering_without(numbers), self._data, self.to)

    def is_noted_by(self, machine: object) -> bool:
        """Return whether the receiver is a sender of protocol A: ACKs show when its timers run out."""
        return isinstance(machine, AckSink)

    def deliver(self, machine: AckSink, begin: int, times: Sequence[float]) -> None:
        """Deliver the ACKs from number `begin` on, which arrived at `times` (seconds)."""
        machine.take_acks(self._data, self._nodes[begin : begin + len(times)], times)
