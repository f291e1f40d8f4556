"""Analyse a capture file: sessions, statistics of the file, scapy cross-check, and an excerpt for a sequence diagram."""

from pathlib import Path
from typing import Any

from experiments.captures.datagrams import Capture
from experiments.inspection.cross_check import CrossCheck
from experiments.inspection.detail import DetailBudget
from experiments.inspection.message_flows import MessageFlows
from experiments.inspection.norm_reader import CapturedMessage, NormReader
from experiments.inspection.request_excerpt import RequestExcerpt
from experiments.inspection.session_analysis import SessionAnalysis
from protocols.norm.messages import Command, Data, Info, Nack
from protocols.norm.wire.authentication import Authenticator

__all__ = ["Inspection", "inspect_capture"]


class Inspection:
    """Analysis of one capture: its sessions, file statistics, and the messages around the first NACK."""

    def __init__(self, path: Path, port: int | None = None, authenticator: Authenticator | None = None) -> None:
        self.path = path
        self.capture = Capture(path)
        self.reading = NormReader(self.capture, port, authenticator)
        self.session = SessionAnalysis(self.reading.begin, self.reading.end, self.reading.nodes)
        self.cross_check = CrossCheck(self.session.findings)
        self.excerpt = RequestExcerpt()
        self.topics = MessageFlows(DetailBudget())

    def run(self) -> None:
        """Process every message of the capture."""
        for captured in self.reading:
            kind = self.session.add(captured)
            if captured.message is None:
                continue
            time = captured.datagram.time - self.session.begin
            is_whole = len(captured.datagram.payload) == captured.datagram.size
            if kind and is_whole and isinstance(captured.message, Data):
                self.topics.add(captured.message, captured.datagram.time)
            if kind and is_whole:
                self.cross_check.offer(captured, self._element_bits(captured), time)
            if kind:
                self.excerpt.add(captured, kind, time)
        self.session.close()

    def _element_bits(self, captured: CapturedMessage) -> int:
        """Return m of FEC id 2 of the sender of a message, or of the sender a NACK is addressed to; 16 if unknown."""
        message = captured.message
        key = None
        if isinstance(message, Data | Info | Command):
            key = message.origin.source_id, message.origin.instance_id
        elif isinstance(message, Nack):
            key = message.sender_id, message.instance_id
        sender = self.session.senders.get(key) if key else None
        return 16 if sender is None else sender.element_bits

    @property
    def violated(self) -> bool:
        """Whether the capture has a protocol violation."""
        return bool(self.session.findings.violations)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON; times are seconds since `start`, a Unix timestamp."""
        capture, reading, session = self.capture, self.reading, self.session
        return {
            "file": str(self.path),
            "flaw": capture.file.flaw or None,
            "frames": capture.frames,
            "other_frames": capture.others,
            "unfinished_fragments": capture.unfinished,
            "other_datagrams": reading.foreign,
            "copies": reading.copies,
            "cut": reading.cut,
            "unreadable": session.unreadable,
            "batches": reading.batches,
            "to": reading.targets,
            "messages": session.messages,
            "bytes": session.octets,
            "start": session.begin,
            "duration": round(reading.end - reading.begin, 6),
            **({"tunnels": [flow.plain() for flow in reading.tunnels]} if reading.tunnels else {}),
            **({"signals": [told.plain() for told in reading.tunnels.signals]} if reading.tunnels.signals else {}),
            **({"topics": topics} if (topics := self.topics.plain()) else {}),
            **session.plain(),
            "scapy": self.cross_check.plain(),
        }


def inspect_capture(path: Path, port: int | None = None, authenticator: Authenticator | None = None) -> Inspection:
    """Analyse a capture; UsageError or ConfigError if it holds no NORM messages.

    With an `authenticator`, messages without a valid MAC are violations and are not analysed.
    """
    inspection = Inspection(path, port, authenticator)
    inspection.run()
    return inspection
