"""The fast machines of protocol N1."""

from protocols.arq.fast.receiver import nacking_receiver
from protocols.arq.fast.sender import FastGatheringSender

__all__ = ["make_receiver", "make_sender"]

make_sender, make_receiver = FastGatheringSender, nacking_receiver
