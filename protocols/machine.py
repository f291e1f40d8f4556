"""The contract between a protocol and its host. Read this first.

A protocol is a `Machine`: it is told what arrived and what time it is, and speaks through the `Ports` it was given. It
knows no socket, no clock and no simulator. Hosts (`sim.host`, `emu.host`, the fake host of the tests) run machines.

Rules, for machines and for hosts:

1. Inputs come one at a time, with `now` (seconds) not decreasing. A machine never hears itself.
2. A quiet input costs nothing: what a machine has to say, it says through its ports. A deadline that moves *earlier* is
   announced by `alarm`; one that moves later is not.
3. No port re-enters the machine. Events reach the application in order, before the machine's next input.
4. Late and early wake-ups are harmless. `deadline <= now` after `wake` is a livelock and the host raises `LivelockError`.
5. A remote peer can never make a machine raise; a failing sink ends its object with an event.
6. Messages are read-only once sent: in the simulator one object reaches every receiver.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

from mypy_extensions import mypyc_attr

from protocols.events import Event
from protocols.fast.contract import FastState
from protocols.fast.lockstep import fan_out
from protocols.rng import Rng

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = [
    "Address",
    "Codec",
    "Content",
    "Event",
    "Group",
    "Host",
    "Machine",
    "Message",
    "Offer",
    "Packet",
    "Ports",
    "Sender",
    "Sink",
    "Source",
    "fan_out",
]

T = TypeVar("T")

Address: TypeAlias = Hashable
"""Opaque to machines: a node name in the simulator, an (ip, port) in emulation, a `Group`."""


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group. In emulation the name is "ip:port"."""

    name: str


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """Base of what travels: slotted dataclasses whose fields hold exactly what the wire holds."""

    __slots__ = ()
    kind: ClassVar[str]
    """Name of the message type in counters and traces, e.g. "data", "nack"."""

    # Messages may have what follows as fields. Here they are properties and no attributes with defaults, since a compiled base
    # would look at its own.

    @property
    def identity(self) -> int | None:
        """Stable 64 bits naming the content carried (equal for every transmission of it), or None for control messages."""
        return None

    @property
    def expects(self) -> Any:
        """For a receiver's fast path: whoever is exactly in this state has nothing to do but to move to `next_state`."""
        return None

    @property
    def expects_if_complete(self) -> Any:
        """The same for whoever, besides, lacks nothing of what was sent."""
        return None

    @property
    def next_state(self) -> Any:
        """Where it moves them to."""
        return None

    is_feedback: ClassVar[bool] = False
    """Does it concern only senders, and receivers whose seat is attentive?"""

    @property
    def redundant(self) -> bool:
        """Is it of no use to those who are calm?"""
        return False

    def is_irrelevant_to(self, waits: Any) -> bool:
        """Does a calm message do nothing more for an idle seat that waits for this (`FastState.waiting_for`) than for a
        whole one?"""
        return False

    @property
    def repair(self) -> bool:
        """Is it sent because somebody missed it? For people who look at a run; no machine relies on it."""
        return False

    @property
    def brief(self) -> str:
        """Which one it is, in a few characters for traces and drawings, e.g. "0.2.17"; what it asks for, of a request."""
        return ""


class Packet:
    """A message on its way out: `size` is bytes of UDP payload."""

    __slots__ = ("message", "size", "to")

    def __init__(self, message: Message, size: int, to: Address) -> None:
        self.message = message
        self.size = size
        self.to = to


class Source(Protocol):
    """Content to send: a file, memory, or only an extent."""

    @property
    def size(self) -> int:
        """Length in bytes; does not change."""

    def read(self, offset: int, n: int) -> bytes | None:
        """Exactly `n` bytes from `offset`; None from a source that has a size but no bytes (simulated content)."""


class Sink(Protocol):
    """Where a received object goes. Any method may raise OSError, which ends the object."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment; segments come in any order, each once."""

    def read(self, offset: int, n: int) -> bytes:
        """Read back what was written, for decoding."""

    def commit(self, info: bytes) -> None:
        """Everything is there; `info` is the object's out-of-band information (a file's name), b"" for none."""

    def abort(self) -> None:
        """The object will never be complete."""


@dataclass(frozen=True, slots=True)
class Content:
    """What an application hands to a sender: one object of content with its out-of-band information."""

    source: Source
    info: bytes = b""
    is_file: bool = True


@dataclass(frozen=True, slots=True)
class Offer:
    """An object that begins to arrive. `info` may come later and is then given to `Sink.commit`."""

    sender: int
    object_id: int
    size: int
    is_file: bool


class Ports(Protocol):
    """The only ways out of a machine. `list.append` is a complete fake of most of them."""

    trace: Callable[[str, object], None] | None
    """Who is told of decisions; None while nobody watches."""

    @property
    def rng(self) -> Rng:
        """The machine's stream of random numbers."""

    def send(self, packet: Packet) -> object:
        """Always taken. A true answer means "full": send no more before `resume`."""

    def notify(self, event: Event) -> None:
        """Tell the application, before this machine's next input."""

    def alarm(self, when: float) -> None:
        """The machine's deadline moved earlier, to `when`."""

    def join(self, group: Group) -> None:
        """Receive what is sent to `group` from now on."""

    def leave(self, group: Group) -> None:
        """Stop receiving what is sent to `group`."""

    def accept(self, offer: Offer) -> Sink | None:
        """Where the object goes, or None when it is not wanted."""


NOWHERE = FastState(object())
"""The seat of machines that follow nobody; no message leads there."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Machine(ABC):
    """One end of a protocol. Subclasses are slotted: there may be a million of them."""

    __slots__ = ("deadline", "fast_state", "ports")
    plans_bursts: ClassVar[bool] = False
    """Does it say beforehand what it will send (`protocols.fast.lookahead`)?"""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.fast_state: Any = NOWHERE
        """The `FastState`: where the machine stands among others, if it follows chains of messages."""
        self.deadline = inf
        """When `wake` is wanted; inf for never."""

    def _due(self, when: float) -> None:
        """Move the deadline; an earlier one is announced."""
        if when < self.deadline:
            self.deadline = when
            self.ports.alarm(when)
        else:
            self.deadline = when

    @abstractmethod
    def start(self, now: float) -> None:
        """Begin: join groups, send the first message."""

    @abstractmethod
    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A message from another node arrived."""

    @staticmethod
    def receive_batch(machines: "Iterable[Any]", message: Message, source: Address, to: Address, now: float) -> None:
        """`receive` of each of these machines, which are all of this class; a class may know a shorter way."""
        fan_out(machines, message, source, to, now)

    @abstractmethod
    def wake(self, now: float) -> None:
        """The deadline has come, or nearly. Afterwards `deadline` is later than `now`."""

    def leave_lockstep(self) -> None:
        """Leave the crowd that moves this machine, before any input that does not come through the crowd."""
        fast_state: FastState = self.fast_state
        coordinator = fast_state.coordinator
        if coordinator is not None:
            coordinator.release(self)

    def wake_in_lockstep(self, now: float) -> None:
        """In a crowd when the deadline has come: leave it, or do what there is to do and move the deadline."""
        del now
        self.leave_lockstep()

    def plan_bursts(self) -> "Sequence[Burst]":
        """What it will send from its deadline on if it hears nothing until then, run after run; none if that is not simple."""
        return ()

    def resume(self, now: float) -> None:
        """The network takes packets again, after `send` answered "full"."""

    def opened(self, peer: Address, now: float) -> None:
        """A connection to `peer` is open (only for protocols that use connections)."""

    def closed(self, peer: Address, reason: str, now: float) -> None:
        """The connection to `peer` is gone."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What the machine counted, by name; a name means the same in every protocol (docs/protocols.md)."""

    def held(self) -> dict[str, tuple[int, int]]:
        """What it keeps now and the most it may keep by its own parameters, by name: for those who check that it does."""
        return {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Sender(Machine):
    """A machine that takes content from an application."""

    __slots__ = ()

    @abstractmethod
    def submit(self, content: Content, now: float) -> int:
        """Queue an object for sending; returns its object id. Call through `Host.call`."""


class Codec(Protocol):
    """Messages to bytes and back."""

    def encode(self, message: Message) -> bytes:
        """The UDP payload."""

    def decode(self, data: bytes) -> Message:
        """Raises WireError and nothing else. Finds `identity` too."""


class Host(Protocol):
    """What runs a machine: `sim.host.SimHost`, `emu.host.UdpHost`, the fake host of the tests."""

    @property
    def now(self) -> float:
        """Seconds since the run began."""

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; its events go to `on_event`, which may use `call`. `accept` answers offers; None wants nothing."""

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """`verb(*args, now)` of the machine the host runs, then settle what it caused."""

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds since the run began (an application's own timer)."""
