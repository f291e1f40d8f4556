"""Keys of the random streams that the simulator and Mininet share. They are part of every stored fingerprint."""

from protocols.rng import extend, key_of
from topologies.spec import Topology

__all__ = ["line_key", "loss_key", "member_loss_key", "stream_key"]


def stream_key(topology: Topology, seed: int, host: str) -> int:
    """Return the key of a host's random stream (`protocols.rng.Rng`).

    It is `key_of(seed, "node", name)` for a plain host; for a member of a counted group, the key of the group's name
    extended by the member's index.
    """
    node, place = topology.member(host)
    key = key_of(seed, "node", node)
    return key if topology.node(node).count is None else extend(key, place)


def loss_key(seed: int, near: str, far: str) -> int:
    """Return the key of the losses on the link from graph node `near` to `far` (`topologies.losses`)."""
    return key_of(seed, "loss", near, far)


def member_loss_key(key: int, place: int) -> int:
    """Return the loss key of the link of one member of a counted group; `key` is the `loss_key` of the graph nodes."""
    return extend(key, place)


def line_key(topology: Topology, seed: int, near: str, far: str, place: int) -> int:
    """Return the loss key of a link between hosts of two graph nodes; `place` is the index of the member in a counted group."""
    key = loss_key(seed, near, far)
    counted = topology.node(near).count is not None or topology.node(far).count is not None
    return member_loss_key(key, place) if counted else key
