"""Check messages against the protocol: content beyond its object, wrong segment lengths, requests for content never sent."""

from collections.abc import Iterator

from experiments.inspection.findings import FindingLog
from experiments.inspection.objects import ObjectView
from experiments.inspection.senders import SenderView
from protocols.norm.messages import Data, Flush, Fti
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.requests import Request
from protocols.serial import ahead

__all__ = ["PendingViolations", "content_fault", "fec_fault"]

_STREAM_HEADER = 8
_MOST_OPEN = 1000


def content_fault(view: ObjectView, data: Data, size: int) -> tuple[str, str] | None:
    """Return (rule, description) if a DATA message with `size` bytes of content contradicts its object, else None."""
    fti = view.fti
    if fti is None:
        return None
    if view.kind == "stream":
        if data.symbol >= fti.block + fti.parity:
            return "beyond-object", f"{data.brief}: blocks have {fti.block} + {fti.parity} symbols"
        longest = fti.segment + _STREAM_HEADER
        return ("wrong-length", f"{data.brief}: {size} bytes, at most {longest}") if size > longest else None
    return _object_fault(fti, data, size)


def _object_fault(fti: Fti, data: Data, size: int) -> tuple[str, str] | None:
    partition = fti.partition
    if data.block >= partition.blocks:
        return "beyond-object", f"{data.brief}: {partition.blocks} blocks"
    length = partition.length(data.block)
    if data.symbol >= length + fti.parity:
        return "beyond-object", f"{data.brief}: the block has {length} + {fti.parity} symbols"
    if data.symbol >= length:
        return ("wrong-length", f"{data.brief}: {size} bytes, at most {fti.segment}") if size > fti.segment else None
    wanted = partition.payload(partition.first(data.block) + data.symbol)
    return ("wrong-length", f"{data.brief}: {size} bytes, not {wanted}") if size != wanted else None


def fec_fault(requests: tuple[Request, ...], fec_id: int | None) -> str:
    """Describe a request whose fec_id differs from the sender's; "" if there is none."""
    for request in requests:
        for item in request.items:
            if fec_id is not None and item.fec_id != fec_id:
                return f"fec_id {item.fec_id}, the sender's is {fec_id}"
    return ""


class PendingViolations:
    """Requests for content the sender has not sent as far as captured.

    They are violations only if nothing was lost upstream of the capture point, which the sequence number of the sender's next
    message reveals. Objects older than the first captured one may have been sent before the capture began.
    """

    def __init__(self, findings: FindingLog) -> None:
        self._findings = findings
        self._open: dict[tuple[int, int], list[tuple[int, float, str]]] = {}
        """Undecided requests by sender, the first thousand of each."""

    def asked(self, sender: SenderView, requested: RequestedRepairs, who: int, packet: int, time: float) -> None:
        """Record the parts of a request whose content was not captured."""
        for rule, what in _unseen(sender, requested):
            text = f"receiver {who} requests from sender {sender.source_id}: {what}"
            if rule == "before-capture":
                self._findings.add(rule, packet, time, text)
            else:
                waiting = self._open.setdefault((sender.source_id, sender.instance), [])
                if len(waiting) < _MOST_OPEN:
                    waiting.append((packet, time, text))

    def flushed(self, sender: SenderView, flush: Flush, packet: int, time: float) -> None:
        """Check a FLUSH: it may name only content that was sent, or an object without content."""
        if sender.missing or sender.newest is None or flush.is_of_empty_object:
            return
        view = sender.by_id.get(flush.object_id)
        newest = sender.objects[-1]
        if view is None and ahead(flush.object_id, newest.id) > 0:
            self._findings.add("never-sent", packet, time, f"sender {sender.source_id} flushes {flush.brief}")

    def settle(self, sender: SenderView, skipped: int) -> None:
        """Decide pending requests by the sender's next message, which follows `skipped` missing ones."""
        for packet, time, text in self._open.pop((sender.source_id, sender.instance), ()):
            if not skipped:
                self._findings.add("never-sent", packet, time, text)


def _unseen(sender: SenderView, requested: RequestedRepairs) -> Iterator[tuple[str, str]]:
    """Yield (rule, description) for each part of a request that the sender has not sent as far as captured."""
    if sender.newest is None:
        return
    newest, first = sender.objects[-1], sender.objects[0]
    for low, high in [*requested.objects, *requested.infos]:
        if ahead(high, newest.id) > 0:
            yield "never-sent", f"object {high}, its newest is {newest.id}"
        if ahead(low, first.id) < 0:
            yield "before-capture", f"object {low}, the first captured is {first.id}"
    for object_id, _low, block in requested.blocks:
        yield from _beyond(sender, object_id, block, -1)
    for (object_id, block), mask in requested.units():
        yield from _beyond(sender, object_id, block, mask.bit_length() - 1)


def _beyond(sender: SenderView, object_id: int, block: int, symbol: int) -> Iterator[tuple[str, str]]:
    """Check the highest requested symbol of a block; -1 stands for the block itself."""
    assert sender.newest is not None
    newest, view, name = sender.objects[-1], sender.by_id.get(object_id), f"{object_id}.{block}"
    if ahead(object_id, newest.id) > 0:
        yield "never-sent", f"{name}, its newest object is {newest.id}"
        return
    if view is None or view.fti is None:
        return
    length = view.length(block)
    if (view.kind != "stream" and block >= view.fti.partition.blocks) or symbol >= length + view.fti.parity:
        yield "never-sent", f"{name}.{symbol}, which the object does not have"
    elif (view.order, block, symbol if symbol < length else -1) > sender.newest:
        yield "never-sent", f"{name}.{symbol}, its newest is {newest.id}.{sender.newest[1]}.{sender.newest[2]}"
