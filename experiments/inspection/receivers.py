"""A receiver as seen in its feedback: its requests, the loss they imply, and the path state it reports."""

from collections import Counter
from typing import Any

from protocols.norm.messages import Ack, Nack
from protocols.norm.quantise import rate_value, rtt_seconds

__all__ = ["ReceiverView"]

_LOSS_32 = 0xFFFFFFFF


class ReceiverView:
    """One node that sends feedback; times are seconds since the first message."""

    def __init__(self, node: int, time: float) -> None:
        self.node = node
        self.first = self.last = time
        self.addresses: Counter[str] = Counter()
        self.nacks = self.acks = self.flushes = 0
        self.symbols = self.covered = 0
        """Symbols requested in all NACKs, and NACKs that request only what others requested in the same round."""
        self.suppressed = self.silent = 0
        """Rounds in which it sent nothing although it missed content, and rounds in which that is unknown."""
        self.senders: set[tuple[int, int]] = set()
        self._most: dict[tuple[int, int, int, int], int] = {}
        self._reported: dict[str, float] | None = None

    def add(self, message: Nack | Ack, time: float, address: str) -> None:
        """Record a NACK or ACK of this receiver."""
        self.last = time
        self.addresses[address] += 1
        self.senders.add((message.sender_id, message.instance_id))
        if isinstance(message, Nack):
            self.nacks += 1
            return
        self.acks += 1
        self.flushes += message.ack_type == 2
        if message.cc is not None:
            # NRL NORM encodes 32 bits of loss in two halves and drops the upper one in NACKs, so only ACKs are used.
            loss = (message.cc.loss << 16 | message.cc.loss_low) / _LOSS_32
            self._reported = {"loss": loss, "rtt": rtt_seconds(message.cc.rtt), "rate_bps": rate_value(message.cc.rate) * 8}

    def asked(self, key: tuple[int, int, int, int], symbols: int) -> None:
        """Record that it requested `symbols` symbols of a block named by (sender, instance, object, block)."""
        self._most[key] = max(self._most.get(key, 0), symbols)

    def plain(self, sent: dict[tuple[int, int], int]) -> dict[str, Any]:
        """Return plain values for JSON; `sent` are the segments each sender sent."""
        segments_lost = sum(self._most.values())
        captured = sum(sent.get(key, 0) for key in self.senders)
        return {
            "node": self.node,
            "addresses": list(self.addresses),
            "first": round(self.first, 6),
            "last": round(self.last, 6),
            "nacks": self.nacks,
            "acks": self.acks,
            "flush_acks": self.flushes,
            "symbols_asked": self.symbols,
            "segments_lost": segments_lost,
            "loss": round(segments_lost / captured, 6) if captured else None,
            "nacks_covered": self.covered,
            "rounds_suppressed": self.suppressed,
            "rounds_silent": self.silent,
            "says": None if self._reported is None else {key: float(f"{value:.6g}") for key, value in self._reported.items()},
        }
