"""Counters of the packets a host sent, by message kind, common to all hosts."""

from protocols.machine import Message

__all__ = ["Traffic"]


class Traffic:
    """Packets sent and their bytes of UDP payload, by `Message.kind`."""

    __slots__ = ("octets", "packets")

    def __init__(self) -> None:
        self.packets: dict[str, int] = {}
        self.octets: dict[str, int] = {}

    def add(self, kind: str, size: int, count: int) -> None:
        """Count so many packets of one kind and of `size` bytes of UDP payload each."""
        self.packets[kind] = self.packets.get(kind, 0) + count
        self.octets[kind] = self.octets.get(kind, 0) + size * count

    def count(self, message: Message, size: int) -> None:
        """Count a packet of `size` bytes of UDP payload."""
        self.add(message.kind, size, 1)
