"""What receivers ask a sender for, in rounds: who asked first, who asked for nothing new, who kept silent, what it brought."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from experiments.inspection.objects import BlockView, ObjectView
from protocols.norm.bits import bit_runs
from protocols.norm.messages import Request
from protocols.norm.repair_requests import RequestedRepairs

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
_MOST_SAID = 12


def requested_repairs(requests: Iterable[Request], fec_id: int) -> RequestedRepairs:
    """The requests of a NACK or REPAIR_ADV sorted by level."""
    demand = RequestedRepairs()
    for request in requests:
        demand.add(request, fec_id)
    return demand


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """Part of a request: of one block so many symbols; `sources` are named, `parity` is a count, `whole` is all of it."""

    object: ObjectView
    block: int
    sources: int = 0
    parity: int = 0
    whole: bool = False

    @property
    def count(self) -> int:
        """Symbols asked for."""
        return self.object.length(self.block) if self.whole else self.sources.bit_count() + self.parity

    def place(self, books: dict[tuple[int, int], BlockView] | None = None) -> int:
        """Put it on the books, those of the object or others: how many symbols were not asked for already."""
        if books is None:
            view = self.object.block(self.block)
        else:
            view = books.setdefault((self.object.order, self.block), BlockView())
        return view.ask_all(self.object.length(self.block)) if self.whole else view.ask(self.sources, self.parity)

    @property
    def lacks(self) -> bool:
        """Is something of what is named missing at the capture, too? Parity names no symbols, so the block decides."""
        seen = self.object.block(self.block).seen
        if self.sources:
            return bool(self.sources & ~seen)
        length = self.object.length(self.block)
        return self.object.block(self.block).lacks(length) > 0


def block_requests(demand: RequestedRepairs, objects: dict[int, ObjectView]) -> Iterator[BlockRequest]:
    """The blocks a demand concerns, of objects known by id."""
    for (object_id, block), mask in demand.symbols.items():
        view = objects.get(object_id)
        if view is not None:
            length = view.length(block) or mask.bit_length()
            yield BlockRequest(view, block, mask & ((1 << length) - 1), (mask >> length).bit_count())
    for object_id, low, high in demand.blocks:
        view = objects.get(object_id)
        if view is not None:
            yield from _whole(view, low, high)
    for low, high in demand.objects:
        for view in between(low, high, objects):
            yield from _whole(view, 0, _MOST_BLOCKS)


def between(low: int, high: int, objects: dict[int, ObjectView]) -> list[ObjectView]:
    """The known objects of a range of ids, which may wrap."""
    span = (high - low) & 0xFFFF
    if span < len(objects):
        ids = [(low + step) & 0xFFFF for step in range(span + 1)]
        return [objects[object_id] for object_id in ids if object_id in objects]
    return [view for object_id, view in objects.items() if (object_id - low) & 0xFFFF <= span]


def _whole(view: ObjectView, low: int, high: int) -> Iterator[BlockRequest]:
    """Whole blocks: of an object those it has, of a stream those that came by."""
    if view.fti is None or view.kind == "stream":
        blocks = [number for number in view.blocks if low <= number <= high]
    else:
        blocks = list(range(low, min(high + 1, view.fti.partition.blocks, low + _MOST_BLOCKS)))
    for block in blocks:
        yield BlockRequest(view, block, whole=True)


def describe_request(demand: RequestedRepairs, found: Iterable[BlockRequest]) -> str:
    """What is asked for in words, unknown objects included."""
    parts = [_object_range(low, high) for low, high in demand.objects]
    parts += [f"info of {_object_range(low, high)}" for low, high in demand.infos]
    parts += [f"block {owner}.{low}" + (f"-{high}" if high > low else "") for owner, low, high in demand.blocks]
    for wish in found:
        if not wish.whole:
            name = f"{wish.object.id}.{wish.block}"
            runs = [f"{name}.{low}" + (f"-{high}" if high > low else "") for low, high in bit_runs(wish.sources)]
            parts += [*runs, *([f"any {wish.parity} of {name}"] if wish.parity else [])]
    return ", ".join(parts[:_MOST_SAID]) + (f" and {len(parts) - _MOST_SAID} more" if len(parts) > _MOST_SAID else "")


def _object_range(low: int, high: int) -> str:
    return f"object {low}" if low == high else f"objects {low} to {high}"


@dataclass(frozen=True, slots=True)
class RequestSize:
    """How many symbols a message asked for, and how many of them nobody else had asked for in the same round."""

    symbols: int
    new: int


@dataclass(frozen=True, slots=True)
class NackRecord:
    """One NACK, for people."""

    packet: int
    time: float
    receiver: int
    sender: int
    what: str
    asked: RequestSize

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
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
    """From a request to the last repair before the next one that comes after a repair."""

    packet: int
    time: float
    shared: bool = False
    """Was what is asked for missing at the capture too? Then everybody behind it lacks it."""
    askers: dict[int, int] = field(default_factory=dict)
    """Receivers that asked, with the symbols they asked for, in order."""
    books: dict[tuple[int, int], BlockView] = field(default_factory=dict)
    """What was asked for in this round, by object and block."""
    wanted: int = 0
    repairs: int = 0
    needless: int = 0
    answered: float | None = None
    silent: tuple[int, ...] = ()
    infos: set[int] = field(default_factory=set)

    def ask_info(self, order: int) -> bool:
        """Ask for the information of an object: was it not asked for already?"""
        new = order not in self.infos
        self.infos.add(order)
        return new

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
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
