"""A node that sends and receives: the sender and the receiver of one protocol, with one port and one node id."""

from collections.abc import Callable
from typing import cast

from protocols.batches import Assisted, Background, RunReceiver, Selective
from protocols.events import Event
from protocols.layer import InnerPorts, Layer
from protocols.machine import Address, Machine, Message, Offer, Ports, Sender, Sink
from protocols.run import Run

__all__ = ["NodeMachine"]


class NodeMachine(Layer):
    """A sender and a receiver that share port, group and node id.

    The application is offered no objects of this `node`, which may come back in the repairs of others.
    Both get every message, since a receiver suppresses its requests by those of others, which are meant for senders. Their
    events go to the application as they are, which calls their methods through `host.call`.
    """

    __slots__ = ("_node", "receiver", "sender")

    def __init__(
        self, ports: Ports, node: int, make_sender: Callable[[Ports], Sender], make_receiver: Callable[[Ports], Machine]
    ) -> None:
        super().__init__(ports)
        self._node = node
        self.sender = self.inner("sender", make_sender, _unheard)
        self.receiver = self.inner("receiver", make_receiver, _unheard, self._accept)

    def _accept(self, offer: Offer) -> Sink | None:
        return None if offer.sender == self._node else self.ports.accept(offer)

    def notified(self, inner: InnerPorts, event: Event) -> None:
        """Pass an event on to the application."""
        del inner
        self.ports.notify(event)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Give a message that a queue marked to both machines."""
        for machine in self.machines():
            self.give(machine.receive_marked, message, source, to, now)

    # What a real host offers (`protocols.batches`)

    def receive_run(self, run: Run, source: Address, to: Address, now: float) -> None:
        """Give a run, which holds no feedback, to the receiver."""
        self.give(cast(RunReceiver, self.receiver).receive_run, run, source, to, now)

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        """Return whether a packet is worth decoding for one of the machines, or one of them can't tell."""
        return any(
            not isinstance(machine, Selective) or machine.is_worth_decoding(data, source, now) for machine in self.machines()
        )

    def send_runs(self, most: int) -> None:
        """See `Assisted.send_runs`."""
        for machine in self.machines():
            if isinstance(machine, Assisted):
                machine.send_runs(most)

    def compute_in(self, background: Background) -> None:
        """See `Assisted.compute_in`."""
        for machine in self.machines():
            if isinstance(machine, Assisted):
                machine.compute_in(background)


def _unheard(event: Event, now: float) -> None:
    """Stand for a layer that hears no events."""
    raise AssertionError("events of a node go to its application")
