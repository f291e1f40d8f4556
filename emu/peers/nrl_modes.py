"""Modes of NRL's NORM library as options of the peer's command line, and actions on objects while it sends."""

import argparse
import ctypes
import time
from ctypes import c_bool, c_int, c_int64, c_uint16, c_void_p
from typing import Any

from protocols.errors import UsageError

__all__ = ["Actions", "apply_receiver_modes", "apply_sender_modes", "receiver_options", "sender_options"]

SYNC = {"current": 0, "stream": 1, "all": 2}
NACKING = {"none": 0, "info": 1, "normal": 2}
BOUNDARIES = {"block": 0, "object": 1}
"""NormSyncPolicy, NormNackingMode, NormRepairBoundary."""
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "NormLimitObjectInfo": (None, [c_void_p, c_bool]),
    "NormPresetObjectInfo": (c_bool, [c_void_p, c_int64, c_uint16, c_uint16, c_uint16]),
    "NormSetDefaultSyncPolicy": (None, [c_void_p, c_int]),
    "NormSetDefaultNackingMode": (None, [c_void_p, c_int]),
    "NormSetDefaultRepairBoundary": (None, [c_void_p, c_int]),
    "NormObjectCancel": (None, [c_void_p]),
    "NormRequeueObject": (c_bool, [c_void_p, c_void_p]),
}


def _declare(library: ctypes.CDLL) -> None:
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def sender_options(add: Any) -> None:
    """Add the options of a sender to a parser, by its `add_argument`."""
    add("--fti", choices=("always", "info", "preset"), default="always", help="where objects are described")
    add("--act", nargs="*", default=[], metavar="VERB:OBJECT:SECONDS", help="cancel or requeue an object at a time")
    add("--stay", type=float, default=0.0, help="seconds for which the sender runs at least")


def receiver_options(add: Any) -> None:
    """Add the options of a receiver to a parser, by its `add_argument`."""
    add("--sync", choices=SYNC, default="current")
    add("--nacking", choices=NACKING, default="normal")
    add("--boundary", choices=BOUNDARIES, default="block")
    add("--preset", type=int, nargs=4, metavar="N", help="size, segment, block and parity of objects that nothing describes")


def apply_sender_modes(library: ctypes.CDLL, session: int, options: argparse.Namespace) -> None:
    """Apply the options to a session before its sender starts."""
    _declare(library)
    if options.fti == "info":
        library.NormLimitObjectInfo(session, True)
    if options.fti == "preset":
        _preset(library, session, [options.sizes[0], options.segment, options.block, options.parity])


def apply_receiver_modes(library: ctypes.CDLL, session: int, options: argparse.Namespace) -> None:
    """Apply the options to a session before its receiver starts."""
    _declare(library)
    library.NormSetDefaultSyncPolicy(session, SYNC[options.sync])
    library.NormSetDefaultNackingMode(session, NACKING[options.nacking])
    library.NormSetDefaultRepairBoundary(session, BOUNDARIES[options.boundary])
    if options.preset:
        _preset(library, session, options.preset)


def _preset(library: ctypes.CDLL, session: int, sizes: list[int]) -> None:
    if not library.NormPresetObjectInfo(session, *sizes):
        raise UsageError(f"libnorm refuses the preset {sizes}")


class Actions:
    """Cancels and repetitions of a sender's objects at given times, each "VERB:OBJECT:SECONDS"."""

    def __init__(self, library: ctypes.CDLL, session: int, options: argparse.Namespace) -> None:
        self._library, self._session = library, session
        self._stay = time.monotonic() + options.stay
        rows = [act.split(":") for act in options.act]
        self._due = sorted((time.monotonic() + float(when), verb, int(number)) for verb, number, when in rows)

    @property
    def are_over(self) -> bool:
        """Whether all of them were performed, and the sender has run for its least time."""
        return not self._due and time.monotonic() >= self._stay

    def perform(self, handles: dict[int, int]) -> bool:
        """Do what is due with the objects by number; return whether anything was."""
        is_due = bool(self._due) and self._due[0][0] <= time.monotonic()
        if is_due:
            _, verb, number = self._due.pop(0)
            if verb == "cancel":
                self._library.NormObjectCancel(handles[number])
            elif not self._library.NormRequeueObject(self._session, handles[number]):
                raise UsageError(f"libnorm can't send object {number} again")
        return is_due
