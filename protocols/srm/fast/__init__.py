"""Machines of SRM with shorter ways through the frequent messages, whose results are those of the plain ones."""

from protocols.srm.fast.receiver import make_receiver
from protocols.srm.sender import SrmSender

__all__ = ["make_receiver", "make_sender"]

make_sender = SrmSender
