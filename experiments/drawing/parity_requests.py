"""Find the NACKs of a trace that request parity, and what their senders lost: any k symbols of a block of k + n decode it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.captures.trace_file import Trace, TracedPacket

__all__ = ["ParityRequest", "find_parity_requests", "parity_rule"]

_SYMBOL = re.compile(r"(\d+\.\d+)\.(\d+)(?:-(\d+))?")
"""A symbol in the `brief` of a message, like 0.2.17 for object, block and symbol, or a range of them, like 0.2.17-19."""
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class ParityRequest:
    """A request by `node` that names parity: how it is written, with p0 for the first parity, and the symbols it had `lost`.

    `block` is the first block whose parity it names, of `source` source symbols.
    """

    node: str
    time: float
    asked: str
    lost: tuple[str, ...]
    block: str
    source: int

    @property
    def explained(self) -> str:
        """One sentence that says why these symbols are requested."""
        more = f" and {len(self.lost) - _MOST_NAMED} more" if len(self.lost) > _MOST_NAMED else ""
        lost = ", ".join(self.lost[:_MOST_NAMED]) + more if self.lost else "symbols that the trace does not show"
        return f"{self.node} lost {lost} and requests {self.asked}: any {self.source} symbols decode block {self.block}"


def parity_rule(requests: Iterable[ParityRequest]) -> str:
    """Return the sentence of a legend that explains all these requests; "" if there are none."""
    sizes = sorted({request.source for request in requests})
    if not sizes:
        return ""
    size = f"any {sizes[0]} symbols" if len(sizes) == 1 else "as many symbols as it has source symbols"
    return f"A NACK for p0 requests parity: {size} of a block decode it, so new parity replaces whichever symbols were lost."


def find_parity_requests(trace: Trace, packets: Iterable[TracedPacket]) -> dict[int, ParityRequest]:
    """Return the requests among `packets` that name parity, by the packet's number."""
    content = [packet for packet in trace.packets.values() if packet.kind == "data" and packet.brief]
    sources = _source_symbols(content)
    found = {}
    for packet in packets:
        named = [match for match in _SYMBOL.finditer(packet.brief) if packet.kind == "nack"]
        beyond = [match for match in named if int(match[2]) >= sources.get(match[1], 1 << 32)]
        if beyond:
            block = beyond[0][1]
            lost = tuple(each.brief for each in content if _missed(each, packet, block))
            asked = _SYMBOL.sub(lambda match: _written(match, sources), packet.brief)
            found[packet.number] = ParityRequest(packet.node, packet.time, asked, lost, block, sources[block])
    return found


def _source_symbols(content: Iterable[TracedPacket]) -> Mapping[str, int]:
    """Return the number of source symbols of each block, as far as they were sent; parity is written p0, p1, ..."""
    found: dict[str, int] = {}
    for packet in content:
        match = _SYMBOL.fullmatch(packet.brief)
        if match:
            found[match[1]] = max(found.get(match[1], 0), int(match[2]) + 1)
    return found


def _missed(content: TracedPacket, request: TracedPacket, block: str) -> bool:
    """Return whether the sender of the request had lost this packet of the block."""
    earlier = content.time < request.time and content.brief.startswith(f"{block}.")
    return earlier and request.node != content.node and request.node not in content.received


def _written(match: re.Match[str], sources: Mapping[str, int]) -> str:
    """Return the symbol or range with parity counted from p0, as data messages are labelled."""
    block, first, last = match.groups()
    names = [_symbol(int(number), sources.get(block, 1 << 32)) for number in (first, last) if number is not None]
    return f"{block}.{'-'.join(names)}"


def _symbol(number: int, source: int) -> str:
    return str(number) if number < source else f"p{number - source}"
