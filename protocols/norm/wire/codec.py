"""Encode and decode NORM messages, compatible with NRL NORM 1.5.9 (RFC 5740 4).

`NormCodec` encodes and decodes. `sizes` has the lengths. The layouts have modules of their own: `content` DATA and INFO,
`commands` the flavours of CMD, `feedback` NACK, ACK and REPORT, `schemes` what depends on the fec_id, `extensions` and
`requests` the parts of several messages.

Where NRL NORM leaves the RFC, this codec
* reads and writes the number of parity symbols in EXT_FTI, where RFC 5510 has max_n;
* keeps the low half of NRL's 32-bit loss, in the reserved field of EXT_CC, as `CcFeedback.loss_low`;
* keeps cc_sequence and loss of EXT_CC in REPAIR_ADV, which NRL does not initialise: machines must not use them;
* keeps NRL's reserved byte of CMD(CC) (SYN) and flag 0x40 of DATA as they are, and unknown flags with them;
* keeps header extensions it does not know, among them NRL's APP_ACK (65) with its uninitialised padding, as bytes;
* takes fec_id 2 for 16-bit symbol elements until it has seen an FTI of the sender, as NRL does, and then for those of the
  object, where NRL keeps one size for each sender;
* refuses a version other than 1, an extension of length 0 and a list that ends inside an entry; NRL accepts them.
"""

from collections.abc import Callable
from struct import error as StructError
from typing import Any

from mypy_extensions import mypyc_attr

from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.norm.messages import Data, DataRun, Info, NormMessage
from protocols.norm.wire.commands import COMMANDS, TYPE_CMD
from protocols.norm.wire.content import TYPE_DATA, TYPE_INFO, ContentWire
from protocols.norm.wire.feedback import FEEDBACK
from protocols.norm.wire.frame import VERSION, Layout
from protocols.norm.wire.schemes import Schemes
from protocols.run import Run

__all__ = ["NormCodec"]

_FLAVOURS = {layout.flavour: layout for layout in COMMANDS.values()}
# By `kind`, which subclasses of the message types have in common with them.
_LAYOUTS: dict[str, Layout[Any]] = {message.kind: layout for message, layout in FEEDBACK.values()}
_LAYOUTS.update({message.kind: layout for message, layout in COMMANDS.items()})


@mypyc_attr(allow_interpreted_subclasses=True)
class NormCodec:
    """The codec of one node. It caches headers, and keeps m of objects with fec_id 2."""

    def __init__(self) -> None:
        self._schemes = Schemes()
        self._content = ContentWire(self._schemes)
        self._writers: dict[str, Callable[[Any], bytes]] = {
            Data.kind: self._content.write_data,
            Info.kind: self._content.write_info,
        }
        self._readers: dict[int, Callable[[bytes, int], NormMessage]] = {
            VERSION << 4 | TYPE_INFO: self._read_info,
            VERSION << 4 | TYPE_DATA: self._read_data,
            VERSION << 4 | TYPE_CMD: self._read_command,
            **{VERSION << 4 | kind: self._read_feedback for kind in FEEDBACK},
        }

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. Raises UsageError for a message that does not fit the wire."""
        try:
            write = self._writers.get(message.kind)
            if write is not None:
                return write(message)
            return _LAYOUTS[message.kind].write(message, self._schemes)
        except StructError as error:
            raise UsageError(f"{message} does not fit the wire: {error}") from error

    def decode(self, data: bytes) -> NormMessage:
        """Return the message in a UDP payload. Raises WireError for anything else."""
        if len(data) < 8:
            raise WireError(f"{len(data)} bytes; a NORM header has at least 8")
        read = self._readers.get(data[0])
        if read is None:
            raise WireError(f"version {data[0] >> 4}, type {data[0] & 15}; known are version 1, types 1 to 6")
        end = data[1] << 2
        if end > len(data):
            raise WireError(f"header of {end} bytes in a message of {len(data)}")
        return read(data, end)

    def encode_run(self, run: Run) -> list[bytes]:
        """Return the UDP payload of each message of a run. Raises UsageError for one that does not fit the wire."""
        assert isinstance(run, DataRun)
        try:
            return self._content.write_run(run)
        except StructError as error:
            raise UsageError(f"{run} does not fit the wire: {error}") from error

    def decode_run(self, data: bytes, start: int, segment: int) -> DataRun | None:
        """Return the run of NORM_DATA at offset `start` of a batch of messages of `segment` bytes each; None without one."""
        return self._content.read_run(data, start, segment)

    def _read_data(self, data: bytes, end: int) -> NormMessage:
        _check_header(end, 20)
        return self._content.read_data(data, end)

    def _read_info(self, data: bytes, end: int) -> NormMessage:
        _check_header(end, 16)
        return self._content.read_info(data, end)

    def _read_command(self, data: bytes, end: int) -> NormMessage:
        _check_header(end, 16)
        layout = _FLAVOURS.get(data[12])
        if layout is None:
            raise WireError(f"unknown flavour {data[12]} of CMD; known are 1 to 7")
        _check_header(end, layout.base)
        origin, sequence = self._content.origin(data), int.from_bytes(data[2:4])
        message: NormMessage = layout.read(data, end, origin, sequence, self._schemes)
        return message

    def _read_feedback(self, data: bytes, end: int) -> NormMessage:
        layout = FEEDBACK[data[0] & 15][1]
        _check_header(end, layout.base)
        source_id, sequence = int.from_bytes(data[4:8]), int.from_bytes(data[2:4])
        message: NormMessage = layout.read(data, end, source_id, sequence, self._schemes)
        return message


def _check_header(end: int, base: int) -> None:
    if end < base:
        raise WireError(f"header of {end} bytes; this kind of message has at least {base}")
