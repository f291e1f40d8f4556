"""A Mininet link of two TAP devices, whose far ends a process of ours holds."""

from typing import Any

from mininet.link import Link

from emu.doctor import run
from emu.tap import QUEUE, open_tap

__all__ = ["TapLink"]


class TapLink(Link):  # type: ignore[misc]
    """Two interfaces that nothing joins. `descriptors` are their far ends, for who carries the frames (`emu.wire`)."""

    descriptors: tuple[int, int]

    def makeIntfPair(self, *names_and_nodes: Any, deleteIntfs: bool = True) -> None:
        """Make both interfaces, each in the network of its node; called by Mininet with names, addresses and nodes."""
        assert not deleteIntfs, "a world is new, and there is nothing to delete"
        near, far, _, _, *nodes = names_and_nodes
        self.descriptors = open_tap(near), open_tap(far)
        for name, node in zip((near, far), nodes, strict=True):
            run(f"ip link set dev {name} txqueuelen {QUEUE}" + (f" netns {node.pid}" if node.inNamespace else ""))
