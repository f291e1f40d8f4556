"""NORM machines that a host can advance many at a time, and whose results are those of the plain ones."""

from protocols.norm.fast.receiver import FastNormReceiver
from protocols.norm.fast.sender import FastNormSender

__all__ = ["FastNormReceiver", "FastNormSender", "make_receiver", "make_sender"]

make_sender, make_receiver = FastNormSender, FastNormReceiver
