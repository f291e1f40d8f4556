"""Cross-check a sample of the messages: codec and scapy must agree."""

from typing import Any

from experiments.inspection.dissector_check import differences, dissected
from experiments.inspection.findings import FindingLog
from experiments.inspection.norm_reader import CapturedMessage
from protocols.errors import UnsupportedError

__all__ = ["CrossCheck"]

_EVERY, _MOST = 1000, 50


class CrossCheck:
    """Check the first message of each kind and every thousandth, at most 50; none without scapy."""

    def __init__(self, findings: FindingLog) -> None:
        self.checked = self.disagree = 0
        self.missing = ""
        self._findings = findings
        self._kinds: set[str] = set()
        self._count = 0

    def offer(self, captured: CapturedMessage, element_bits: int, time: float) -> None:
        """Check a decoded message if it is in the sample."""
        message, data = captured.message, captured.datagram.payload
        self._count += 1
        if message is None or (message.kind in self._kinds and self._count % _EVERY):
            return
        if self.missing or self.checked >= _MOST:
            return
        self._kinds.add(message.kind)
        try:
            layer = dissected(data, element_bits)
        except UnsupportedError as error:
            self.missing = str(error)
            return
        self.checked += 1
        found = differences(message, layer)
        if found:
            self.disagree += 1
            self._findings.add("two-decodings", captured.datagram.number, time, f"{message.kind}: {'; '.join(found)}")

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"checked": self.checked, "disagree": self.disagree} | ({"missing": self.missing} if self.missing else {})
