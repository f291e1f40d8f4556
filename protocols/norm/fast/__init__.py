"""NORM machines that a host can advance many at a time, and whose results are those of the plain ones."""

from protocols.machine import Group, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.receiver import FastNormReceiver
from protocols.norm.fast.sender import FastNormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender

__all__ = ["FastNormReceiver", "FastNormSender", "is_plain", "make_receiver", "make_sender"]


def is_plain(config: NormConfig) -> bool:
    """Return whether the plain machines run in the fast engine, too.

    What receivers request is a matter of their own with nacking modes and object boundaries, where they join all objects, and
    where objects are not described by each message. With congestion control every receiver measures by itself, and the rate of
    a sender is not known ahead. Without feedback to the group receivers need the address of each sender.
    """
    has_modes = config.nacking != "normal" or config.repair_boundary != "block" or config.join == "all"
    has_description = config.fti == "always" and not config.preset_size
    return has_modes or not has_description or config.congestion != "none" or config.feedback != "multicast"


def _is_planned(config: NormConfig) -> bool:
    """Return whether a sender knows ahead what it sends: its repairs are gathered, and not those of single NACKs."""
    return config.repair == "gathered" and not is_plain(config)


def make_sender(ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> NormSender:
    """Make a sender for the fast engine."""
    return (NormSender if not _is_planned(config) else FastNormSender)(ports, config, node, group, instance)


def make_receiver(ports: Ports, config: NormConfig, node: int, group: Group) -> NormBatchReceiver:
    """Make a receiver for the fast engine."""
    return (NormBatchReceiver if is_plain(config) else FastNormReceiver)(ports, config, node, group)
