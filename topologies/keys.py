"""Keys of randomness that simulator and emulator share. They are part of every stored fingerprint."""

from protocols.rng import extend, key_of
from topologies.spec import Topology

__all__ = ["dice_key", "line_key", "loss_key", "member_loss_key"]


def dice_key(topology: Topology, seed: int, host: str) -> int:
    """The key of a host's stream of random numbers (`protocols.rng.Rng`).

    `key_of(seed, "node", name)` of a plain host; that of the group's name, extended by the member's place, in a counted group.
    """
    node, place = topology.member(host)
    key = key_of(seed, "node", node)
    return key if topology.node(node).count is None else extend(key, place)


def loss_key(seed: int, near: str, far: str) -> int:
    """The key of the losses from graph node `near` to `far` (`topologies.losses`)."""
    return key_of(seed, "loss", near, far)


def member_loss_key(key: int, place: int) -> int:
    """The key of one member's own link, where an end of the link is a counted group: `key` is that of the graph nodes."""
    return extend(key, place)


def line_key(topology: Topology, seed: int, near: str, far: str, place: int) -> int:
    """The key of the losses on one link from graph node `near` to `far`; `place` is that of a member of a counted group."""
    key = loss_key(seed, near, far)
    counted = topology.node(near).count is not None or topology.node(far).count is not None
    return member_loss_key(key, place) if counted else key
