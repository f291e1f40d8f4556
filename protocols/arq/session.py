"""State shared by the parts of one receiver."""

from protocols.arq.config import AConfig
from protocols.arq.messages import Ack, Data, Nack
from protocols.arq.wire import size_of
from protocols.machine import Address, Group, Packet, Ports

__all__ = ["Session"]


class Session:
    """The ports, the parameters and the counters of a receiver, which its sender states and its repair policy use, too."""

    __slots__ = (
        "config",
        "data_lost",
        "data_received",
        "duplicates",
        "group",
        "ignored",
        "node",
        "objects_aborted",
        "objects_received",
        "octets_received",
        "ports",
        "senders",
    )

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group) -> None:
        self.ports = ports
        self.config = config
        self.node = node
        self.group = group
        self.data_received = self.data_lost = self.duplicates = self.ignored = 0
        self.objects_received = self.objects_aborted = 0
        self.senders = 1
        """Senders whose state is kept, by which the limits of what is kept of each are divided."""
        self.octets_received = 0
        """Bytes received of objects that have ended, complete or not."""

    def send(self, message: Ack | Nack | Data, to: Address) -> None:
        """Send a message to a sender or to the group."""
        self.ports.send(Packet(message, size_of(message), to))

    def counts(self) -> dict[str, int]:
        """Return the counters every receiver has, by name (docs/protocols.md)."""
        names = ("data_received", "data_lost", "duplicates", "ignored", "objects_received", "objects_aborted")
        return {name: getattr(self, name) for name in names}
