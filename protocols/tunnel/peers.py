"""The other tunnels in a tunnel's list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from protocols.admin.node import Node
from protocols.machine import Address
from protocols.norm.limits import host_of
from protocols.tunnel.backlog import Backlog
from protocols.tunnel.memory import LossMeter

__all__ = ["Peer", "Peers"]


@dataclass(slots=True)
class Peer:
    """Another tunnel: `meter` counts the datagrams that come from it, `lost` is the share missing there of those sent to it."""

    node: Node
    endpoint: Address
    meter: LossMeter = field(default_factory=lambda: LossMeter(32))
    lost: float = 0.0
    backlog: Backlog = field(default_factory=Backlog)
    last_report: tuple[int, int] = (0, 0)
    """Datagrams that came and that are missing, by its last report."""
    requests_reports: bool = False
    """Whether it requests reports of losses."""


class Peers:
    """The list of other tunnels. Datagrams are taken from their addresses; ports may differ, as those of senders do."""

    __slots__ = ("_by_host", "all")

    def __init__(self) -> None:
        self.all: list[Peer] = []
        self._by_host: dict[Address, Peer] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(self.all)

    def update(self, nodes: Sequence[Node]) -> None:
        """Take a new list; what is known of those that stay is kept."""
        known = {peer.endpoint: peer for peer in self.all}
        self.all = []
        for node in nodes:
            if node.paused:
                continue
            peer = known.get(node.endpoint)
            if peer is None:
                peer = Peer(node, node.endpoint)
            peer.node = node
            self.all.append(peer)
        self._by_host = {host_of(peer.endpoint): peer for peer in self.all}

    def at(self, source: Address) -> Peer | None:
        """Return the peer that sends from an address, None if that is not on the list."""
        return self._by_host.get(host_of(source))
