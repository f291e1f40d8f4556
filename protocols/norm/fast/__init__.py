"""NORM machines that a host can advance many at a time, and whose results are those of the plain ones."""

from protocols.machine import Group, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.receiver import FastNormReceiver
from protocols.norm.fast.sender import FastNormSender
from protocols.norm.run_reception import NormBatchReceiver

__all__ = ["FastNormReceiver", "FastNormSender", "make_receiver", "make_sender"]

make_sender = FastNormSender


def make_receiver(ports: Ports, config: NormConfig, node: int, group: Group) -> NormBatchReceiver:
    """Return a receiver; a plain one where it keeps what the groups of fast ones do not: the address of each sender."""
    if config.feedback != "multicast":
        return NormBatchReceiver(ports, config, node, group)
    return FastNormReceiver(ports, config, node, group)
