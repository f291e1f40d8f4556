"""Select the NORM datagrams of a capture, remove copies, and decode them."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from experiments.captures.datagrams import Capture, CapturedDatagram, endpoint_text
from experiments.inspection.node_tally import NodeTally
from experiments.inspection.offload_batches import messages_in
from experiments.inspection.tunnel_flows import TunnelFlows, is_signal, unwrapped
from protocols.errors import ConfigError, WireError
from protocols.norm.messages import NormMessage
from protocols.norm.wire.authentication import Authenticator
from protocols.norm.wire.codec import NormCodec
from topologies.names import first_names

__all__ = ["CapturedMessage", "NormReader", "looks_like_norm"]

_BASES = {1: 16, 2: 20, 3: 16, 4: 24, 5: 24, 6: 8}
_VERSION = 1
_REMEMBERED = 16_384
_PORTS_NAMED = 8
_LONGEST = 65_507
"""Bytes of payload of the longest UDP datagram over IPv4."""


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """A datagram and its decoded message, or the reason it has none, and the rule of `findings` that this violates."""

    datagram: CapturedDatagram
    message: NormMessage | None
    problem: str = ""
    rule: str = WireError.reason


def looks_like_norm(data: bytes, size: int) -> bool:
    """Return whether bytes of an original `size` may be a NORM message, by a cheap check of the header."""
    if len(data) < 8 or data[0] >> 4 != _VERSION:
        return False
    base = _BASES.get(data[0] & 15)
    return base is not None and base <= data[1] * 4 <= size


class NormReader:
    """The NORM messages of a capture: with `port` those to it and their replies, else those that look like NORM.

    With an `authenticator`, complete messages without a valid MAC are not decoded.
    """

    def __init__(self, capture: Capture, port: int | None = None, authenticator: Authenticator | None = None) -> None:
        self.capture = capture
        self._authenticator = authenticator
        self.begin = self.end = 0.0
        self.foreign = self.copies = self.cut = self.batches = 0
        """Other datagrams, copies seen at another interface, truncated datagrams, and datagrams of several messages."""
        self.targets: list[str] = []
        self.nodes = NodeTally()
        self.tunnels = TunnelFlows()
        self._is_wrapped = False
        self._chosen = self._survey(port)
        self._recent: OrderedDict[int, tuple[int, ...]] = OrderedDict()

    def _survey(self, port: int | None) -> frozenset[tuple[str, int]]:
        """First pass: determine the destinations of NORM traffic, and its first and last time."""
        alike: Counter[tuple[str, int]] = Counter()
        total: Counter[tuple[str, int]] = Counter()
        replying: set[tuple[str, int]] = set()
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        for datagram in self._datagrams():
            if not self._is_wrapped:
                if self.tunnels.add_signal(datagram):
                    continue
                self.tunnels.add(datagram)
            key = datagram.target, datagram.port
            total[key] += 1
            if looks_like_norm(datagram.payload, datagram.size):
                alike[key] += 1
                self.nodes.add(datagram.payload, datagram.size)
            if datagram.port == port:
                replying.add((datagram.source, datagram.sport))
            low, high = spans.get(key, (inf, -inf))
            spans[key] = min(low, datagram.time), max(high, datagram.time)
        if port is None:
            chosen = [key for key in total if alike[key] * 2 > total[key]]
        else:
            chosen = [key for key in total if key[1] == port or key in replying]
        if not any(alike[key] for key in chosen):
            if self.tunnels and not self._is_wrapped:
                # A capture between sites: what is in the datagrams of tunnels is the session.
                self._is_wrapped = True
                return self._survey(port)
            raise ConfigError(f"{self.capture.file.path}: {self._nothing(port, total)}")
        self.begin, self.end = min(spans[key][0] for key in chosen), max(spans[key][1] for key in chosen)
        self.targets = [endpoint_text(*key) for key in chosen]
        self.foreign = sum(total.values()) - sum(total[key] for key in chosen)
        return frozenset(chosen)

    def _nothing(self, port: int | None, total: Counter[tuple[str, int]]) -> str:
        where = "" if port is None else f" to port {port}"
        ports = sorted({key[1] for key in total})
        seen = first_names(ports, _PORTS_NAMED)
        count = sum(total.values())
        flaw = f" ({self.capture.file.flaw})" if self.capture.file.flaw else ""
        return f"holds no NORM messages{where} among {count} UDP datagrams" + (f" to ports {seen}" if ports else "") + flaw

    def _datagrams(self) -> Iterator[CapturedDatagram]:
        """Return the datagrams of the capture, or the packets that tunnels carry in them."""
        return unwrapped(iter(self.capture)) if self._is_wrapped else iter(self.capture)

    def __iter__(self) -> Iterator[CapturedMessage]:
        """Yield every NORM message in order."""
        codec = NormCodec()
        self.copies = self.cut = self.batches = 0
        self._recent.clear()
        for datagram in self._datagrams():
            if (datagram.target, datagram.port) not in self._chosen or is_signal(datagram):
                continue
            yield from self._messages(codec, datagram)

    def _messages(self, codec: NormCodec, datagram: CapturedDatagram) -> Iterator[CapturedMessage]:
        parts = [datagram.payload]
        if len(datagram.payload) < datagram.size:
            self.cut += 1
        else:
            parts = messages_in(datagram.payload)
        self.batches += len(parts) > 1
        for part in parts:
            if self._is_copy(datagram, part):
                self.copies += 1
                continue
            item = datagram if len(parts) == 1 else replace(datagram, payload=part, size=len(part))
            if item.size > _LONGEST:
                yield CapturedMessage(item, None, f"{item.size} bytes, at most {_LONGEST}")
                continue
            try:
                if self._authenticator is not None and len(part) == item.size:
                    self._authenticator.verify(part, int(item.time * 1e6))
                yield CapturedMessage(item, codec.decode(part))
            except WireError as problem:
                yield CapturedMessage(item, None, str(problem), problem.reason)

    def _is_copy(self, datagram: CapturedDatagram, part: bytes) -> bool:
        """Return whether the message was captured before at another interface or in the other direction."""
        key = hash((datagram.source, datagram.sport, datagram.target, part))
        known = self._recent.get(key)
        if known is not None:
            return known != datagram.point
        if len(self._recent) >= _REMEMBERED:
            self._recent.popitem(last=False)
        self._recent[key] = datagram.point
        return False
