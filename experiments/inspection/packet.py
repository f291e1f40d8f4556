"""Show a single packet of a capture field by field."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.captures.capture_file import CaptureFile, Frame
from experiments.captures.datagrams import Capture
from experiments.inspection.dissector_check import MISSING, differences, dissected
from experiments.inspection.norm_reader import looks_like_norm
from experiments.inspection.offload_batches import messages_in
from protocols.errors import UnsupportedError, UsageError, WireError
from protocols.norm.messages import Data, Info, NormMessage
from protocols.norm.wire.codec import NormCodec

__all__ = ["packet_lines", "packet_of"]

_WIDTH = 16
_GENERAL = 2
_LONGEST = 96


def packet_of(path: Path, number: int, port: int | None = None) -> dict[str, Any]:
    """Return frame `number` of a capture, counted from 1, as plain values; UnsupportedError without scapy."""
    try:
        from experiments.inspection.dissector import frame_layers
    except ImportError as error:
        raise UnsupportedError(MISSING) from error
    frame = _frame(path, number)
    parts, problem = _messages(path, number, port)
    layers = frame_layers(frame.data, frame.link, [(part.data, part.element_bits) for part in parts])
    found = [fault for part in parts for fault in differences(part.message, dissected(part.data, part.element_bits))]
    codec = problem or "; ".join(found) or "agrees"
    return {
        "packet": number,
        "time": frame.time,
        "length": frame.length,
        "captured": len(frame.data),
        "comment": frame.comment or None,
        "codec": codec,
        "layers": layers,
        "hex": frame.data.hex(),
    }


def _frame(path: Path, number: int) -> Frame:
    count = 0
    for frame in CaptureFile(path).frames():
        count = frame.number
        if count == number:
            return frame
    raise UsageError(f"--packet: value {number!r} is not allowed; {path} has packets 1 to {count}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A message of a datagram, and m of FEC id 2 of its sender as far as known."""

    data: bytes
    message: NormMessage
    element_bits: int


def _messages(path: Path, number: int, port: int | None) -> tuple[list[_Part], str]:
    """Return the messages of the datagram that a frame completes, and the reason if there are none."""
    codec, bits = NormCodec(), dict[int, int]()
    for datagram in Capture(path):
        if datagram.number == number:
            if datagram.port != port and not looks_like_norm(datagram.payload, datagram.size):
                return [], "does not look like NORM"
            whole = len(datagram.payload) == datagram.size
            try:
                return [
                    _part(codec, part, bits) for part in (messages_in(datagram.payload) if whole else [datagram.payload])
                ], ""
            except WireError as problem:
                return [], str(problem)
        if datagram.number > number:
            break
        with suppress(WireError):
            # Earlier packets matter only for m of FEC id 2.
            if len(datagram.payload) > _WIDTH and datagram.payload[13] == _GENERAL and datagram.payload[0] & 15 in (1, 2):
                _part(codec, messages_in(datagram.payload)[0], bits)
    return [], "no UDP datagram ends here"


def _part(codec: NormCodec, data: bytes, bits: dict[int, int]) -> _Part:
    message = codec.decode(data)
    if isinstance(message, Data | Info) and message.fti is not None and message.fec_id == _GENERAL:
        bits[message.origin.source_id] = message.fti.m
    who = getattr(getattr(message, "origin", None), "source_id", getattr(message, "sender_id", 0))
    return _Part(data, message, bits.get(who, 16))


def packet_lines(packet: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the packet: its fields, and a hex dump."""
    comment = f", {packet['comment']}" if packet["comment"] else ""
    length = f"{packet['length']} bytes, {packet['captured']} captured"
    yield f"packet {packet['packet']}: {length}, at {packet['time']:.6f} s{comment}"
    yield f"codec: {packet['codec']}"
    for layer in packet["layers"]:
        yield from _layer_lines(layer, "")
    data = bytes.fromhex(packet["hex"])
    for at in range(0, len(data), _WIDTH):
        part = data[at : at + _WIDTH]
        text = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        yield f"  {at:04x}  {part.hex(' '):47}  {text}"


def _layer_lines(layer: dict[str, Any], indent: str) -> Iterator[str]:
    yield f"{indent}{layer['layer']}"
    for field in layer["fields"]:
        if "parts" in field:
            yield f"{indent}  {field['name']}:"
            for part in field["parts"]:
                yield from _layer_lines(part, indent + "    ")
        else:
            shown = field["shown"]
            yield f"{indent}  {field['name']:22} {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'}"
