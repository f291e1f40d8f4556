"""An object of a sender as far as a capture shows it: its symbols, and what was asked for and sent again."""

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from protocols.norm.messages import FLAG_FILE, FLAG_STREAM, Data, Fti

__all__ = ["BlockView", "ObjectView"]


class BlockView:
    """One block: which symbols came by, and which are asked for and not yet sent again."""

    __slots__ = ("asked", "parity", "seen", "wanted", "whole")

    def __init__(self) -> None:
        self.seen = self.wanted = self.parity = 0
        """Mask of symbols seen, mask of source symbols asked for by name, number of parity symbols asked for."""
        self.asked = self.whole = False
        """Was anything ever asked for; is the whole block to be sent again, of which parity may be a part?"""

    def ask(self, sources: int, parity: int) -> int:
        """Ask for source symbols by name and for as many parity symbols: how many more than were asked for already."""
        new = (sources & ~self.wanted).bit_count() + max(parity - self.parity, 0)
        self.wanted |= sources
        self.parity = max(self.parity, parity)
        self.asked = True
        return new

    def ask_all(self, length: int) -> int:
        """Ask for the whole block of so many source symbols."""
        self.whole = True
        return self.ask((1 << length) - 1, 0)

    def answer(self, symbol: int, is_parity: bool) -> bool:
        """A symbol is sent: does it serve a request that stands?"""
        if is_parity:
            served = self.whole or self.parity > 0
            self.parity = max(self.parity - 1, 0)
            return served
        served = bool(self.wanted >> symbol & 1)
        self.wanted &= ~(1 << symbol)
        return served

    @property
    def open(self) -> int:
        """Symbols asked for that were not sent since."""
        return self.wanted.bit_count() + self.parity

    def lacks(self, length: int) -> int:
        """Symbols that are missing here to decode the block."""
        return max(length - self.seen.bit_count(), 0)


@dataclass(slots=True)
class ObjectView:
    """One object; `order` counts its id on without wrapping."""

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
        """The view of a block."""
        found = self.blocks.get(number)
        if found is None:
            found = self.blocks[number] = BlockView()
        return found

    def learn(self, flags: int, fti: Fti | None) -> bool:
        """What a message says of the object; False when it contradicts an earlier one."""
        self.kind = "stream" if flags & FLAG_STREAM else "file" if flags & FLAG_FILE else "data"
        if fti is None or fti is self.fti:
            return True
        agrees = self.fti is None or fti == self.fti
        self.fti = fti
        return agrees

    def length(self, block: int) -> int:
        """Source symbols of a block, 0 when the coding is not known."""
        if self.fti is None:
            return 0
        return self.fti.block if self.kind == "stream" else self.fti.partition.length(block)

    def refuse(self, before: int | None) -> int:
        """Strike out requests, of blocks before a number or (None) of all: how many symbols."""
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
        """Is this what the symbol held before? True for what was not there before."""
        assert data.payload is not None
        found = crc32(data.payload)
        return self.sums.setdefault(data.block << 16 | data.symbol, found) == found

    @property
    def decodable(self) -> int:
        """Blocks of which enough symbols came by: as many as it has source symbols, whichever."""
        lengths = ((self.length(number), block) for number, block in self.blocks.items())
        return sum(1 for length, block in lengths if length and not block.lacks(length))

    @property
    def complete(self) -> bool | None:
        """Could a receiver at this point have all of it? None where a capture can't tell."""
        if self.empty:
            return True
        if self.fti is None or self.kind == "stream":
            return None
        return self.decodable == self.fti.partition.blocks

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
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
    """NORM_INFO as text where it is some, else in hexadecimal."""
    try:
        text = info.decode()
    except UnicodeDecodeError:
        return info.hex()
    return text if text.isprintable() else info.hex()
