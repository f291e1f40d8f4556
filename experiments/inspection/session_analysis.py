"""Analyse the NORM sessions of a capture message by message."""

from typing import Any

from experiments.captures.datagrams import endpoint_text
from experiments.inspection.detail import DetailBudget
from experiments.inspection.findings import RESERVED_NODES, FindingLog
from experiments.inspection.interval_counts import IntervalCounts
from experiments.inspection.node_tally import NodeTally
from experiments.inspection.norm_reader import CapturedMessage
from experiments.inspection.receivers import ReceiverView
from experiments.inspection.repair_rounds import NackRecord, describe_request, requested_repairs
from experiments.inspection.senders import SenderView
from experiments.inspection.violations import PendingViolations, content_fault, fec_fault
from protocols.norm.messages import Ack, Command, Data, Flush, Info, Nack, NormMessage, Probe, RepairAdv, Squelch

__all__ = ["SessionAnalysis"]

_ROWS_KEPT = 1000
_ADDRESSES_NAMED = 4


class SessionAnalysis:
    """All senders and receivers in a capture; times are seconds since the first message, at `begin`."""

    def __init__(self, begin: float, end: float, nodes: NodeTally) -> None:
        self.begin = begin
        self.findings = FindingLog()
        self.timeline = IntervalCounts(end - begin)
        self.senders: dict[tuple[int, int], SenderView] = {}
        self.receivers: dict[int, ReceiverView] = {}
        self.requests: list[NackRecord] = []
        """First NACKs; `asked` counts all."""
        self.asked = 0
        self.messages = self.octets = self.unreadable = 0
        """Messages, their bytes, and datagrams truncated too short to decode."""
        self.other_messages = self.other_octets = 0
        """Messages from and to nodes not analysed in detail, and their bytes."""
        self._kept_senders, self._kept_receivers = nodes.senders, nodes.receivers
        self._other_senders: set[tuple[int, int]] = set()
        self._other_receivers: set[int] = set()
        self._budget = DetailBudget()
        self._pending_violations = PendingViolations(self.findings)
        self._latest: dict[int, SenderView] = {}

    def add(self, captured: CapturedMessage) -> str:
        """Process a message; return its kind for display, or "" if it is not counted."""
        datagram, message = captured.datagram, captured.message
        time = datagram.time - self.begin
        if message is None:
            if len(datagram.payload) < datagram.size:
                self.unreadable += 1
            else:
                self.findings.add(captured.rule, datagram.number, time, f"from {datagram.source}: {captured.problem}")
            return ""
        self.messages += 1
        self.octets += datagram.size
        self._budget.read(datagram.size)
        if self._is_other(message):
            self.other_messages += 1
            self.other_octets += datagram.size
            return ""
        if isinstance(message, Data | Info | Command):
            kind = self._from_sender(captured, message, time)
        elif isinstance(message, Nack | Ack):
            kind = self._feedback(captured, message, time)
        else:
            kind = message.kind
        if kind:
            self.timeline.add(kind, time, datagram.size)
        if self._budget.refused:
            self.findings.add("detail-limit", datagram.number, time, str(message.kind), self._budget.refused)
            self._budget.refused = 0
        return kind

    def _is_other(self, message: NormMessage) -> bool:
        """Return whether a message is from or to a node that is not analysed in detail."""
        if isinstance(message, Data | Info | Command):
            return self._other_sender(message.origin.source_id, message.origin.instance_id)
        if not isinstance(message, Nack | Ack):
            return False
        other = self._kept_receivers is not None and message.source_id not in self._kept_receivers
        if other:
            self._other_receivers.add(message.source_id)
        key = message.sender_id, message.instance_id
        return other or (key in self._other_senders and self._other_sender(*key))

    def _other_sender(self, node: int, instance: int) -> bool:
        other = self._kept_senders is not None and (node, instance) not in self._kept_senders
        if other:
            self._other_senders.add((node, instance))
        return other

    # -- senders -------------------------------------------------------------------------------------------------------

    def _from_sender(self, captured: CapturedMessage, message: Data | Info | Command, time: float) -> str:
        datagram = captured.datagram
        sender = self._sender(captured, message, time)
        skipped, again = sender.number(datagram.source, message.sequence)
        self._pending_violations.settle(sender, skipped)
        name = f"sender {sender.source_id}"
        if again:
            self.findings.add("duplicate", datagram.number, time, f"{name}: sequence {message.sequence}")
            return ""
        if skipped:
            self.findings.add("sequence-gap", datagram.number, time, f"{name}: {skipped} before {message.sequence}", skipped)
        kind = self._classify(sender, captured, message, time)
        ends = endpoint_text(datagram.source, datagram.sport), endpoint_text(datagram.target, datagram.port)
        sender.add(message.origin, kind, datagram.size, time, ends)
        return kind

    def _sender(self, captured: CapturedMessage, message: Data | Info | Command, time: float) -> SenderView:
        origin, datagram = message.origin, captured.datagram
        key = origin.source_id, origin.instance_id
        sender = self.senders.get(key)
        if sender is None:
            if origin.source_id in RESERVED_NODES:
                self.findings.add("reserved-node", datagram.number, time, f"sender at {datagram.source}")
            sender = self.senders[key] = SenderView(origin, time, self.findings, self._budget)
        before = self._latest.get(origin.source_id)
        if before is not sender:
            if before is not None:
                what = f"sender {origin.source_id}: instance {before.instance} becomes {origin.instance_id}"
                self.findings.add("instance-change", datagram.number, time, what)
            self._latest[origin.source_id] = sender
        if sender.sequences and datagram.source not in sender.sequences:
            what = f"sender {origin.source_id}: {', '.join(list(sender.sequences)[:_ADDRESSES_NAMED])} and {datagram.source}"
            self.findings.add("two-addresses", datagram.number, time, what)
        return sender

    def _classify(self, sender: SenderView, captured: CapturedMessage, message: Data | Info | Command, time: float) -> str:
        number = captured.datagram.number
        if isinstance(message, Data):
            return self._data(sender, captured, message, time)
        if isinstance(message, Info):
            return "repair" if sender.on_info(message, number, time) else "info"
        if isinstance(message, Probe):
            sender.states.probed(message, number, time)
            sender.rates += [] if message.rate is None else [message.rate]
        elif isinstance(message, Flush):
            self._pending_violations.flushed(sender, message, number, time)
            sender.flushed(message, time)
            sender.states.flushed(message, number, time)
        elif isinstance(message, Squelch):
            sender.squelched(message)
        elif isinstance(message, RepairAdv) and sender.fec_id is not None:
            sender.asked(requested_repairs(message.requests, sender.fec_id, self._budget), number, time, None)
        return message.kind

    def _data(self, sender: SenderView, captured: CapturedMessage, message: Data, time: float) -> str:
        datagram = captured.datagram
        cut = len(datagram.payload) < datagram.size
        message.length += datagram.size - len(datagram.payload)
        view = sender.known(message.object_id, time)
        kind = sender.on_data(message, datagram.number, time, cut=cut)
        fault = content_fault(view, message, message.length)
        if fault is not None:
            self.findings.add(fault[0], datagram.number, time, f"sender {sender.source_id}: {fault[1]}")
        return kind

    # -- receivers -----------------------------------------------------------------------------------------------------

    def _feedback(self, captured: CapturedMessage, message: Nack | Ack, time: float) -> str:
        datagram = captured.datagram
        receiver = self.receivers.get(message.source_id)
        if receiver is None:
            receiver = self.receivers[message.source_id] = ReceiverView(message.source_id, time)
        receiver.add(message, time, datagram.source)
        sender = self.senders.get((message.sender_id, message.instance_id))
        if sender is None:
            what = f"receiver {message.source_id} to sender {message.sender_id}, instance {message.instance_id}"
            self.findings.add("unknown-sender", datagram.number, time, what)
        else:
            self._fed_back(sender, receiver, message, datagram.number, time)
        if message.source_id in RESERVED_NODES:
            self.findings.add("reserved-node", datagram.number, time, f"{message.kind} from {datagram.source}")
        return message.kind

    def _fed_back(self, sender: SenderView, receiver: ReceiverView, message: Nack | Ack, number: int, time: float) -> None:
        if not sender.states.fed_back(message, time):
            what = f"receiver {message.source_id} acknowledges a FLUSH of sender {sender.source_id} that asks others, or nobody"
            self.findings.add("unasked-ack", number, time, what)
        if isinstance(message, Nack):
            self._nack(sender, receiver, message, number, time)

    def _nack(self, sender: SenderView, receiver: ReceiverView, nack: Nack, number: int, time: float) -> None:
        fault = fec_fault(nack.requests, sender.fec_id)
        if fault:
            self.findings.add("wrong-fec", number, time, f"receiver {nack.source_id}: {fault}")
        if sender.fec_id is None:
            return
        requested = requested_repairs(nack.requests, sender.fec_id, self._budget)
        self._pending_violations.asked(sender, requested, nack.source_id, number, time)
        asked, found = sender.asked(requested, number, time, nack.source_id)
        for request in found:
            receiver.asked((sender.source_id, sender.instance, request.object.order, request.block), request.count)
        receiver.symbols += asked.symbols
        receiver.covered += bool(asked.symbols) and not asked.new
        self.asked += 1
        if len(self.requests) < _ROWS_KEPT:
            self.requests.append(
                NackRecord(number, time, nack.source_id, nack.sender_id, describe_request(requested, found), asked)
            )

    # -- results -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish the analysis: determine which receivers sent nothing in which round."""
        for key, sender in self.senders.items():
            listeners = [each for each in self.receivers.values() if key in each.senders]
            for place, round_ in enumerate(sender.rounds):
                end = sender.rounds[place + 1].time if place + 1 < len(sender.rounds) else sender.last
                if not self._budget.work(len(listeners)):
                    self.findings.add("detail-limit", round_.packet, round_.time, "receivers without a request in this round")
                    continue
                quiet = [each for each in listeners if each.first <= end and each.node not in round_.askers]
                round_.silent = tuple(sorted(each.node for each in quiet))
                for each in quiet:
                    each.suppressed += round_.shared
                    each.silent += not round_.shared

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        sent = {key: sender.sources + sender.missing for key, sender in self.senders.items()}
        return {
            "senders": [sender.plain() for sender in self.senders.values()],
            "receivers": [self.receivers[node].plain(sent) for node in sorted(self.receivers)],
            "others": {
                "senders": len(self._other_senders),
                "receivers": len(self._other_receivers),
                "messages": self.other_messages,
                "bytes": self.other_octets,
            },
            "requests": [row.plain() for row in self.requests],
            "requests_more": self.asked - len(self.requests),
            "timeline": self.timeline.plain(),
            "violations": [finding.plain() for finding in self.findings.violations],
            "notices": [finding.plain() for finding in self.findings.notices],
        }
