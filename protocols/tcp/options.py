"""The options of TCP connections, which a scenario sets, and the limits of TCP that all worlds share."""

from dataclasses import dataclass
from typing import Final

__all__ = ["KEEP_IDLE", "KEEP_INTERVAL", "KEEP_PROBES", "SILENCE", "SYN_RETRIES", "TcpOptions"]

KEEP_IDLE: Final = 15.0
"""Seconds without a segment after which an idle connection is probed."""
KEEP_INTERVAL: Final = 5.0
"""Seconds between two keep-alive probes."""
KEEP_PROBES: Final = 3
"""Probes without an answer after which a connection is closed with "timeout"."""
SILENCE: Final = 30.0
"""Seconds for which data may remain unacknowledged before a connection is closed with "timeout" (RFC 9293, section 3.8.3)."""
SYN_RETRIES: Final = 4
"""How often a SYN is repeated before `connect` ends with "timeout", after 31 seconds."""


@dataclass(frozen=True)
class TcpOptions:
    """Options of all connections of a run.

    `control` is a name of `protocols.tcp.congestion.CONTROLS`, `mss` the bytes of payload of a full segment, `buffer` the bytes
    that either end keeps for each direction, `nagle` whether a small segment waits while another one is unacknowledged.
    """

    control: str = "cubic"
    mss: int = 1448
    buffer: int = 256_000
    nagle: bool = True

    @property
    def kernel_control(self) -> str:
        """Name of the congestion control in the kernel, which has one Reno and one CUBIC."""
        return self.control.removesuffix("-linux")
