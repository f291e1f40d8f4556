"""Sessions built message by message and written as captures."""

from dataclasses import replace
from pathlib import Path

from experiments.inspection.inspection import Inspection, inspect_capture
from protocols.norm.messages import Ack, Data, Flush, Fti, Nack, NormMessage, Origin
from protocols.norm.requests import (
    FORM_ITEMS,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.wire.codec import NormCodec
from tests.support.capture_writer import Sent, datagram, frame, write_pcap

__all__ = ["FTI", "ORIGIN", "Scene", "items"]

ORIGIN = Origin(1, 7, 120, 4, 2)
FTI = Fti(5, 4000, 500, 4, 2)
"""Eight segments in two blocks of four, two parity symbols each."""


def items(*names: tuple[int, int, int]) -> tuple[Request, ...]:
    """Build a request for symbols, each given as (object, block, symbol)."""
    return (Request(FORM_ITEMS, LEVEL_SEGMENT, tuple(Item(5, *name) for name in names)),)


class Scene:
    """Session of sender 1 and receivers 2, 3, ... with one message every 10 ms."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.codec = NormCodec()
        self.sequence = 0

    def send(self, message: NormMessage, node: int = 1, **frame_: object) -> None:
        """Append a message of node `node`."""
        self.raw(self.codec.encode(message), node, **frame_)

    def raw(self, payload: bytes, node: int = 1, **others: object) -> None:
        """Append a datagram of node `node` with any payload."""
        sent = Sent(payload, len(self.sent) * 0.01, (10, 0, 0, node), ident=len(self.sent))
        self.sent.append(replace(sent, **others))  # type: ignore[arg-type]

    def data(
        self, block: int, symbol: int, object_id: int = 0, fti: Fti | None = FTI, content: bytes | None = None, flags: int = 0
    ) -> None:
        """Append the sender's next DATA with its correct content."""
        content = bytes([block, symbol]) * 250 if content is None else content
        self.send(Data(ORIGIN, self.next(), flags, 5, object_id, block, symbol, 0, fti, content, len(content)))

    def whole(self, object_id: int = 0, without: tuple[tuple[int, int], ...] = ()) -> None:
        """Append all segments of an object; those in `without` use a sequence number but are missing from the capture."""
        for block, symbol in [(block, symbol) for block in range(2) for symbol in range(4)]:
            if (block, symbol) in without:
                self.next()
            else:
                self.data(block, symbol, object_id)

    def next(self) -> int:
        """Return the sender's next sequence number."""
        self.sequence += 1
        return (self.sequence - 1) & 0xFFFF

    def flush(self, object_id: int = 0, block: int = 1, symbol: int = 3) -> None:
        """Append a CMD(FLUSH)."""
        self.send(Flush(ORIGIN, self.next(), 5, object_id, block, symbol))

    def nack(self, node: int, *names: tuple[int, int, int], requests: tuple[Request, ...] = ()) -> None:
        """Append a NACK of receiver `node`."""
        self.send(Nack(node, 0, 1, 7, 0, 0, requests or items(*names)), node)

    def ack(self, node: int) -> None:
        """Append an ACK of receiver `node`, which makes the receiver known."""
        self.send(Ack(node, 0, 1, 7, 1, 0, 0, 0), node)

    def write(self, folder: Path) -> Path:
        """Write the capture and return its path."""
        return write_pcap(folder / "scene.pcap", [(each.time, frame(datagram(each))) for each in self.sent])

    def inspect(self, folder: Path) -> Inspection:
        """Write the capture and inspect it."""
        return inspect_capture(self.write(folder))
