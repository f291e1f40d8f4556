"""Counters of the packets a host sent, by message kind, common to all hosts."""

from protocols.machine import Message, Run

__all__ = ["Traffic"]


class Traffic:
    """Packets sent and their bytes of UDP payload, by `Message.kind`."""

    __slots__ = ("octets", "packets")

    def __init__(self) -> None:
        self.packets: dict[str, int] = {}
        self.octets: dict[str, int] = {}

    def count(self, message: Message, size: int) -> None:
        """Count a packet of `size` bytes of UDP payload."""
        kind = message.kind
        self.packets[kind] = self.packets.get(kind, 0) + 1
        self.octets[kind] = self.octets.get(kind, 0) + size

    def count_run(self, run: Run, size: int) -> None:
        """Count the packets of a run, which have `size` bytes in all."""
        kind = run.packet_kind
        self.packets[kind] = self.packets.get(kind, 0) + run.packets
        self.octets[kind] = self.octets.get(kind, 0) + size
