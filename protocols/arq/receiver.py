"""The receivers: what all have in common, and who speaks when."""

from abc import abstractmethod
from math import inf

from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.arq.messages import Ack, Data, End, Nack
from protocols.arq.sender_state import Key, SenderState, Want
from protocols.arq.wire import size_of
from protocols.events import SenderHeard
from protocols.machine import Address, Group, Machine, Message, Packet, Ports

__all__ = ["AckingReceiver", "ArqReceiver", "NackingReceiver", "SuppressingReceiver"]


class ArqReceiver(Machine):
    """Receives every object of every sender of a group. `node` is its 32-bit id."""

    __slots__ = (
        "_group",
        "_remotes",
        "config",
        "data_lost",
        "data_received",
        "duplicates",
        "ignored",
        "node",
        "objects_aborted",
        "objects_received",
    )

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group) -> None:
        super().__init__(ports)
        self.config = config
        self.node = node
        self._group = group
        self._remotes: dict[int, SenderState] = {}
        self.data_received = self.data_lost = self.duplicates = self.ignored = 0
        self.objects_received = self.objects_aborted = 0

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A sender's message, or another receiver's request."""
        if isinstance(message, Data):
            self.data_received += 1
            remote = self._remote_of(message)
            remote.hear(message, now)
            self._on_data(message, source, now)
        elif isinstance(message, End):
            remote = self._remote_of(message)
            remote.hear(message, now)
        elif isinstance(message, Nack):
            known = self._remotes.get(message.sender)
            if known is None or known.instance != message.instance:
                return
            self._on_nack(known, message, now)
            remote = known
        else:
            return
        self._settle(remote)

    def wake(self, now: float) -> None:
        """Speak if it is time."""
        for remote in self._remotes.values():
            remote.wake(now)
        self._act(now)
        self._due(self._soonest())

    def counts(self) -> dict[str, int]:
        """What was received."""
        names = ("data_received", "data_lost", "duplicates", "ignored", "objects_received", "objects_aborted")
        return {name: getattr(self, name) for name in names}

    # -- what the protocols do differently -------------------------------------------------------------------------

    def _on_data(self, message: Data, source: Address, now: float) -> None:
        """A unit came from `source`, new or not."""

    def _on_nack(self, remote: SenderState, nack: Nack, now: float) -> None:
        """Another receiver asks for a unit."""

    def on_unit(self, message: Data) -> None:
        """A unit came for the first time."""

    def _act(self, now: float) -> None:
        """Whatever else is due."""

    def _own_due(self) -> float:
        """When `_act` is wanted."""
        return inf

    @abstractmethod
    def want(self, remote: SenderState, key: Key, now: float) -> Want | None:
        """A unit is found missing; None when nothing is to be done about it."""

    @abstractmethod
    def on_due(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """The time of a missing unit has come."""

    @abstractmethod
    def on_request(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Another receiver asked for what is missing here too."""

    # -- the rest --------------------------------------------------------------------------------------------------

    def _remote_of(self, message: Data | End) -> SenderState:
        remote = self._remotes.get(message.sender)
        if remote is None:
            self.ports.notify(SenderHeard(message.sender))
        elif remote.instance == message.instance:
            return remote
        else:
            remote.reset()
        remote = self._remotes[message.sender] = SenderState(self, message.sender, message.instance, message.first)
        return remote

    def _settle(self, remote: SenderState) -> None:
        due = min(remote.due(), self._own_due()) if len(self._remotes) == 1 else self._soonest()
        if due != self.deadline:
            self._due(due)

    def _soonest(self) -> float:
        return min(self._own_due(), *(remote.due() for remote in self._remotes.values())) if self._remotes else inf

    def _say(self, message: Ack | Nack, to: Address) -> None:
        self.ports.send(Packet(message, size_of(message), to))


class AckingReceiver(ArqReceiver):
    """The receiver of A: acknowledges every packet to the sender, and never asks."""

    __slots__ = ("_acks",)

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self._acks = 0

    def counts(self) -> dict[str, int]:
        """What was received and said."""
        return {**super().counts(), "acks_sent": self._acks}

    def _on_data(self, message: Data, source: Address, now: float) -> None:
        self._acks += 1
        self._say(Ack(message.sender, message.instance, message.object_id, message.unit, self.node), source)

    def want(self, remote: SenderState, key: Key, now: float) -> Want | None:
        """The sender's timer takes care of it."""

    def on_due(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """There is nothing that could be due."""

    def on_request(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Nobody asks."""


class NackingReceiver(ArqReceiver):
    """The receiver of N1: asks the sender at once for each missing packet, and again after a time-out."""

    __slots__ = ("_home", "_nacks", "_timeouts")

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self._nacks = self._timeouts = 0
        self._home: dict[int, Address] = {}

    def counts(self) -> dict[str, int]:
        """What was received and said."""
        return {**super().counts(), "nacks_sent": self._nacks, "timeouts": self._timeouts}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """As for all receivers; remembers where a sender lives."""
        if isinstance(message, (Data, End)):
            self._home[message.sender] = source
        super().receive(message, source, to, now)

    def want(self, remote: SenderState, key: Key, now: float) -> Want | None:
        """Ask at once."""
        want = Want()
        self._ask(remote, key, want, now)
        return want

    def on_due(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """The repair did not come: ask again."""
        self._timeouts += 1
        self._ask(remote, key, want, now)

    def on_request(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Nobody asks the group."""

    def _ask(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        want.asked = True
        want.tries += 1
        remote.plan(key, want, now + self.config.timeout)
        self._nacks += 1
        self._say(Nack(remote.node, remote.instance, *key, self.node), self._address(remote.node))

    def _address(self, node: int) -> Address:
        return self._home[node]


class SuppressingReceiver(NackingReceiver):
    """The receiver of N2: waits a random time, asks the group, and is silent when another asked first."""

    __slots__ = ("_nacks_heard", "_suppressed", "_window")

    def __init__(self, ports: Ports, config: N2Config, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self._window = config.window
        self._suppressed = self._nacks_heard = 0

    def counts(self) -> dict[str, int]:
        """What was received, heard and said."""
        return {**super().counts(), "nacks_suppressed": self._suppressed, "nacks_heard": self._nacks_heard}

    def _on_nack(self, remote: SenderState, nack: Nack, now: float) -> None:
        self._nacks_heard += 1
        remote.overhear(nack, now)

    def want(self, remote: SenderState, key: Key, now: float) -> Want | None:
        """Ask after a random wait."""
        want = Want()
        self._wait(remote, key, want, now)
        return want

    def on_due(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Time to ask, or time to think of asking again."""
        if want.asked:
            self._timeouts += 1
            self._wait(remote, key, want, now)
        else:
            self._ask(remote, key, want, now)

    def on_request(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Another was first."""
        if not want.asked:
            self._suppressed += 1
            want.asked = True
            want.tries += 1
        remote.plan(key, want, now + self.config.timeout)

    def _wait(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        want.asked = False
        remote.plan(key, want, now + self._window * self.ports.rng.uniform())

    def _address(self, node: int) -> Address:
        return self._group
