"""Lengths of NORM messages on the wire, without encoding them (RFC 5740 4).

The simulator and the pacing of senders need the length of every message, also where content has a size but no bytes. A test
holds each length to that of the encoded message.
"""

from collections.abc import Callable
from typing import Any, Final

from protocols.norm.messages import (
    Ack,
    AckReq,
    Application,
    Data,
    DataRun,
    Eot,
    Extension,
    Flush,
    Fti,
    Info,
    Nack,
    NormMessage,
    Probe,
    RepairAdv,
    Report,
    Squelch,
)
from protocols.norm.requests import Request

__all__ = ["AUTH_SIZE", "CC_SIZE", "FIRST_FIXED_HET", "ID_SIZES", "ITEM_HEADER", "REQUEST_HEADER", "header_size", "size_of"]

CONTENT: Final = 16
COMMAND: Final = 16
PROBE: Final = 24
FEEDBACK: Final = 24
REPORT: Final = 8
"""Bytes of the header of NORM_DATA and NORM_INFO, of a NORM_CMD, of CMD(CC), of NACK and ACK, and of NORM_REPORT."""
ID_SIZES: Final = {0: 4, 2: 4, 5: 4, 129: 8}
"""Bytes of a payload id, by fec_id (RFC 5445, RFC 5510); a fec_id that is not listed has 4."""
FTI_SIZES: Final = {5: 12}
"""Bytes of EXT_FTI, by fec_id; all others have 16."""
REQUEST_HEADER: Final = 4
ITEM_HEADER: Final = 4
"""Bytes of a repair request before its items, and of an item before its payload id."""
CC_SIZE: Final = 12
RATE_SIZE: Final = 4
"""Bytes of EXT_CC and EXT_RATE."""
AUTH_SIZE: Final = 24
"""Bytes of EXT_AUTH, which every message of a session with keys carries besides those of `size_of`."""
FIRST_FIXED_HET: Final = 128
"""Extensions of this type and higher have a fixed length: one byte of header, others two."""


def size_of(message: NormMessage | DataRun) -> int:
    """Return the bytes of UDP payload of a message, `len(encode(message))`, or of a run, also for content without bytes."""
    return _SIZES[message.kind](message)


def header_size(fti: Fti) -> int:
    """Return the bytes of the header of NORM_DATA without other extensions than EXT_FTI."""
    return CONTENT + ID_SIZES.get(fti.fec_id, 4) + FTI_SIZES.get(fti.fec_id, 16)


def _extensions(extensions: tuple[Extension, ...]) -> int:
    if not extensions:
        return 0
    return sum(len(extension.content) + (1 if extension.het >= FIRST_FIXED_HET else 2) for extension in extensions)


def _requests(requests: tuple[Request, ...]) -> int:
    size = REQUEST_HEADER * len(requests)
    for request in requests:
        for item in request.items:
            size += ITEM_HEADER + ID_SIZES.get(item.fec_id, 4)
    return size


def _data(message: Data) -> int:
    size, fti = CONTENT + message.length + ID_SIZES.get(message.fec_id, 4), message.fti
    if fti is not None:
        size += FTI_SIZES.get(fti.fec_id, 16)
    return size + _extensions(message.extensions) if message.extensions else size


def _run(run: DataRun) -> int:
    header = header_size(run.fti) + _extensions(run.extensions)
    return header * len(run.symbols) + sum(map(len, run.symbols))


def _info(message: Info) -> int:
    fti = 0 if message.fti is None else FTI_SIZES.get(message.fti.fec_id, 16)
    return CONTENT + len(message.payload) + fti + _extensions(message.extensions)


def _flush(message: Flush) -> int:
    return COMMAND + ID_SIZES.get(message.fec_id, 4) + _extensions(message.extensions) + 4 * len(message.acking)


def _eot(message: Eot) -> int:
    del message
    return COMMAND


def _squelch(message: Squelch) -> int:
    return COMMAND + ID_SIZES.get(message.fec_id, 4) + _extensions(message.extensions) + 2 * len(message.invalid)


def _probe(message: Probe) -> int:
    rate = 0 if message.rate is None else RATE_SIZE
    return PROBE + rate + _extensions(message.extensions) + 8 * len(message.nodes)


def _repair_adv(message: RepairAdv) -> int:
    return COMMAND + _feedback_extensions(message) + _requests(message.requests)


def _ack_req(message: AckReq) -> int:
    return COMMAND + _extensions(message.extensions) + 4 * len(message.nodes)


def _application(message: Application) -> int:
    return COMMAND + _extensions(message.extensions) + len(message.content)


def _nack(message: Nack) -> int:
    return FEEDBACK + _feedback_extensions(message) + _requests(message.requests)


def _ack(message: Ack) -> int:
    payload, flushed = len(message.payload), message.flushed
    if flushed is not None:
        payload = ITEM_HEADER + ID_SIZES.get(flushed.fec_id, 4)
    return FEEDBACK + _feedback_extensions(message) + payload


def _report(message: Report) -> int:
    return REPORT + len(message.payload)


def _feedback_extensions(message: Nack | Ack | RepairAdv) -> int:
    return (0 if message.cc is None else CC_SIZE) + _extensions(message.extensions)


# By `kind`, which subclasses of the message types have in common with them.
_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    Data.kind: _data,
    DataRun.kind: _run,
    Info.kind: _info,
    Flush.kind: _flush,
    Eot.kind: _eot,
    Squelch.kind: _squelch,
    Probe.kind: _probe,
    RepairAdv.kind: _repair_adv,
    AckReq.kind: _ack_req,
    Application.kind: _application,
    Nack.kind: _nack,
    Ack.kind: _ack,
    Report.kind: _report,
}
