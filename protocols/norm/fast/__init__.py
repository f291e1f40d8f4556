"""NORM machines that a host can advance many at a time, and whose results are those of the plain ones."""

from protocols.machine import Group, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.receiver import FastNormReceiver
from protocols.norm.fast.sender import FastNormSender, LinkingNormSender
from protocols.norm.fast.single_receiver import SingleNormReceiver
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender

__all__ = [
    "FastNormReceiver",
    "FastNormSender",
    "LinkingNormSender",
    "SingleNormReceiver",
    "is_plain",
    "is_single",
    "make_receiver",
    "make_sender",
]


def is_plain(config: NormConfig) -> bool:
    """Return whether the plain machines run in the fast engine, too.

    What receivers request is a matter of their own with nacking modes and object boundaries, where they join all objects, and
    where objects are not described by each message.
    """
    has_modes = config.nacking != "normal" or config.repair_boundary != "block" or config.join == "all"
    return has_modes or config.fti != "always" or bool(config.preset_size)


def is_single(config: NormConfig) -> bool:
    """Return whether each receiver is called at every message, and the sender does not know ahead when it sends.

    With congestion control every receiver measures by itself, and the rate follows what they tell. Without feedback to the
    group receivers need the address of each sender.
    """
    return config.congestion != "none" or config.feedback != "multicast"


def make_sender(ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> NormSender:
    """Make a sender for the fast engine."""
    if is_plain(config) or config.repair != "gathered":
        # It knows ahead what it sends only if repairs are gathered, and not those of single NACKs.
        return NormSender(ports, config, node, group, instance)
    return (LinkingNormSender if is_single(config) else FastNormSender)(ports, config, node, group, instance)


def make_receiver(ports: Ports, config: NormConfig, node: int, group: Group) -> NormBatchReceiver:
    """Make a receiver for the fast engine."""
    if is_plain(config):
        return NormBatchReceiver(ports, config, node, group)
    return (SingleNormReceiver if is_single(config) else FastNormReceiver)(ports, config, node, group)
