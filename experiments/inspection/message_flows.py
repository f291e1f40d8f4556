"""The messages of FJM2 in a capture: topics, priorities, latencies, and messages that the capture does not have whole."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from experiments.inspection.detail import DetailBudget
from protocols.errors import WireError
from protocols.jms import JmsMessage, read_head
from protocols.norm.messages import FLAG_FILE, FLAG_STREAM, Data

__all__ = ["MessageFlows"]

_MESSAGE_BYTES = 400
"""Memory of a message that is followed."""
_IDS = 1 << 16


@dataclass(slots=True)
class _Message:
    """One object: the blocks of which symbols are missing, with a bit for each symbol that was seen."""

    head: JmsMessage | None = None
    open: dict[int, int] = field(default_factory=dict)
    done: int = 0
    """Blocks that are complete."""
    is_known: bool = False
    """True if the capture has symbol 0, which contains the head of the message."""
    latency: float | None = None


@dataclass(slots=True)
class _Flow:
    """The messages of one publisher to one topic."""

    priorities: Counter[int] = field(default_factory=Counter)
    messages: int = 0
    octets: int = 0
    latencies: list[float] = field(default_factory=list)


class MessageFlows:
    """Counts and latencies of the messages in a capture, by publisher and topic.

    A latency is the time from JMSTimestamp to the packet that completes the message in the capture. Objects that are no
    messages are left out.
    """

    def __init__(self, budget: DetailBudget) -> None:
        self._budget = budget
        self._flows: dict[tuple[int, str], _Flow] = {}
        self._messages: dict[tuple[int, int, int], _Message] = {}
        self._last: dict[tuple[int, int], int] = {}
        self._no_messages = 0

    def add(self, message: Data, time: float) -> None:
        """Process a symbol that was captured whole at `time`, seconds since 1970."""
        self._budget.read(message.length)
        fti, payload = message.fti, message.payload
        if message.flags & (FLAG_STREAM | FLAG_FILE) or fti is None or payload is None:
            return
        found = self._message(message)
        if found is None or found.latency is not None:
            return
        if not message.block and not message.symbol and not found.is_known:
            found.is_known = True
            self._read(message.origin.source_id, found, payload, fti.object_size)
        length = fti.partition.length(message.block)
        if not length or found.open.get(message.block) == -1:
            return
        mask = found.open.get(message.block, 0)
        growth = message.symbol - mask.bit_length()
        if growth > 0 and not self._budget.memory(growth >> 3):
            return
        mask |= 1 << message.symbol
        if mask.bit_count() < length:
            found.open[message.block] = mask
            return
        found.open[message.block] = -1
        found.done += 1
        if found.done == fti.partition.blocks and found.head is not None:
            found.latency = max(time - found.head.sent_at, 0.0)
            self._flows[message.origin.source_id, found.head.topic].latencies.append(found.latency)
            found.open.clear()

    def _message(self, data: Data) -> _Message | None:
        """Return what is known of an object; None beyond the budget."""
        sender = data.origin.source_id, data.origin.instance_id
        last = self._last.get(sender, data.object_id)
        # The id without wrap-around, near that of the last object.
        order = last + ((data.object_id - last + _IDS // 2) % _IDS - _IDS // 2)
        self._last[sender] = max(last, order)
        key = (*sender, order)
        found = self._messages.get(key)
        if found is None and self._budget.memory(_MESSAGE_BYTES):
            found = self._messages[key] = _Message()
        return found

    def _read(self, publisher: int, found: _Message, payload: bytes | memoryview, size: int) -> None:
        try:
            head = found.head = read_head(payload, size)
        except WireError:
            self._no_messages += 1
            return
        flow = self._flows.setdefault((publisher, head.topic), _Flow())
        flow.messages += 1
        flow.octets += head.size
        flow.priorities[head.priority] += 1

    def plain(self) -> list[dict[str, Any]]:
        """Return plain values for JSON, by publisher and topic; nothing for a capture of objects that are no messages."""
        if not self._flows or self._no_messages > sum(flow.messages for flow in self._flows.values()):
            return []
        return [_plain(publisher, topic, flow) for (publisher, topic), flow in self._flows.items()]

    @property
    def unknown(self) -> int:
        """The number of objects whose first packet the capture does not have."""
        return sum(not found.is_known for found in self._messages.values())


def _plain(publisher: int, topic: str, flow: _Flow) -> dict[str, Any]:
    delays = sorted(flow.latencies)
    return {
        "publisher": publisher,
        "topic": topic,
        "messages": flow.messages,
        "bytes": flow.octets,
        "priorities": {str(priority): flow.priorities[priority] for priority in sorted(flow.priorities)},
        "complete": len(delays),
        "lost": flow.messages - len(delays),
        "latency_p50": delays[len(delays) // 2] if delays else None,
        "latency_p99": delays[min(len(delays) * 99 // 100, len(delays) - 1)] if delays else None,
    }
