"""Repair requests to a sender in rounds: which receivers requested what, who was suppressed, and which repairs followed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from experiments.inspection.detail import DetailBudget
from experiments.inspection.objects import BlockView, ObjectView
from protocols.norm.maps import bit_runs
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.requests import Request

__all__ = [
    "BlockRequest",
    "NackRecord",
    "RepairRound",
    "RequestSize",
    "between",
    "block_requests",
    "describe_request",
    "requested_repairs",
]

_MOST_BLOCKS = 1 << 16
_MOST_BITMAP = 1_000_000
_MOST_SAID = 12
_SCANNED_PER_STEP = 4
"""Binary logarithm of the objects looked at in one step of work."""


def requested_repairs(requests: Iterable[Request], fec_id: int, budget: DetailBudget) -> RequestedRepairs:
    """Sort the requests of a NACK or REPAIR_ADV by level; those whose bitmaps would exceed a megabyte are left out."""
    kept, left = [], _MOST_BITMAP
    for request in requests:
        left -= sum(item.symbol >> 3 for item in request.items)
        if left < 0:
            budget.refused += 1
            break
        kept.append(request)
    return RequestedRepairs(tuple(kept), fec_id)


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """Requested symbols of one block: `sources` by name, `parity` by count, or the `whole` block."""

    object: ObjectView
    block: int
    sources: int = 0
    parity: int = 0
    whole: bool = False

    @property
    def count(self) -> int:
        """Number of symbols requested."""
        return self.object.length(self.block) if self.whole else self.sources.bit_count() + self.parity

    def record(self, requested_blocks: dict[tuple[int, int], BlockView] | None = None) -> int:
        """Record the request in `requested_blocks` (default: those of the object); return how many symbols are new."""
        if requested_blocks is None:
            view = self.object.block(self.block)
            if self.block in self.object.blocks:
                self.object.requested.add(self.block)
        else:
            view = requested_blocks.setdefault((self.object.order, self.block), BlockView())
        length = self.object.length(self.block)
        growth = (length if self.whole else self.sources.bit_length()) - view.wanted.bit_length()
        if growth > 0 and not self.object.budget.memory(growth >> 3):
            return self.count
        return view.request_all(length) if self.whole else view.request(self.sources, self.parity)

    @property
    def is_missing(self) -> bool:
        """Whether requested symbols are missing from the capture as well; requests by count are decided per block."""
        return self.object.has_missing(self.block, self.sources)


def block_requests(requested: RequestedRepairs, objects: dict[int, ObjectView], budget: DetailBudget) -> Iterator[BlockRequest]:
    """Yield the requested blocks of known objects, as many as the budget of work allows."""
    for request in _block_requests(requested, objects, budget):
        if not budget.work(1):
            return
        yield request


def _block_requests(
    requested: RequestedRepairs, objects: dict[int, ObjectView], budget: DetailBudget
) -> Iterator[BlockRequest]:
    for (object_id, block), mask in requested.units():
        view = objects.get(object_id)
        if view is not None:
            length = view.length(block) or mask.bit_length()
            yield BlockRequest(view, block, mask & ((1 << length) - 1), (mask >> length).bit_count())
    for object_id, low, high in requested.blocks:
        view = objects.get(object_id)
        if view is not None:
            yield from _whole(view, low, high)
    for low, high in requested.objects:
        for view in between(low, high, objects, budget):
            yield from _whole(view, 0, _MOST_BLOCKS)


def between(low: int, high: int, objects: dict[int, ObjectView], budget: DetailBudget) -> list[ObjectView]:
    """Return the known objects in a range of object ids, which may wrap around; none beyond the budget of work."""
    span = (high - low) & 0xFFFF
    if not budget.work(min(span, len(objects)) >> _SCANNED_PER_STEP):
        return []
    if span < len(objects):
        ids = [(low + step) & 0xFFFF for step in range(span + 1)]
        return [objects[object_id] for object_id in ids if object_id in objects]
    return [view for object_id, view in objects.items() if (object_id - low) & 0xFFFF <= span]


def _whole(view: ObjectView, low: int, high: int) -> Iterator[BlockRequest]:
    """Yield requests of whole blocks: all blocks of an object, the captured blocks of a stream."""
    if view.fti is None or view.kind == "stream":
        if not view.budget.work(len(view.blocks) >> _SCANNED_PER_STEP):
            return
        blocks: Iterable[int] = [number for number in view.blocks if low <= number <= high]
    else:
        blocks = range(low, min(high + 1, view.fti.partition.blocks, low + _MOST_BLOCKS))
    for block in blocks:
        yield BlockRequest(view, block, whole=True)


def describe_request(requested: RequestedRepairs, found: Iterable[BlockRequest]) -> str:
    """Describe a request as text, including unknown objects."""
    parts = [_object_range(low, high) for low, high in requested.objects]
    parts += [f"info of {_object_range(low, high)}" for low, high in requested.infos]
    parts += [f"block {owner}.{low}" + (f"-{high}" if high > low else "") for owner, low, high in requested.blocks]
    for request in found:
        if not request.whole:
            name = f"{request.object.id}.{request.block}"
            runs = [f"{name}.{low}" + (f"-{high}" if high > low else "") for low, high in bit_runs(request.sources)]
            parts += [*runs, *([f"any {request.parity} of {name}"] if request.parity else [])]
    return ", ".join(parts[:_MOST_SAID]) + (f" and {len(parts) - _MOST_SAID} more" if len(parts) > _MOST_SAID else "")


def _object_range(low: int, high: int) -> str:
    return f"object {low}" if low == high else f"objects {low} to {high}"


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Number of symbols a message requested, and of those that no other receiver requested in the same round."""

    symbols: int
    new: int


@dataclass(frozen=True, slots=True)
class NackRecord:
    """One NACK as a row of the request table."""

    packet: int
    time: float
    receiver: int
    sender: int
    what: str
    asked: RequestSize

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "packet": self.packet,
            "time": round(self.time, 6),
            "receiver": self.receiver,
            "sender": self.sender,
            "what": self.what,
            "symbols": self.asked.symbols,
            "new": self.asked.new,
        }


@dataclass(slots=True)
class RepairRound:
    """A repair round: from a request to the last repair before the next request."""

    packet: int
    time: float
    shared: bool = False
    """Whether requested content is missing from the capture as well; then every receiver downstream of it misses it."""
    askers: dict[int, int] = field(default_factory=dict)
    """Requesting receivers in order, with the number of symbols each requested."""
    requested_blocks: dict[tuple[int, int], BlockView] = field(default_factory=dict)
    """Requests of this round, by object and block."""
    wanted: int = 0
    repairs: int = 0
    needless: int = 0
    answered: float | None = None
    silent: tuple[int, ...] = ()
    infos: set[int] = field(default_factory=set)

    def request_info(self, order: int) -> bool:
        """Request the NORM_INFO of an object; return whether this is a new request."""
        new = order not in self.infos
        self.infos.add(order)
        return new

    def forget(self) -> None:
        """Discard what tells a new request from a repeated one, at the end of the round."""
        self.requested_blocks.clear()
        self.infos.clear()

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        quiet = (
            {"suppressed": list(self.silent), "silent": []} if self.shared else {"suppressed": [], "silent": list(self.silent)}
        )
        return {
            "packet": self.packet,
            "time": round(self.time, 6),
            "askers": list(self.askers),
            **quiet,
            "segments": self.wanted,
            "repairs": self.repairs,
            "unneeded": self.needless,
            "answer_after": None if self.answered is None else round(self.answered - self.time, 6),
        }
