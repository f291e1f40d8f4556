"""The fast machines of protocol N2."""

from protocols.arq.fast.receiver import suppressing_receiver
from protocols.arq.fast.sender import FastGatheringSender

__all__ = ["make_receiver", "make_sender"]

make_sender, make_receiver = FastGatheringSender, suppressing_receiver
