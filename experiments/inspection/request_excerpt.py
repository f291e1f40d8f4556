"""Select the messages around the first NACK of a capture for a sequence diagram."""

from collections import deque
from ipaddress import IPv4Address

from experiments.captures.datagrams import endpoint_text
from experiments.captures.trace_file import LostCopy, TracedPacket
from experiments.drawing.ladder_excerpt import MOST_HOSTS, MOST_SHOWN, FoldedPackets, LadderExcerpt, folded
from experiments.inspection.norm_reader import CapturedMessage
from protocols.norm.messages import Command, Data, Info, NormMessage

__all__ = ["CAPTURE", "RequestExcerpt", "node_name"]

CAPTURE = "capture"
"""Name of the column of the capture point."""
_BEFORE, _MOST_EXCHANGE, _BEGINNING, _QUIET = 8, 400, 120, 8
_IPV4_IDS = 1 << 24


def node_name(node: int) -> str:
    """Format a node id; large ones are shown as IPv4 addresses, from which NRL NORM derives them."""
    return str(IPv4Address(node)) if node >= _IPV4_IDS else str(node)


class RequestExcerpt:
    """Keeps the messages before the first NACK, and those until requests and repairs have ended.

    A capture without NACKs shows its first messages.
    """

    def __init__(self) -> None:
        self._beginning: list[TracedPacket] = []
        self._before: deque[TracedPacket] = deque(maxlen=_BEFORE)
        self._exchange: list[TracedPacket] = []
        self._quiet = 0

    def add(self, captured: CapturedMessage, kind: str, time: float) -> None:
        """Record a message."""
        assert captured.message is not None
        if self._quiet >= _QUIET or len(self._exchange) >= _MOST_EXCHANGE:
            return
        sent = _sent(captured, captured.message, kind, time)
        if len(self._beginning) < _BEGINNING:
            self._beginning.append(sent)
        if self._exchange or kind == "nack":
            self._exchange.append(sent)
            answered = any(each.repair for each in self._exchange) if kind != "repair" else True
            self._quiet = 0 if kind in ("nack", "repair") or not answered else self._quiet + 1
        else:
            self._before.append(sent)

    @property
    def lines(self) -> list[TracedPacket]:
        """The messages to show, in order."""
        return [*self._before, *self._exchange] if self._exchange else self._beginning

    def cut(self) -> LadderExcerpt | None:
        """Return the excerpt of a sequence diagram with senders, capture point and receivers; None without messages."""
        lines = self.lines
        if not lines:
            return None
        feedback = {sent.node for sent in lines if sent.kind in ("nack", "ack")}
        senders = list(dict.fromkeys(sent.node for sent in lines if sent.node not in feedback))[:MOST_HOSTS]
        receivers = list(dict.fromkeys(sent.node for sent in lines if sent.node in feedback))[:MOST_HOSTS]
        hosts = (*senders, CAPTURE, *sorted(receivers, key=lambda name: (len(name), name)))
        shown = folded([sent for sent in lines if sent.node in hosts])[:MOST_SHOWN]
        last = shown[-1]
        end = last.packets[-1].time if isinstance(last, FoldedPackets) else last.time
        return LadderExcerpt(lines[0].time, end, hosts, shown, ())


def _sent(captured: CapturedMessage, message: NormMessage, kind: str, time: float) -> TracedPacket:
    datagram = captured.datagram
    node = message.origin.source_id if isinstance(message, Data | Info | Command) else getattr(message, "source_id", 0)
    repair = kind == "repair"
    brief = str(getattr(message, "brief", ""))
    to = endpoint_text(datagram.target, datagram.port)
    sent = TracedPacket(datagram.number, time, node_name(node), message.kind, brief, repair, to)
    reason = datagram.comment.rpartition("; ")[2]
    if "lost" in reason or "dropped" in reason:
        sent.missed.append(LostCopy(time, CAPTURE, "the captured link", reason))
    else:
        sent.received[CAPTURE] = time
    return sent
