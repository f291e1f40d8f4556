"""A node that sends what NORM messages it likes, in the name of any sender."""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address

from protocols.norm.messages import FLAG_FILE, FLAG_INFO, Data, Fti, Info, NormMessage, Origin
from protocols.norm.wire.codec import NormCodec

__all__ = ["SEGMENT", "ForgedSender"]

SEGMENT = 1000
GRTT_CODE = 100


class ForgedSender:
    """Sends objects in the name of `node` to `group` ("ADDR:PORT") over the loopback device."""

    def __init__(self, group: str, node: int, instance: int = 1) -> None:
        address, _, port = group.rpartition(":")
        self._to = (str(IPv4Address(address)), int(port))
        self._origin = Origin(node, instance, GRTT_CODE, 4, 3)
        self._codec = NormCodec()
        self._sequence = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))

    def file(self, object_id: int, name: str, content: bytes) -> None:
        """Send a whole file."""
        self.announce(object_id, name, len(content))
        self.symbols(object_id, len(content), range(-(-len(content) // SEGMENT)), content)

    def announce(self, object_id: int, name: str, size: int) -> None:
        """Send the NORM_INFO of a file."""
        self._send(Info(self._origin, self._sequence, FLAG_FILE | FLAG_INFO, 5, object_id, self._fti(size), name.encode()))

    def symbols(self, object_id: int, size: int, numbers: Iterable[int], content: bytes = b"") -> None:
        """Send some symbols of an object that has one NORM_INFO if `content` is given, else none."""
        fti = self._fti(size)
        for number in numbers:
            block, symbol = divmod(number, 64)
            payload = content[number * SEGMENT : (number + 1) * SEGMENT] or bytes(min(SEGMENT, size - number * SEGMENT))
            flags = FLAG_FILE | (FLAG_INFO if content else 0)
            self._send(Data(self._origin, self._sequence, flags, 5, object_id, block, symbol, 0, fti, payload, len(payload)))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _fti(self, size: int) -> Fti:
        return Fti(5, size, SEGMENT, 64, 16)

    def _send(self, message: NormMessage) -> None:
        self._socket.sendto(self._codec.encode(message), self._to)
        self._sequence = (self._sequence + 1) & 0xFFFF
