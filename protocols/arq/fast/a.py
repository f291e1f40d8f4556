"""The fast machines of protocol A."""

from protocols.arq.fast.acked_sender import FastAckedSender
from protocols.arq.fast.receiver import acking_receiver

__all__ = ["make_receiver", "make_sender"]

make_sender, make_receiver = FastAckedSender, acking_receiver
