"""A Mininet link of two TAP devices, between which a process of this project forwards frames."""

from contextlib import nullcontext
from typing import Any

from mininet.link import Link

from emu.namespaces import in_network_namespace
from emu.tap import QUEUE, open_tap

__all__ = ["TapLink"]


class TapLink(Link):  # type: ignore[misc]
    """Two unconnected TAP interfaces; `descriptors` are for the process that forwards their frames (`emu.userspace_link`)."""

    descriptors: tuple[int, int]

    def makeIntfPair(self, *names_and_nodes: Any, deleteIntfs: bool = True) -> None:
        """Make both interfaces in the network namespaces of their nodes; called by Mininet with names, addresses and nodes."""
        assert not deleteIntfs, "namespaces are new, so there is nothing to delete"
        near, far, _, _, *nodes = names_and_nodes
        self.descriptors = _end(near, nodes[0]), _end(far, nodes[1])


def _end(name: str, node: Any) -> int:
    """Make a TAP in its node's namespace: moving an interface between namespaces takes the kernel much longer."""
    with in_network_namespace(node.pid) if node.inNamespace else nullcontext():
        return open_tap(name, QUEUE)
