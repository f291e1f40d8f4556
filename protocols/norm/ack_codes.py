"""Numbers in ACKs and in the requests for them (RFC 5740 4.3.2, 5.5.3)."""

from typing import Final

__all__ = ["ACK_CC", "ACK_FLUSH", "ANY_NODE"]

ACK_CC: Final = 1
ACK_FLUSH: Final = 2
"""Values of `Ack.ack_type`; from 16 on they are the application's."""
ANY_NODE: Final = 0xFFFFFFFF
"""NORM_NODE_ANY (RFC 5740 2): in the list of a FLUSH it asks every receiver for an ACK."""
