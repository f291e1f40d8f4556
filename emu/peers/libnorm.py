"""Bindings (ctypes) of the functions used of NRL's NORM library, libnorm1."""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_uint, c_uint8, c_uint16, c_uint32, c_void_p
from pathlib import Path

from protocols.errors import UnsupportedError

__all__ = ["ACK_SUCCESS", "DATA", "EVENTS", "FLUSHES", "STREAM", "NormEvent", "content_of", "load", "name_of"]

EVENTS = (
    *("INVALID", "TX_QUEUE_VACANCY", "TX_QUEUE_EMPTY", "TX_FLUSH_COMPLETED", "TX_WATERMARK_COMPLETED"),
    *("TX_CMD_SENT", "TX_OBJECT_SENT", "TX_OBJECT_PURGED", "TX_RATE_CHANGED", "LOCAL_SENDER_CLOSED"),
    *("REMOTE_SENDER_NEW", "REMOTE_SENDER_RESET", "REMOTE_SENDER_ADDRESS", "REMOTE_SENDER_ACTIVE"),
    *("REMOTE_SENDER_INACTIVE", "REMOTE_SENDER_PURGED", "RX_CMD_NEW", "RX_OBJECT_NEW", "RX_OBJECT_INFO"),
    *("RX_OBJECT_UPDATED", "RX_OBJECT_COMPLETED", "RX_OBJECT_ABORTED", "RX_ACK_REQUEST", "GRTT_UPDATED"),
    *("CC_ACTIVE", "CC_INACTIVE", "ACKING_NODE_NEW", "SEND_ERROR", "USER_TIMEOUT"),
)
"""Names of the library's event types (NormEventType), by number."""


DATA, STREAM = 1, 3
"""Object types (NORM_OBJECT_DATA, NORM_OBJECT_STREAM)."""
ACK_SUCCESS = 3
"""NORM_ACK_SUCCESS: the status of a node that has acknowledged, as NormGetNextAckingNode returns it."""
FLUSHES = {"none": 0, "passive": 1, "active": 2}
"""How a stream is flushed (NormFlushMode)."""


class NormEvent(ctypes.Structure):
    """The event structure that NormGetNextEvent fills in: 32 bytes on a 64-bit machine."""

    _fields_ = [("type", c_int), ("session", c_void_p), ("sender", c_void_p), ("object", c_void_p)]


_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "NormCreateInstance": (c_void_p, [c_bool]),
    "NormDestroyInstance": (None, [c_void_p]),
    "NormStopInstance": (None, [c_void_p]),
    "NormSetCacheDirectory": (c_bool, [c_void_p, c_char_p]),
    "NormGetNextEvent": (c_bool, [c_void_p, POINTER(NormEvent), c_bool]),
    "NormGetDescriptor": (c_int, [c_void_p]),
    "NormCreateSession": (c_void_p, [c_void_p, c_char_p, c_uint16, c_uint32]),
    "NormSetMulticastInterface": (c_bool, [c_void_p, c_char_p]),
    "NormSetTTL": (c_bool, [c_void_p, c_uint8]),
    "NormSetMulticastLoopback": (c_bool, [c_void_p, c_bool]),
    "NormSetRxPortReuse": (None, [c_void_p, c_bool, c_char_p, c_char_p, c_uint16]),
    "NormSetTxLoss": (None, [c_void_p, c_double]),
    "NormSetRxLoss": (None, [c_void_p, c_double]),
    "NormStartSender": (c_bool, [c_void_p, c_uint16, c_uint32, c_uint16, c_uint16, c_uint16, c_uint8]),
    "NormSetTxRate": (None, [c_void_p, c_double]),
    "NormGetTxRate": (c_double, [c_void_p]),
    "NormSetTxRateBounds": (None, [c_void_p, c_double, c_double]),
    "NormSetCongestionControl": (None, [c_void_p, c_bool, c_bool]),
    "NormSetTxSocketBuffer": (c_bool, [c_void_p, c_uint]),
    "NormSetTxCacheBounds": (None, [c_void_p, c_int64, c_uint32, c_uint32]),
    "NormSetAutoParity": (None, [c_void_p, c_uint8]),
    "NormSetGrttEstimate": (None, [c_void_p, c_double]),
    "NormSetGrttMax": (None, [c_void_p, c_double]),
    "NormSetBackoffFactor": (None, [c_void_p, c_double]),
    "NormSetGrttProbingMode": (None, [c_void_p, c_int]),
    "NormSetGrttProbingInterval": (None, [c_void_p, c_double, c_double]),
    "NormSetGroupSize": (None, [c_void_p, c_uint]),
    "NormSetTxRobustFactor": (None, [c_void_p, c_int]),
    "NormFileEnqueue": (c_void_p, [c_void_p, c_char_p, c_char_p, c_uint]),
    "NormDataEnqueue": (c_void_p, [c_void_p, c_char_p, c_uint32, c_char_p, c_uint]),
    "NormStartReceiver": (c_bool, [c_void_p, c_uint32]),
    "NormSetRxSocketBuffer": (c_bool, [c_void_p, c_uint]),
    "NormObjectGetType": (c_int, [c_void_p]),
    "NormObjectGetSize": (c_int64, [c_void_p]),
    "NormObjectGetInfoLength": (c_uint16, [c_void_p]),
    "NormObjectGetInfo": (c_uint16, [c_void_p, c_char_p, c_uint16]),
    "NormFileGetName": (c_bool, [c_void_p, c_char_p, c_uint]),
    "NormDataAccessData": (c_void_p, [c_void_p]),
    "NormStreamOpen": (c_void_p, [c_void_p, c_uint32, c_char_p, c_uint16]),
    "NormStreamClose": (None, [c_void_p, c_bool]),
    "NormStreamWrite": (c_uint, [c_void_p, c_char_p, c_uint]),
    "NormStreamFlush": (None, [c_void_p, c_bool, c_int]),
    "NormStreamMarkEom": (None, [c_void_p]),
    "NormStreamSetPushEnable": (None, [c_void_p, c_bool]),
    "NormStreamRead": (c_bool, [c_void_p, c_void_p, POINTER(c_uint)]),
    "NormStreamSeekMsgStart": (c_bool, [c_void_p]),
    "NormAddAckingNode": (c_bool, [c_void_p, c_uint32]),
    "NormSetWatermark": (c_bool, [c_void_p, c_void_p, c_bool]),
    "NormSetWatermarkEx": (c_bool, [c_void_p, c_void_p, c_char_p, c_uint, c_bool]),
    "NormGetNextAckingNode": (c_bool, [c_void_p, POINTER(c_uint32), POINTER(c_int)]),
    "NormGetAckEx": (c_bool, [c_void_p, c_uint32, c_char_p, POINTER(c_uint)]),
    "NormNodeGetWatermarkEx": (c_bool, [c_void_p, c_char_p, POINTER(c_uint)]),
    "NormNodeSendAckEx": (c_bool, [c_void_p, c_char_p, c_uint]),
    "NormSendCommand": (c_bool, [c_void_p, c_char_p, c_uint, c_bool]),
    "NormNodeGetCommand": (c_bool, [c_void_p, c_char_p, POINTER(c_uint)]),
    "NormSetDefaultUnicastNack": (None, [c_void_p, c_bool]),
    "NormSetSilentReceiver": (None, [c_void_p, c_bool, c_int]),
}


def load() -> ctypes.CDLL:
    """Load the library and declare its functions: handles have 64 bits, which ctypes would truncate.

    Raises UnsupportedError if it is not installed.
    """
    try:
        library = ctypes.CDLL("libnorm.so.1")
    except OSError:
        raise UnsupportedError(
            "NRL's NORM library is missing: sudo apt-get install -y --no-install-recommends libnorm1"
        ) from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def name_of(event_type: int) -> str:
    """Return the name of an event type, or its number if it is unknown."""
    return EVENTS[event_type] if 0 <= event_type < len(EVENTS) else str(event_type)


def content_of(library: ctypes.CDLL, handle: int) -> bytes:
    """Return the bytes of a completely received data or file object."""
    if library.NormObjectGetType(handle) == DATA:
        size = library.NormObjectGetSize(handle)
        return ctypes.string_at(library.NormDataAccessData(handle), size) if size else b""
    path = ctypes.create_string_buffer(4096)
    library.NormFileGetName(handle, path, 4096)
    return Path(path.value.decode()).read_bytes()
