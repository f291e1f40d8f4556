"""The messages around the first request of a capture, for a sequence diagram."""

from collections import deque
from ipaddress import IPv4Address

from experiments.captures.trace_file import LostCopy, TracedPacket
from experiments.drawing.ladder_excerpt import MOST_HOSTS, MOST_SHOWN, FoldedPackets, LadderExcerpt, folded
from experiments.inspection.norm_reader import CapturedMessage
from protocols.norm.messages import Command, Data, Info, NormMessage

__all__ = ["CAPTURE", "RequestExcerpt", "node_name"]

CAPTURE = "capture"
"""The column of what came by where the capture was made."""
_BEFORE, _STORY, _BEGINNING, _QUIET = 8, 400, 120, 8
_IPV4_IDS = 1 << 24


def node_name(node: int) -> str:
    """A node id for people: large ones are IPv4 addresses, as NRL NORM makes them."""
    return str(IPv4Address(node)) if node >= _IPV4_IDS else str(node)


class RequestExcerpt:
    """Keeps what leads to the first request and follows it until nothing is asked for or repaired any more.

    A capture without requests shows its beginning.
    """

    def __init__(self) -> None:
        self._beginning: list[TracedPacket] = []
        self._before: deque[TracedPacket] = deque(maxlen=_BEFORE)
        self._story: list[TracedPacket] = []
        self._quiet = 0

    def hear(self, heard: CapturedMessage, kind: str, time: float) -> None:
        """A message came by."""
        assert heard.message is not None
        if self._quiet >= _QUIET or len(self._story) >= _STORY:
            return
        sent = _sent(heard, heard.message, kind, time)
        if len(self._beginning) < _BEGINNING:
            self._beginning.append(sent)
        if self._story or kind == "nack":
            self._story.append(sent)
            answered = any(each.repair for each in self._story) if kind != "repair" else True
            self._quiet = 0 if kind in ("nack", "repair") or not answered else self._quiet + 1
        else:
            self._before.append(sent)

    @property
    def lines(self) -> list[TracedPacket]:
        """The messages to show, in order."""
        return [*self._before, *self._story] if self._story else self._beginning

    def cut(self) -> LadderExcerpt | None:
        """As a part of a ladder: senders, the capture, receivers; None when there is nothing."""
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


def _sent(heard: CapturedMessage, message: NormMessage, kind: str, time: float) -> TracedPacket:
    datagram = heard.datagram
    node = message.origin.source_id if isinstance(message, Data | Info | Command) else getattr(message, "source_id", 0)
    repair = kind == "repair"
    brief = str(getattr(message, "brief", ""))
    to = f"{datagram.target}:{datagram.port}"
    sent = TracedPacket(datagram.number, time, node_name(node), message.kind, brief, repair, to)
    reason = datagram.comment.rpartition("; ")[2]
    if "lost" in reason or "dropped" in reason:
        sent.missed.append(LostCopy(time, CAPTURE, "the captured link", reason))
    else:
        sent.received[CAPTURE] = time
    return sent
