"""Machines of SRM with shorter ways through the frequent messages, whose results are those of the plain ones."""

from protocols.srm.fast.receiver import make_receiver
from protocols.srm.fast.sender import FastSrmSender

__all__ = ["make_receiver", "make_sender"]

make_sender = FastSrmSender
