"""What a host sent, counted by kind of message: the same book-keeping in every world."""

from protocols.machine import Message

__all__ = ["Traffic"]


class Traffic:
    """Packets and bytes of UDP payload by `Message.kind`."""

    __slots__ = ("octets", "packets")

    def __init__(self) -> None:
        self.packets: dict[str, int] = {}
        self.octets: dict[str, int] = {}

    def count(self, message: Message, size: int) -> None:
        """Add one packet."""
        kind = message.kind
        self.packets[kind] = self.packets.get(kind, 0) + 1
        self.octets[kind] = self.octets.get(kind, 0) + size
