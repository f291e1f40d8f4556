"""From a capture file to everything it tells."""

from pathlib import Path
from typing import Any

from experiments.captures.datagrams import Capture
from experiments.inspection.cross_check import CrossCheck
from experiments.inspection.norm_reader import CapturedMessage, NormReader
from experiments.inspection.request_excerpt import RequestExcerpt
from experiments.inspection.session_analysis import SessionAnalysis
from protocols.norm.messages import Command, Data, Info, Nack

__all__ = ["Inspection", "inspect_capture"]


class Inspection:
    """The sessions of a capture, how much of the file they are, and a window of messages around the first request."""

    def __init__(self, path: Path, port: int | None = None) -> None:
        self.path = path
        self.capture = Capture(path)
        self.reading = NormReader(self.capture, port)
        self.session = SessionAnalysis(self.reading.begin, self.reading.end)
        self.sample = CrossCheck(self.session.findings)
        self.window = RequestExcerpt()

    def run(self) -> None:
        """Go through the capture."""
        for heard in self.reading:
            kind = self.session.hear(heard)
            if heard.message is None:
                continue
            time = heard.datagram.time - self.session.begin
            if len(heard.datagram.payload) == heard.datagram.size:
                self.sample.offer(heard, self._element_bits(heard), time)
            if kind:
                self.window.hear(heard, kind, time)
        self.session.close()

    def _element_bits(self, heard: CapturedMessage) -> int:
        """m of fec_id 2, as the sender of a message, or the one it is for, was heard to use it."""
        message = heard.message
        key = None
        if isinstance(message, Data | Info | Command):
            key = message.origin.source_id, message.origin.instance_id
        elif isinstance(message, Nack):
            key = message.sender_id, message.instance_id
        sender = self.session.senders.get(key) if key else None
        return 16 if sender is None else sender.element_bits

    @property
    def violated(self) -> bool:
        """Did anything break the protocol?"""
        return bool(self.session.findings.violations)

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON; times are seconds since `start`, which is seconds since 1970."""
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
            **session.plain(),
            "scapy": self.sample.plain(),
        }


def inspect_capture(path: Path, port: int | None = None) -> Inspection:
    """Read a capture and say what is in it. UsageError and ConfigError for a file that holds no NORM."""
    inspection = Inspection(path, port)
    inspection.run()
    return inspection
