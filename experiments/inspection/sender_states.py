"""The state of a sender from probe to probe: GRTT, rate, repairs, requests and congestion control; and its watermarks."""

from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.inspection.detail import DetailBudget
from protocols.norm.messages import Ack, Flush, Nack, Probe
from protocols.norm.quantise import rate_value, rtt_seconds

__all__ = ["ProbeState", "SenderStates", "Watermark"]

_STATES_KEPT, _WATERMARKS_KEPT = 2_000, 500
_MEMORY = 400
"""Bytes of a state or a watermark, about."""
_FLAGS = {1: "CLR", 2: "PLR", 4: "RTT", 8: "START", 16: "LEAVE", 32: "LIMIT"}
_CLR = 1
_LOSS_32 = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ProbeState:
    """What was advertised in one CMD(CC), and what happened since the one before.

    Times are in seconds, rates in bits per second. `clr` is the first node of the list with the flag CLR, with what the sender
    says of it and the loss that it reported last.
    """

    time: float
    packet: int
    grtt: float
    says_rate_bps: float | None
    sent_rate_bps: float | None
    data: int
    repairs: int
    nacks: int
    nodes: int
    clr: int | None = None
    clr_flags: list[str] = field(default_factory=list)
    clr_rtt: float | None = None
    clr_rate_bps: float | None = None
    clr_loss: float | None = None


@dataclass(slots=True)
class Watermark:
    """A FLUSH that requests ACKs: the symbol it names, the nodes listed in it, and the seconds after which each answered."""

    time: float
    packet: int
    names: str
    asked: set[int] = field(default_factory=set)
    flushes: int = 0
    acked: dict[int, float] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "time": round(self.time, 6),
            "packet": self.packet,
            "names": self.names,
            "flushes": self.flushes,
            "asked": sorted(self.asked),
            "acked": {str(node): round(after, 6) for node, after in sorted(self.acked.items())},
            "missing": sorted(self.asked - self.acked.keys()),
        }


class SenderStates:
    """The states of one sender; times are seconds since the first message of the capture."""

    def __init__(self, budget: DetailBudget) -> None:
        self.states: list[ProbeState] = []
        self.watermarks: list[Watermark] = []
        self._budget = budget
        self._since: float | None = None
        self._octets = self._data = self._repairs = self._nacks = 0
        self._loss: dict[int, float] = {}

    def sent(self, kind: str, size: int) -> None:
        """Count a message of `size` bytes that the sender sends."""
        self._octets += size
        self._data += kind in ("data", "parity")
        self._repairs += kind == "repair"

    def probed(self, probe: Probe, packet: int, time: float) -> None:
        """Close the interval before a CMD(CC)."""
        span = None if self._since is None else time - self._since
        clr = next((node for node in probe.nodes if node.flags & _CLR), None)
        if len(self.states) < _STATES_KEPT and self._budget.memory(_MEMORY):
            self.states.append(
                ProbeState(
                    time=time,
                    packet=packet,
                    grtt=rtt_seconds(probe.origin.grtt),
                    says_rate_bps=None if probe.rate is None else rate_value(probe.rate) * 8,
                    sent_rate_bps=self._octets * 8 / span if span else None,
                    data=self._data,
                    repairs=self._repairs,
                    nacks=self._nacks,
                    nodes=len(probe.nodes),
                    clr=None if clr is None else clr.node_id,
                    clr_flags=[] if clr is None else [name for bit, name in _FLAGS.items() if clr.flags & bit],
                    clr_rtt=None if clr is None else rtt_seconds(clr.rtt),
                    clr_rate_bps=None if clr is None else rate_value(clr.rate) * 8,
                    clr_loss=None if clr is None else self._loss.get(clr.node_id),
                )
            )
        self._since = time
        self._octets = self._data = self._repairs = self._nacks = 0

    def flushed(self, flush: Flush, packet: int, time: float) -> None:
        """Record the nodes from which a FLUSH requests ACKs."""
        if not flush.acking:
            return
        last = self.watermarks[-1] if self.watermarks else None
        if last is None or last.names != flush.brief:
            if len(self.watermarks) >= _WATERMARKS_KEPT or not self._budget.memory(_MEMORY):
                return
            last = Watermark(time, packet, flush.brief)
            self.watermarks.append(last)
        if self._budget.memory(8 * len(flush.acking)):
            last.asked.update(flush.acking)
        last.flushes += 1

    def fed_back(self, message: Nack | Ack, time: float) -> bool:
        """Record feedback; return False for an ACK of a FLUSH that no captured FLUSH asked for."""
        self._nacks += isinstance(message, Nack)
        if not isinstance(message, Ack):
            return True
        if message.cc is not None and (message.source_id in self._loss or self._budget.memory(_MEMORY)):
            # NRL NORM drops the upper half of the loss in NACKs.
            self._loss[message.source_id] = (message.cc.loss << 16 | message.cc.loss_low) / _LOSS_32
        if message.ack_type != 2:
            return True
        for watermark in reversed(self.watermarks):
            if message.source_id in watermark.asked:
                watermark.acked.setdefault(message.source_id, time - watermark.time)
                return True
        return False

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "states": [_rounded(asdict(state)) for state in self.states],
            "watermarks": [watermark.plain() for watermark in self.watermarks],
        }


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in row.items()}
