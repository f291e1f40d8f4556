"""The flavours of NORM_CMD on the wire (RFC 5740 4.2.3)."""

from struct import Struct
from typing import Any, TypeVar

from protocols.errors import WireError
from protocols.machine import Message
from protocols.norm.messages import (
    AckReq,
    Application,
    CcNode,
    Command,
    Eot,
    Flush,
    Origin,
    Probe,
    RepairAdv,
    Squelch,
)
from protocols.norm.wire.extensions import (
    pack_cc,
    pack_extensions,
    pack_rate,
    unpack_cc,
    unpack_extensions,
    unpack_rate,
)
from protocols.norm.wire.frame import Layout, entries, frame, pack_origin
from protocols.norm.wire.requests import pack_requests, unpack_requests
from protocols.norm.wire.schemes import Schemes

__all__ = ["COMMANDS", "TYPE_CMD"]

TYPE_CMD = 3

C = TypeVar("C", bound=Command)

_SHORT = Struct(">BBBB")
_NAMED = Struct(">BBH")
_PROBE = Struct(">BBHII")
_NODE = Struct(">IBBH")


class _CommandLayout(Layout[C]):
    flavour: int
    base = 16

    def _frame(self, message: C, rest: bytes, extensions: bytes = b"", payload: bytes = b"") -> bytes:
        """`rest` begins with the flavour, at byte 12."""
        return frame(TYPE_CMD, message.sequence, pack_origin(message.origin) + rest, extensions, payload)


class _NamedLayout(_CommandLayout[C]):
    """A command that names an object and a symbol and carries a list of numbers."""

    entry: str
    """Struct code of one number of the list."""

    def _write(self, message: Any, numbers: tuple[int, ...], schemes: Schemes) -> bytes:
        origin: Origin = message.origin
        scheme = schemes.write(message.fec_id, origin.source_id, origin.instance_id, message.object_id)
        symbol = scheme.pack_id(message.block, message.symbol, message.block_length)
        rest = _NAMED.pack(self.flavour, message.fec_id, message.object_id) + symbol
        listed = Struct(f">{len(numbers)}{self.entry}").pack(*numbers)
        return self._frame(message, rest, pack_extensions(message.extensions), listed)

    def _read(self, data: bytes, end: int, origin: Origin, schemes: Schemes) -> tuple[Any, ...]:
        _flavour, fec_id, object_id = _NAMED.unpack_from(data, 12)
        scheme = schemes.read(fec_id, origin.source_id, origin.instance_id, object_id)
        base = self.base + scheme.id_size
        if end < base:
            raise WireError(f"header of {end} bytes; a command that names a symbol of fec_id {fec_id} has {base}")
        count = len(entries(data, end, Struct(">" + self.entry).size))
        numbers = Struct(f">{count}{self.entry}").unpack_from(data, end)
        return fec_id, object_id, *scheme.unpack_id(data, 16), numbers, unpack_extensions(data, base, end)


class _Flush(_NamedLayout[Flush]):
    flavour = 1
    entry = "I"

    def write(self, message: Flush, schemes: Schemes) -> bytes:
        return self._write(message, message.acking, schemes)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Flush:
        return Flush(who, sequence, *self._read(data, end, who, schemes))


class _Eot(_CommandLayout[Eot]):
    flavour = 2

    def write(self, message: Eot, schemes: Schemes) -> bytes:
        return self._frame(message, _SHORT.pack(self.flavour, 0, 0, 0))

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Eot:
        unpack_extensions(data, 16, end)
        return Eot(who, sequence)


class _Squelch(_NamedLayout[Squelch]):
    flavour = 3
    entry = "H"

    def write(self, message: Squelch, schemes: Schemes) -> bytes:
        return self._write(message, message.invalid, schemes)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Squelch:
        return Squelch(who, sequence, *self._read(data, end, who, schemes))


class _Probe(_CommandLayout[Probe]):
    """CMD(CC). The reserved byte is kept: NRL NORM uses it (its SYN)."""

    flavour = 4
    base = 24

    def write(self, message: Probe, schemes: Schemes) -> bytes:
        rest = _PROBE.pack(self.flavour, message.reserved, message.cc_sequence, message.send_sec, message.send_usec)
        nodes = b"".join([_NODE.pack(node.node_id, node.flags, node.rtt, node.rate) for node in message.nodes])
        return self._frame(message, rest, pack_rate(message.rate) + pack_extensions(message.extensions), nodes)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Probe:
        _flavour, reserved, cc_sequence, sec, usec = _PROBE.unpack_from(data, 12)
        rate, others = unpack_rate(unpack_extensions(data, 24, end))
        nodes = tuple(CcNode(*_NODE.unpack_from(data, at)) for at in entries(data, end, 8))
        return Probe(who, sequence, cc_sequence, sec, usec, rate, nodes, reserved, others)


class _RepairAdv(_CommandLayout[RepairAdv]):
    flavour = 5

    def write(self, message: RepairAdv, schemes: Schemes) -> bytes:
        sender = message.origin.source_id, message.origin.instance_id
        requests = pack_requests(message.requests, schemes, sender)
        extensions = pack_cc(message.cc) + pack_extensions(message.extensions)
        return self._frame(message, _SHORT.pack(self.flavour, message.flags, 0, 0), extensions, requests)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> RepairAdv:
        cc, others = unpack_cc(unpack_extensions(data, 16, end))
        requests = unpack_requests(data, end, schemes, (who.source_id, who.instance_id))
        return RepairAdv(who, sequence, data[13], requests, cc, others)


class _AckReq(_CommandLayout[AckReq]):
    flavour = 6

    def write(self, message: AckReq, schemes: Schemes) -> bytes:
        rest = _SHORT.pack(self.flavour, 0, message.ack_type, message.ack_id)
        nodes = Struct(f">{len(message.nodes)}I").pack(*message.nodes)
        return self._frame(message, rest, pack_extensions(message.extensions), nodes)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> AckReq:
        nodes = Struct(f">{len(entries(data, end, 4))}I").unpack_from(data, end)
        return AckReq(who, sequence, data[14], data[15], nodes, unpack_extensions(data, 16, end))


class _Application(_CommandLayout[Application]):
    flavour = 7

    def write(self, message: Application, schemes: Schemes) -> bytes:
        rest = _SHORT.pack(self.flavour, 0, 0, 0)
        return self._frame(message, rest, pack_extensions(message.extensions), message.content)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Application:
        return Application(who, sequence, data[end:], unpack_extensions(data, 16, end))


COMMANDS: dict[type[Message], _CommandLayout[Any]] = {
    Flush: _Flush(),
    Eot: _Eot(),
    Squelch: _Squelch(),
    Probe: _Probe(),
    RepairAdv: _RepairAdv(),
    AckReq: _AckReq(),
    Application: _Application(),
}
"""Every flavour of NORM_CMD; the number on the wire is `flavour`."""
