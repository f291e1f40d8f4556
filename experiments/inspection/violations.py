"""What a message may not say: content beyond its object, segments of a wrong length, requests for what was never sent."""

from collections.abc import Iterator

from experiments.inspection.findings import FindingLog
from experiments.inspection.objects import ObjectView
from experiments.inspection.senders import SenderView
from protocols.norm.messages import EMPTY_OBJECT, Data, Flush, Fti, Request
from protocols.norm.repair_requests import RequestedRepairs
from protocols.serial import ahead

__all__ = ["PendingViolations", "content_fault", "fec_fault"]

_STREAM_HEADER = 8


def content_fault(view: ObjectView, data: Data, size: int) -> tuple[str, str] | None:
    """(rule, what) when a DATA message of so many bytes of content can't belong to its object."""
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
    """What is asked for in terms of another code than the sender's; empty when nothing is."""
    for request in requests:
        for item in request.items:
            if fec_id is not None and item.fec_id != fec_id:
                return f"fec_id {item.fec_id}, the sender's is {fec_id}"
    return ""


class PendingViolations:
    """Requests for what a sender did not send as far as seen here.

    They are violations only if nothing was lost before this point: the sequence number of the sender's next message tells. What
    lies before the first object seen may have been sent before the capture began.
    """

    def __init__(self, findings: FindingLog) -> None:
        self._findings = findings
        self._open: dict[tuple[int, int], list[tuple[int, float, str]]] = {}

    def asked(self, sender: SenderView, demand: RequestedRepairs, who: int, packet: int, time: float) -> None:
        """A request came by: note what in it was not seen."""
        for rule, what in _unseen(sender, demand):
            said = f"receiver {who} asks sender {sender.source_id} for {what}"
            if rule == "before-capture":
                self._findings.add(rule, packet, time, said)
            else:
                self._open.setdefault((sender.source_id, sender.instance), []).append((packet, time, said))

    def flushed(self, sender: SenderView, flush: Flush, packet: int, time: float) -> None:
        """A FLUSH came by: it may name only what was sent, or an object without content."""
        if sender.missing or sender.newest is None or (flush.block, flush.symbol) == EMPTY_OBJECT.get(flush.fec_id):
            return
        view = sender.by_id.get(flush.object_id)
        newest = sender.objects[-1]
        if view is None and ahead(flush.object_id, newest.id) > 0:
            self._findings.add("never-sent", packet, time, f"sender {sender.source_id} flushes {flush.brief}")

    def settle(self, sender: SenderView, skipped: int) -> None:
        """The sender's next message came, after so many that did not come by here."""
        for packet, time, said in self._open.pop((sender.source_id, sender.instance), ()):
            if not skipped:
                self._findings.add("never-sent", packet, time, said)


def _unseen(sender: SenderView, demand: RequestedRepairs) -> Iterator[tuple[str, str]]:
    """(rule, what) of each part of a demand that the sender did not send as far as seen."""
    if sender.newest is None:
        return
    newest, first = sender.objects[-1], sender.objects[0]
    for low, high in [*demand.objects, *demand.infos]:
        if ahead(high, newest.id) > 0:
            yield "never-sent", f"object {high}, its newest is {newest.id}"
        if ahead(low, first.id) < 0:
            yield "before-capture", f"object {low}, the first seen here is {first.id}"
    for object_id, _low, block in demand.blocks:
        yield from _beyond(sender, object_id, block, -1)
    for (object_id, block), mask in demand.symbols.items():
        yield from _beyond(sender, object_id, block, mask.bit_length() - 1)


def _beyond(sender: SenderView, object_id: int, block: int, symbol: int) -> Iterator[tuple[str, str]]:
    """The highest symbol asked for of a block; -1 for the block itself."""
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
