"""Socket options of a session of NRL's NORM library, as options of the peer's command line."""

import argparse
import ctypes
from ctypes import c_bool, c_char_p, c_uint8, c_uint16, c_void_p
from typing import Any

from protocols.errors import UsageError

__all__ = ["add_options", "apply_options"]

_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "NormSetTOS": (c_bool, [c_void_p, c_uint8]),
    "NormSetFragmentation": (c_bool, [c_void_p, c_bool]),
    "NormSetSSM": (c_bool, [c_void_p, c_char_p]),
    "NormSetTxPort": (c_bool, [c_void_p, c_uint16, c_bool, c_char_p]),
}


def add_options(add: Any) -> None:
    """Add the options to a parser, by its `add_argument`."""
    add("--tos", type=int, default=0)
    add("--fragment", action="store_true", help="let routers fragment packets")
    add("--ssm", metavar="ADDR", help="receive multicasts of this address only")
    add("--tx-port", type=int, default=0)


def apply_options(library: ctypes.CDLL, session: int, options: argparse.Namespace) -> None:
    """Apply the options to a session before it starts. Raises UsageError for what the library refuses."""
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    done = [not options.tos or library.NormSetTOS(session, options.tos)]
    done.append(not options.fragment or library.NormSetFragmentation(session, True))
    done.append(not options.ssm or library.NormSetSSM(session, options.ssm.encode()))
    done.append(not options.tx_port or library.NormSetTxPort(session, options.tx_port, False, None))
    if not all(done):
        raise UsageError("libnorm refuses --tos, --fragment, --ssm or --tx-port")
