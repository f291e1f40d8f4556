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

    With nacking modes, object boundaries or `join: all` each receiver has requests of its own; with `fti` or `preset_size`
    messages do not describe their object.
    """
    has_modes = config.nacking != "normal" or config.repair_boundary != "block" or config.join == "all"
    return has_modes or config.fti != "always" or bool(config.preset_size)


def is_single(config: NormConfig) -> bool:
    """Return whether each receiver is called at every message, and the sender plans no bursts.

    With congestion control every receiver measures losses and rates, and the sender's rate follows their feedback.
    """
    return config.congestion != "none"


def make_sender(ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> NormSender:
    """Make a sender for the fast engine."""
    if is_plain(config):
        return NormSender(ports, config, node, group, instance)
    # Bursts can be planned only if repairs are gathered, not with repairs of single NACKs.
    plans = not is_single(config) and config.repair == "gathered"
    return (FastNormSender if plans else LinkingNormSender)(ports, config, node, group, instance)


def make_receiver(ports: Ports, config: NormConfig, node: int, group: Group) -> NormBatchReceiver:
    """Make a receiver for the fast engine."""
    if is_plain(config):
        return NormBatchReceiver(ports, config, node, group)
    return (SingleNormReceiver if is_single(config) else FastNormReceiver)(ports, config, node, group)
