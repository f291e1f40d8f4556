"""History of an object at a receiver from one capture file of NORM traffic, with what such a file does not contain."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from experiments.captures.datagrams import Capture
from experiments.captures.trace_file import TracedPacket
from experiments.explain.history import History
from experiments.explain.requests import parts_asked
from experiments.inspection.norm_reader import CapturedMessage, NormReader
from experiments.inspection.request_excerpt import CAPTURE, node_name
from experiments.inspection.sequence import SequenceTracker
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError
from protocols.norm.messages import Ack, Command, Data, Info, Nack, Squelch
from protocols.norm.quantise import rtt_seconds
from topologies.names import first_names

__all__ = ["CaptureHistory", "read_capture_history"]

_UNKNOWN = (
    "whether a packet reached the receiver, and where it was lost: a capture at one point shows only what passes it; that the "
    "receiver missed something is known from its requests",
    "when the receiver noticed a loss, and for how long it waited before it requested",
    "when the receiver was complete: known is only that it requests nothing more",
)


@dataclass(slots=True)
class CaptureHistory(History):
    """The record of a capture file; times are seconds since its first NORM message."""

    file: str = ""
    gaps: list[tuple[float, int, int]] = field(default_factory=list)
    """Where messages of the sender are missing in the capture: time, packet that shows it, and how many."""
    has_feedback: bool = False
    """Whether any message of the receiver was captured."""


def read_capture_history(path: Path, object_id: int | None, receiver: str | None, sender: str | None) -> CaptureHistory:
    """Read a capture file. UsageError for a sender or receiver that is not in it, ConfigError for no capture of NORM.

    None stands for the only sender, the only object, and the only receiver that sent anything.
    """
    reading = NormReader(Capture(path))
    captured = [item for item in reading if item.message is not None]
    name = _sender(captured, sender)
    history = CaptureHistory(
        kind="capture",
        protocol="norm",
        sender=name,
        receiver="",
        object_id=_object(captured, name, object_id),
        packets={},
        decisions=[],
        end=reading.end - reading.begin,
        unknown=list(_UNKNOWN),
        file=path.name,
    )
    _fill(history, captured, reading.begin)
    history.receiver = _receiver(captured, receiver)
    history.has_feedback = any(packet.node == history.receiver for packet in history.packets.values())
    if not history.has_feedback:
        history.unknown.append(f"anything of {history.receiver}: no message of it was captured")
    return history


def _sender(captured: list[CapturedMessage], wanted: str | None) -> str:
    found = dict.fromkeys(
        node_name(item.message.origin.source_id) for item in captured if isinstance(item.message, Data | Info)
    )
    if wanted is None and len(found) == 1:
        return next(iter(found))
    if wanted is None or wanted not in found:
        given = "is needed" if wanted is None else f"value {wanted!r} is not allowed"
        raise UsageError(f"--sender: {given}; the capture has content of {', '.join(list(found)[:8]) or 'nobody'}")
    return wanted


def _object(captured: list[CapturedMessage], sender: str, wanted: int | None) -> int:
    contents = [item.message for item in captured if isinstance(item.message, Data | Info)]
    known = sorted({message.object_id for message in contents if node_name(message.origin.source_id) == sender})
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted is None or wanted not in known:
        given = "is needed" if wanted is None else f"value {wanted} is not allowed"
        some = first_names(known)
        raise UsageError(f"--object: {given}; the capture has content of the objects {some or 'none'}")
    return wanted


def _receiver(captured: list[CapturedMessage], wanted: str | None) -> str:
    """Return the name of a receiver that is given by its node id or by its address; None: the only one."""
    names: dict[str, str] = {}
    for item in captured:
        if isinstance(item.message, Nack | Ack):
            name = node_name(item.message.source_id)
            names[item.datagram.source] = names[str(item.message.source_id)] = names[name] = name
    if wanted is None:
        found = sorted(set(names.values()))
        if len(found) != 1:
            raise UsageError(f"--receiver: is needed; the capture has feedback of {', '.join(found[:8]) or 'nobody'}")
        return found[0]
    if wanted in names:
        return names[wanted]
    if wanted.replace(".", "").isdecimal():
        return wanted
    raise UsageError(
        f"--receiver: value {wanted!r} is not allowed; in a capture a node id or an address: {one_of(wanted, names)}"
    )


def _fill(history: CaptureHistory, captured: list[CapturedMessage], begin: float) -> None:
    """Add the messages of the sender, and the feedback for it, numbered in order."""
    tracker = SequenceTracker()
    requests, frames, squelches = {}, {}, []
    for number, (item, packet) in enumerate(_packets(history, captured, begin), 1):
        packet.number = number
        message = item.message
        history.packets[number] = packet
        frames[number] = {history.file: item.datagram.number}
        if message is not None and (asked := parts_asked(message.asks, history.object_id)):
            requests[number] = asked
        if isinstance(message, Squelch) and history.object_id in message.invalid:
            squelches.append(number)
        if isinstance(message, Data | Info | Command):
            missing, _ = tracker.add(message.sequence)
            if missing:
                history.gaps.append((packet.time, number, missing))
            origin = message.origin
            history.longest_backoff = max(history.longest_backoff, origin.backoff * rtt_seconds(origin.grtt))
    history.requests, history.frames, history.squelches = requests, frames, frozenset(squelches)


def _packets(
    history: CaptureHistory, captured: list[CapturedMessage], begin: float
) -> Iterator[tuple[CapturedMessage, TracedPacket]]:
    for item in captured:
        message, datagram = item.message, item.datagram
        assert message is not None
        if isinstance(message, Data | Info | Command):
            node, about = node_name(message.origin.source_id), node_name(message.origin.source_id)
        elif isinstance(message, Nack | Ack):
            node, about = node_name(message.source_id), node_name(message.sender_id)
        else:
            continue
        if about == history.sender:
            time = datagram.time - begin
            to = f"{datagram.target}:{datagram.port}"
            yield item, TracedPacket(0, time, node, message.kind, message.brief, message.repair, to, {CAPTURE: time})
