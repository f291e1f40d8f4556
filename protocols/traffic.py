"""Counters of the packets a host sent, by message kind, common to all hosts."""

from protocols.machine import Message
from protocols.run import Run

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

    def count_run(self, run: Run, size: int) -> None:
        """Count the packets of a run, which have `size` bytes in all."""
        kind = run.packet_kind
        self.packets[kind] = self.packets.get(kind, 0) + run.packets
        self.octets[kind] = self.octets.get(kind, 0) + size

    def totals(self) -> dict[str, int]:
        """Return the packets and bytes of all kinds, by the names of statistics."""
        return {"packets_sent": sum(self.packets.values()), "bytes_sent": sum(self.octets.values())}
