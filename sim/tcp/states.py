"""The states of one end of a connection, in the order in which it comes to them."""

from typing import Final

__all__ = ["ACCEPTING", "CONNECTING", "GONE", "LEAVING", "OPEN"]

CONNECTING: Final = 0
"""A SYN was sent."""
ACCEPTING: Final = 1
"""A SYN was received and answered."""
OPEN: Final = 2
LEAVING: Final = 3
"""The machine hung up, or `closed` was called: what was sent, and the FIN, are still to be acknowledged."""
GONE: Final = 4
