"""The ports of a machine that stands on the ports of another one (`protocols.layer`)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from protocols.connection import Connection
from protocols.errors import UsageError
from protocols.events import Event
from protocols.machine import Group, Machine, Offer, Packet, Ports, Sink
from protocols.rng import Rng
from protocols.storage import Change, Record

if TYPE_CHECKING:
    from protocols.event_layer import Accept, OnEvent
    from protocols.layer import Layer

__all__ = ["InnerPorts"]


@mypyc_attr(allow_interpreted_subclasses=True)
class InnerPorts:
    """The ports of an inner machine, which use the ports `out`. The `owner` gets its events and its earlier deadlines.

    `name` selects the machine's random stream; the one without a name has that of the owner. The keys of its records begin with
    `prefix`, which is empty or ends with a zero. `port` is the number of the port that `out` sends from.
    """

    def __init__(self, owner: "Layer", name: str, out: Ports, prefix: bytes = b"", port: int = 0) -> None:
        self._owner = owner
        self.out = out
        self._prefix = prefix
        self.port = port
        self.rng: Rng = out.rng.fork(name) if name else out.rng
        self.machine: Machine | None = None
        self.groups: dict[Group, None] = {}
        self.is_listening = False
        self.on_event: OnEvent | None = None
        """Where the events of the machine go."""
        self.accepting: Accept | None = None

    @property
    def trace(self) -> Callable[[str, object], None] | None:
        """The trace function of the host."""
        return self.out.trace

    @trace.setter
    def trace(self, function: Callable[[str, object], None] | None) -> None:
        self.out.trace = function

    @property
    def epoch(self) -> float:
        """See `Ports.epoch`."""
        return self.out.epoch

    def send(self, packet: Packet) -> object:
        """See `Ports.send`."""
        return self._owner.send_heard(self, packet) if self._owner.hears_itself else self.out.send(packet)

    def notify(self, event: Event) -> None:
        """Tell the owner of an event."""
        self._owner.notified(self, event)

    def alarm(self, when: float) -> None:
        """Move the deadline of the owner to `when` seconds if it is later."""
        self._owner.earlier(when)

    def join(self, group: Group) -> None:
        """Join a group; further machines at the same port join what is joined already."""
        if not self._owner.is_member(group, self.port):
            self.out.join(group)
        self.groups[group] = None

    def leave(self, group: Group) -> None:
        """Leave a group; the host leaves it when no machine at the same port is a member."""
        if group in self.groups:
            del self.groups[group]
            if not self._owner.is_member(group, self.port):
                self.out.leave(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Return the sink for an offered object, or None to refuse it."""
        return None if self.accepting is None else self.accepting(offer)

    def work(self, seconds: float) -> None:
        """See `Ports.work`."""
        self.out.work(seconds)

    def keep(self, octets: int) -> None:
        """See `Ports.keep`; what several machines keep adds up."""
        self._owner.kept[self] = octets
        self.out.keep(sum(kept for inner, kept in self._owner.kept.items() if inner.port == self.port))

    def fail(self, reason: str) -> None:
        """See `Ports.fail`."""
        self.out.fail(reason)

    def listen(self) -> None:
        """See `ConnectionPorts.listen`."""
        if self._owner.listener(self.port) is not None:
            raise UsageError("another machine listens at this port")
        self.out.listen()
        self.is_listening = True

    def connect(self, peer: object) -> Connection:
        """See `ConnectionPorts.connect`."""
        connection = self.out.connect(peer)
        self._owner.connections[connection] = self
        return connection

    def hang_up(self, connection: Connection) -> None:
        """See `ConnectionPorts.hang_up`."""
        self.out.hang_up(connection)

    def hold(self, connection: Connection) -> None:
        """See `ConnectionPorts.hold`."""
        self.out.hold(connection)

    def release(self, connection: Connection) -> None:
        """See `ConnectionPorts.release`."""
        self.out.release(connection)

    def store(self, changes: Sequence[Change]) -> int:
        """See `StoragePorts.store`."""
        ticket = self.out.store([change._replace(key=self._prefix + change.key) for change in changes])
        self._owner.tickets[ticket] = self
        return ticket

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> int:
        """See `StoragePorts.fetch`."""
        if last is not None:
            last = self._prefix + last
        elif self._prefix:
            last = self._prefix[:-1] + b"\1"
        ticket = self.out.fetch(self._prefix + first, last, most)
        self._owner.tickets[ticket] = self
        return ticket

    def own(self, records: Sequence[Record]) -> list[Record]:
        """Return records that were fetched by the keys the machine gave them."""
        return [record._replace(key=record.key[len(self._prefix) :]) for record in records]
