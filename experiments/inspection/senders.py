"""One instance of a sender as seen in the capture: its messages, objects, and its repairs of requested content."""

from bisect import insort
from collections import Counter
from typing import Any

from experiments.inspection.detail import DetailBudget
from experiments.inspection.findings import FindingLog
from experiments.inspection.objects import BlockView, ObjectView
from experiments.inspection.repair_rounds import BlockRequest, RepairRound, RequestSize, between, block_requests
from experiments.inspection.sender_states import SenderStates
from experiments.inspection.sequence import SequenceTracker
from protocols.norm.messages import FLAG_REPAIR, Data, Flush, Info, Origin, Squelch
from protocols.norm.quantise import gsize_value, rate_value, rtt_seconds
from protocols.norm.repair_requests import RequestedRepairs
from protocols.serial import ahead

__all__ = ["SenderView"]

_ROUNDS_KEPT = 10_000
_OBJECTS_LISTED = 5_000
_ADDRESSES_TRACKED = 64


class SenderView:
    """A sender between two restarts; times are seconds since the first message of the capture."""

    def __init__(self, origin: Origin, time: float, findings: FindingLog, budget: DetailBudget) -> None:
        self.source_id, self.instance = origin.source_id, origin.instance_id
        self.origin = origin
        self.first = self.last = time
        self.addresses: Counter[str] = Counter()
        self.targets: Counter[str] = Counter()
        self.packets: Counter[str] = Counter()
        self.octets: Counter[str] = Counter()
        self.rates: list[int] = []
        self.sequences: dict[str, SequenceTracker] = {}
        self.objects: list[ObjectView] = []
        self.by_id: dict[int, ObjectView] = {}
        self.newest: tuple[int, int, int] | None = None
        """Object (without wrap-around), block and symbol of the latest source symbol sent."""
        self.fec_id: int | None = None
        self.element_bits = 16
        self.wanted = self.repairs = self.needless = self.refused = self.flagged = self.sources = 0
        self.rounds: list[RepairRound] = []
        self._requested: dict[int, ObjectView] = {}
        """Objects that may have open requests, by order."""
        self._findings, self._budget = findings, budget
        self.states = SenderStates(budget)
        self._code = (origin.grtt, origin.grtt)

    # -- messages sent -------------------------------------------------------------------------------------------------

    def add(self, origin: Origin, kind: str, size: int, time: float, ends: tuple[str, str]) -> None:
        """Record a message of any kind."""
        self.last = time
        if origin is not self.origin:
            self.origin = origin
            self._code = min(self._code[0], origin.grtt), max(self._code[1], origin.grtt)
        self.addresses[ends[0]] += 1
        self.targets[ends[1]] += 1
        self.packets[kind] += 1
        self.octets[kind] += size
        self.states.sent(kind, size)

    def number(self, source: str, sequence: int) -> tuple[int, bool]:
        """Record a sequence number from an address; return (numbers skipped before it, whether it is a duplicate).

        Numbers are tracked for the first 64 addresses.
        """
        tracker = self.sequences.get(source)
        if tracker is None:
            if len(self.sequences) >= _ADDRESSES_TRACKED:
                return 0, False
            tracker = self.sequences[source] = SequenceTracker()
        return tracker.add(sequence)

    def known(self, object_id: int, time: float) -> ObjectView:
        """Return the object an id refers to now; an id half the id space behind the newest one is a new object."""
        found = self.by_id.get(object_id)
        newest = self.objects[-1] if self.objects else None
        if found is not None and newest is not None and newest.order - found.order < 0x8000:
            return found
        order = object_id if newest is None else newest.order + ahead(object_id, newest.id)
        found = self.by_id[object_id] = ObjectView(object_id, order, time, time, self._budget)
        if newest is None or order > newest.order:
            self.objects.append(found)
        else:
            insort(self.objects, found, key=lambda each: each.order)
        return found

    def on_info(self, message: Info, packet: int, time: float) -> bool:
        """Record a NORM_INFO; return whether it is a repair."""
        view = self._content(message, packet, time)
        if self.newest is None or self.newest[0] < view.order:
            self.newest = (view.order, -1, -1)
        again, view.info = view.info is not None, message.payload
        served, view.info_wanted = view.info_wanted, False
        repair = again or served or bool(message.flags & FLAG_REPAIR)
        return self._counted(repair, served, message.flags, view, time)

    def on_data(self, data: Data, packet: int, time: float, *, cut: bool) -> str:
        """Record a NORM_DATA; return "data", "parity" or "repair". With `cut` the capture truncated it."""
        view = self._content(data, packet, time)
        block = view.block(data.block)
        length = view.length(data.block) or data.block_length
        is_parity = bool(length) and data.symbol >= length
        if not cut and not view.same_content(data):
            self._findings.add("changed-content", packet, time, f"sender {self.source_id}: {data.brief}")
        again = bool(block.seen >> data.symbol & 1)
        served = block.serve(data.symbol, is_parity)
        repair = again or served or bool(data.flags & FLAG_REPAIR) or (is_parity and block.asked)
        block.send(data.symbol, self._budget)
        view.octets += data.length
        if is_parity:
            view.parity += not repair
        else:
            view.sources += not again
            self.sources += not again
            place = (view.order, data.block, data.symbol)
            if self.newest is None or place > self.newest:
                self.newest = place
        if self._counted(repair, served, data.flags, view, time):
            return "repair"
        return "parity" if is_parity else "data"

    def flushed(self, flush: Flush, time: float) -> None:
        """Record a CMD(FLUSH), the only message of an object without content."""
        if flush.is_of_empty_object:
            view = self.known(flush.object_id, time)
            view.last, view.empty = time, not view.blocks
        self.fec_id = flush.fec_id

    def squelched(self, squelch: Squelch) -> None:
        """Record a CMD(SQUELCH): cancel requests for earlier objects and for the invalid objects it lists."""
        first, invalid = self.by_id.get(squelch.object_id), frozenset(squelch.invalid)
        if not self._budget.work(len(self._requested) + (len(first.requested) if first is not None else 0)):
            return
        for view in list(self._requested.values()):
            before = first is not None and view.order < first.order
            if before or view.id in invalid:
                self.refused += view.cancel(None)
                del self._requested[view.order]
            elif view is first:
                self.refused += view.cancel(squelch.block)

    def _content(self, message: Data | Info, packet: int, time: float) -> ObjectView:
        view = self.known(message.object_id, time)
        view.last = time
        self.fec_id = message.fec_id
        if not view.update(message.flags, message.fti):
            self._findings.add("changed-fti", packet, time, f"sender {self.source_id}: object {view.id} is now {message.fti}")
        if message.fti is not None and message.fec_id == 2:
            self.element_bits = message.fti.m
        return view

    def _counted(self, repair: bool, served: bool, flags: int, view: ObjectView, time: float) -> bool:
        if not repair:
            return False
        self.repairs += 1
        view.repairs += 1
        self.flagged += bool(flags & FLAG_REPAIR)
        self.needless += not served
        if self.rounds:
            now = self.rounds[-1]
            now.repairs += 1
            now.needless += not served
            if now.answered is None:
                now.answered = time
        return True

    # -- repair requests ------------------------------------------------------------------------------------------

    def asked(
        self, requested: RequestedRepairs, packet: int, time: float, asker: int | None
    ) -> tuple[RequestSize, list[BlockRequest]]:
        """Record a NACK of `asker`, or the sender's own REPAIR_ADV (None), which lists pending requests."""
        found = list(block_requests(requested, self.by_id, self._budget))
        # Every item of a request may ask for the information of its object again.
        named = (view for low, high in requested.infos for view in between(low, high, self.by_id, self._budget))
        infos = list({view.order: view for view in named}.values())
        symbols = sum(request.count for request in found) + len(infos)
        new = symbols
        if asker is not None:
            now = self._round(packet, time, asker, symbols)
            now.shared |= any(request.is_missing and self._passed(request) for request in found)
            new = sum(request.record(now.requested_blocks) for request in found) + sum(
                now.request_info(view.order) for view in infos
            )
            now.wanted += new
        self.wanted += sum(request.record() for request in found) + sum(not view.info_wanted for view in infos)
        for view in infos:
            view.info_wanted = True
        self._requested |= {view.order: view for view in (*infos, *(request.object for request in found))}
        return RequestSize(symbols, new), found

    def _passed(self, request: BlockRequest) -> bool:
        """Return whether the sender has sent beyond the requested position, so that missing content was lost."""
        return bool(request.sources) or self.newest is None or (request.object.order, request.block) < self.newest[:2]

    def _round(self, packet: int, time: float, asker: int, symbols: int) -> RepairRound:
        """Return the current repair round; a new one begins with the first request after a repair."""
        if (not self.rounds or self.rounds[-1].answered is not None) and len(self.rounds) < _ROUNDS_KEPT:
            if self.rounds:
                self.rounds[-1].forget()
            self.rounds.append(RepairRound(packet, time))
        now = self.rounds[-1]
        now.askers[asker] = now.askers.get(asker, 0) + symbols
        return now

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def open(self) -> int:
        """Number of symbols requested and not repaired until the end."""
        blocks: list[BlockView] = [block for view in self.objects for block in view.blocks.values()]
        return sum(block.open for block in blocks) + sum(view.info_wanted for view in self.objects)

    @property
    def missing(self) -> int:
        """Number of messages missing from the capture."""
        return sum(view.missing for view in self.sequences.values())

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        duration = self.last - self.first
        total = sum(self.octets.values())
        return {
            "source_id": self.source_id,
            "instance": self.instance,
            "addresses": list(self.addresses),
            "to": list(self.targets),
            "first": round(self.first, 6),
            "last": round(self.last, 6),
            "packets": dict(self.packets),
            "bytes": dict(self.octets),
            "rate_bps": round(total * 8 / duration, 1) if duration else None,
            "says_rate_bps": None if not self.rates else round(rate_value(self.rates[-1]) * 8, 1),
            "grtt": [float(f"{rtt_seconds(code):.4g}") for code in self._code],
            "backoff": self.origin.backoff,
            "group_size": gsize_value(self.origin.gsize),
            "missing": self.missing,
            "late": sum(view.late for view in self.sequences.values()),
            "duplicates": sum(view.duplicates for view in self.sequences.values()),
            "objects": [view.plain() for view in self.objects[:_OBJECTS_LISTED]],
            "objects_more": max(len(self.objects) - _OBJECTS_LISTED, 0),
            "repairs": self._repairs(),
            "suppression": self._suppression(),
            "rounds": [each.plain() for each in self.rounds],
            **self.states.plain(),
        }

    def _suppression(self) -> dict[str, Any]:
        """Return how well requests suppressed each other, as far as the capture shows it."""
        askers = sum(len(each.askers) for each in self.rounds)
        return {
            "rounds": len(self.rounds),
            "nacks_per_round": round(askers / len(self.rounds), 4) if self.rounds else None,
            "suppressed": sum(len(each.silent) for each in self.rounds if each.shared),
            "silent": sum(len(each.silent) for each in self.rounds if not each.shared),
        }

    def _repairs(self) -> dict[str, Any]:
        return {
            "packets": self.repairs,
            "flagged": self.flagged,
            "segments_asked": self.wanted,
            "unneeded": self.needless,
            "per_segment_asked": round(self.repairs / self.wanted, 4) if self.wanted else None,
            "refused": self.refused,
            "open": self.open,
        }
