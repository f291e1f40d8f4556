"""A Mininet link of two TAP devices, whose far ends a process of ours holds."""

from contextlib import nullcontext
from typing import Any

from mininet.link import Link

from emu.namespaces import in_network_namespace
from emu.tap import QUEUE, open_tap

__all__ = ["TapLink"]


class TapLink(Link):  # type: ignore[misc]
    """Two interfaces that nothing joins. `descriptors` are their far ends, for who carries the frames
    (`emu.userspace_link`)."""

    descriptors: tuple[int, int]

    def makeIntfPair(self, *names_and_nodes: Any, deleteIntfs: bool = True) -> None:
        """Make both interfaces, each in the network of its node; called by Mininet with names, addresses and nodes."""
        assert not deleteIntfs, "a world is new, and there is nothing to delete"
        near, far, _, _, *nodes = names_and_nodes
        self.descriptors = _end(near, nodes[0]), _end(far, nodes[1])


def _end(name: str, node: Any) -> int:
    """Made where it is to live: moving an interface between networks takes the kernel much longer."""
    with in_network_namespace(node.pid) if node.inNamespace else nullcontext():
        return open_tap(name, QUEUE)
