"""A single packet of a capture, field by field."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.capture_files import CaptureFile, Frame
from experiments.captures import Capture, Datagram
from experiments.inspection.agreement import MISSING, differences, dissected
from experiments.inspection.reading import looks_like_norm
from protocols.errors import UnsupportedError, UsageError, WireError
from protocols.norm.messages import Data, Info, NormMessage
from protocols.norm.wire import NormCodec

__all__ = ["packet_lines", "packet_of"]

_WIDTH = 16
_GENERAL = 2
_LONGEST = 96


def packet_of(path: Path, number: int, port: int | None = None) -> dict[str, Any]:
    """Frame `number` of a capture, counted from 1, as plain values. UnsupportedError where scapy is missing."""
    try:
        from experiments.inspection.dissector import frame_layers
    except ImportError as error:
        raise UnsupportedError(MISSING) from error
    frame = _frame(path, number)
    datagram, bits, message, problem = _decoded(path, number, port)
    payload = None if datagram is None else datagram.payload
    layers = frame_layers(frame.data, frame.link, payload if message is not None else None, bits)
    codec = problem
    if message is not None and payload is not None:
        found = differences(message, dissected(payload, bits))
        codec = "; ".join(found) or "agrees"
    return {
        "packet": number,
        "time": frame.time,
        "length": frame.length,
        "captured": len(frame.data),
        "comment": frame.comment or None,
        "codec": codec or None,
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


def _decoded(path: Path, number: int, port: int | None) -> tuple[Datagram | None, int, NormMessage | None, str]:
    """The datagram that a frame completes, m of its sender as told before, its message, and why there is none."""
    codec, bits = NormCodec(), dict[int, int]()
    for datagram in Capture(path):
        if datagram.number > number:
            break
        data, here = datagram.payload, datagram.number == number
        if not here and not (len(data) > _WIDTH and data[0] & 15 in (1, 2) and data[13] == _GENERAL):
            continue
        wanted = datagram.port == port or looks_like_norm(data, datagram.size)
        try:
            message = codec.decode(data) if wanted else None
        except WireError as problem:
            if here:
                return datagram, 16, None, str(problem)
            continue
        if isinstance(message, Data | Info) and message.fti is not None and message.fec_id == _GENERAL:
            bits[message.origin.source_id] = message.fti.m
        if here:
            who = getattr(getattr(message, "origin", None), "source_id", getattr(message, "sender_id", 0))
            return datagram, bits.get(who, 16), message, "" if message is not None else "does not look like NORM"
    return None, 16, None, "no UDP datagram ends here"


def packet_lines(packet: dict[str, Any]) -> Iterator[str]:
    """The packet for people: its fields, and its bytes in hexadecimal."""
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
