"""State of a sender's object as far as the capture shows it: symbols sent, requested and repaired."""

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from protocols.norm.messages import FLAG_FILE, FLAG_STREAM, Data, Fti

__all__ = ["BlockView", "ObjectView"]


class BlockView:
    """One block: symbols sent, and requested symbols not repaired yet."""

    __slots__ = ("asked", "parity", "seen", "wanted", "whole")

    def __init__(self) -> None:
        self.seen = self.wanted = self.parity = 0
        """Bitmap of symbols sent, bitmap of source symbols requested by name, number of parity symbols requested."""
        self.asked = self.whole = False
        """Whether anything was requested; whether the whole block was requested, which parity symbols may serve."""

    def request(self, sources: int, parity: int) -> int:
        """Request source symbols by name and a number of parity symbols; return how many are new requests."""
        new = (sources & ~self.wanted).bit_count() + max(parity - self.parity, 0)
        self.wanted |= sources
        self.parity = max(self.parity, parity)
        self.asked = True
        return new

    def request_all(self, length: int) -> int:
        """Request a whole block of `length` source symbols; return how many are new requests."""
        self.whole = True
        return self.request((1 << length) - 1, 0)

    def serve(self, symbol: int, is_parity: bool) -> bool:
        """Record a sent symbol; return whether it serves a pending request."""
        if is_parity:
            served = self.whole or self.parity > 0
            self.parity = max(self.parity - 1, 0)
            return served
        served = bool(self.wanted >> symbol & 1)
        self.wanted &= ~(1 << symbol)
        return served

    @property
    def open(self) -> int:
        """Number of symbols requested and not sent since."""
        return self.wanted.bit_count() + self.parity

    def missing(self, length: int) -> int:
        """Return the number of symbols missing from the capture to decode the block."""
        return max(length - self.seen.bit_count(), 0)


@dataclass(slots=True)
class ObjectView:
    """One object; `order` is its object id without wrap-around."""

    id: int
    order: int
    first: float
    last: float
    kind: str = "data"
    fti: Fti | None = None
    info: bytes | None = None
    info_wanted: bool = False
    empty: bool = False
    sources: int = 0
    parity: int = 0
    repairs: int = 0
    octets: int = 0
    blocks: dict[int, BlockView] = field(default_factory=dict)
    sums: dict[int, int] = field(default_factory=dict)

    def block(self, number: int) -> BlockView:
        """Return the view of a block, created on first use."""
        found = self.blocks.get(number)
        if found is None:
            found = self.blocks[number] = BlockView()
        return found

    def update(self, flags: int, fti: Fti | None) -> bool:
        """Update the object from the flags and FTI of a message; return False if the FTI contradicts an earlier one."""
        self.kind = "stream" if flags & FLAG_STREAM else "file" if flags & FLAG_FILE else "data"
        if fti is None or fti is self.fti:
            return True
        agrees = self.fti is None or fti == self.fti
        self.fti = fti
        return agrees

    def length(self, block: int) -> int:
        """Return the number of source symbols of a block, 0 if the FTI is unknown."""
        if self.fti is None:
            return 0
        return self.fti.block if self.kind == "stream" else self.fti.partition.length(block)

    def cancel(self, before: int | None) -> int:
        """Cancel requests for blocks before a number, or for all blocks (None); return the number of symbols."""
        struck = 0
        for number, block in self.blocks.items():
            if before is None or number < before:
                struck += block.open
                block.wanted = block.parity = 0
        if before is None:
            struck += self.info_wanted
            self.info_wanted = False
        return struck

    def same_content(self, data: Data) -> bool:
        """Return whether the symbol has the content it had before, or was not sent before."""
        assert data.payload is not None
        found = crc32(data.payload)
        return self.sums.setdefault(data.block << 16 | data.symbol, found) == found

    @property
    def decodable(self) -> int:
        """Number of blocks with at least as many captured symbols as source symbols."""
        lengths = ((self.length(number), block) for number, block in self.blocks.items())
        return sum(1 for length, block in lengths if length and not block.missing(length))

    @property
    def complete(self) -> bool | None:
        """Whether the captured symbols suffice to decode the object; None if that cannot be determined."""
        if self.empty:
            return True
        if self.fti is None or self.kind == "stream":
            return None
        return self.decodable == self.fti.partition.blocks

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        fti, stream = self.fti, self.kind == "stream"
        coding = fti and {
            "fec_id": fti.fec_id,
            "segment": fti.segment,
            "block": fti.block,
            "parity": fti.parity,
            "blocks": None if stream else fti.partition.blocks,
            "segments": None if stream else fti.partition.segments,
        }
        return {
            "id": self.id,
            "kind": self.kind,
            "size": 0 if self.empty else None if fti is None or stream else fti.object_size,
            "buffer": fti.object_size if fti and stream else None,
            "coding": coding,
            "info": None if self.info is None else _text(self.info),
            "first": round(self.first, 6),
            "last": round(self.last, 6),
            "sources": self.sources,
            "parity": self.parity,
            "repairs": self.repairs,
            "blocks_seen": len(self.blocks),
            "blocks_decodable": self.decodable,
            "complete": self.complete,
            "open_requests": sum(block.open for block in self.blocks.values()) + self.info_wanted,
        }


def _text(info: bytes) -> str:
    """Return NORM_INFO as text if it is printable, else in hexadecimal."""
    try:
        text = info.decode()
    except UnicodeDecodeError:
        return info.hex()
    return text if text.isprintable() else info.hex()
