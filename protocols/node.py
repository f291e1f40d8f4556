"""A node that sends and receives: the sender and the receiver of one protocol, with one port and one node id."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from protocols.batches import Assisted, Background, RunReceiver, Selective
from protocols.event_layer import EventLayer, MachineClock, OnEvent
from protocols.events import Event
from protocols.inner_ports import InnerPorts
from protocols.layer import Layer, unheard
from protocols.machine import Address, Machine, Message, Offer, Ports, Sender, Sink
from protocols.run import Run

__all__ = ["NodeMachine"]


@dataclass(frozen=True, slots=True)
class _Untold(Event):
    """An event of machine `place` of a node, which its event layer gets before the application."""

    place: int
    event: Event


class NodeMachine(Layer):
    """A sender and a receiver that share port, group and node id.

    Both get every message: requests of others are meant for senders, but suppress those of a receiver, too. Events go to the
    application unchanged, which calls the methods of both through `host.call`. It is offered no objects of this `node`, which
    may come back in the repairs of others.
    """

    __slots__ = ("_layers", "_node", "receiver", "sender")

    def __init__(
        self, ports: Ports, node: int, make_sender: Callable[[Ports], Sender], make_receiver: Callable[[Ports], Machine]
    ) -> None:
        super().__init__(ports)
        self._node = node
        self.sender = self.inner("sender", make_sender, unheard)
        self.receiver = self.inner("receiver", make_receiver, unheard, self._accept)
        # A sender or a receiver that consists of several machines may need the multicasts of the other.
        self.hears_itself = any(isinstance(machine, Layer) and machine.hears_itself for machine in (self.sender, self.receiver))
        # By their place among the inner machines.
        self._layers = {
            place: machine for place, machine in enumerate((self.sender, self.receiver)) if isinstance(machine, EventLayer)
        }

    def _accept(self, offer: Offer) -> Sink | None:
        return None if offer.sender == self._node else self.ports.accept(offer)

    def notified(self, inner: InnerPorts, event: Event) -> None:
        """Pass an event on to the application, after the layer above its machine if there is one."""
        place = self._inner.index(inner) if self._layers else -1
        self.ports.notify(_Untold(place, event) if place in self._layers else event)

    def heard_through(self, on_event: OnEvent, clock: MachineClock) -> OnEvent:
        """Return where events go: those of a machine under an event layer to that layer, which passes on what replaces them."""
        if not self._layers:
            return on_event
        layers = self._layers

        def tell(event: Event) -> None:
            if isinstance(event, _Untold):
                layers[event.place].tell(event.event, on_event, clock.machine_time())
            else:
                on_event(event)

        return tell

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Give a message that a queue marked to both machines."""
        for machine in self.machines():
            self.give(machine.receive_marked, message, source, to, now)

    # What a real host offers (`protocols.batches`)

    def receive_run(self, run: Run, source: Address, to: Address, now: float) -> None:
        """Give a run, which holds no feedback, to the receiver."""
        self.give(cast(RunReceiver, self.receiver).receive_run, run, source, to, now)

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        """Return whether a packet is worth decoding for one of the machines, or one of them does not choose packets."""
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
