"""Static multicast routing: fill the kernel's multicast forwarding cache by a raw IGMP socket, without a routing daemon.

The socket options are those of linux/mroute.h (MRT_INIT, MRT_ADD_VIF, MRT_ADD_MFC).
"""

import socket
import struct
from collections.abc import Sequence

from emu.namespaces import in_network_namespace
from protocols.errors import UnsupportedError

__all__ = ["MulticastRouter"]

_INIT, _ADD_VIF, _ADD_MFC = 200, 202, 204
_USE_INDEX = 8
_MAX_VIFS = 32


class MulticastRouter:
    """Multicast routes in the network namespace of process `pid`, over `devices`; they last as long as this object.

    `name` is the router's name in errors. Raises UnsupportedError if the kernel can't route multicast.
    """

    def __init__(self, name: str, pid: int, devices: Sequence[str]) -> None:
        # The kernel sends the copies of a packet from the highest number to the lowest, the simulator in the order of links.
        self._vifs = {device: vif for vif, device in enumerate(reversed(devices))}
        with in_network_namespace(pid):
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
            try:
                self._set(_INIT, struct.pack("i", 1))
            except OSError as error:
                raise UnsupportedError(
                    f"node {name}: this kernel can't route multicast ({error.strerror}); use one with CONFIG_IP_MROUTE"
                ) from None
            # The kernel's upcalls (IGMPMSG_NOCACHE, ...) are for routing daemons and not read here.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            for device, vif in self._vifs.items():
                number = socket.if_nametoindex(device)
                self._set(_ADD_VIF, struct.pack("=HBBIi4x", vif, _USE_INDEX, 1, 0, number))

    def add(self, source: str, group: str, incoming: str, outgoing: Sequence[str]) -> None:
        """Forward packets of `source` to `group` that arrive on device `incoming` to the devices `outgoing`."""
        thresholds = bytearray(_MAX_VIFS)
        for device in outgoing:
            thresholds[self._vifs[device]] = 1
        ends = socket.inet_aton(source) + socket.inet_aton(group)
        self._set(_ADD_MFC, ends + struct.pack("=H32s2xIIIi", self._vifs[incoming], bytes(thresholds), 0, 0, 0, 0))

    def _set(self, option: int, value: bytes) -> None:
        self._socket.setsockopt(socket.IPPROTO_IP, option, value)
