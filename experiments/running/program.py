"""What one node of a run does: the same object in the simulator, in Mininet and on a real network.

A program makes its machine on the host it is given, acts only through `host.call` and `host.later`, and tells at the end what
came out. It is slotted and small: there may be ten thousand receivers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from experiments.running.content import Accounted, MemorySink
from experiments.running.files import Hasher, ScratchSink
from experiments.running.invariants import Invariants
from protocols.events import FlushCompleted, ObjectAborted, ObjectOpened, ObjectReceived, ObjectSent, SenderReset
from protocols.hosting import PortsHost
from protocols.machine import Content, Event, Group, Machine, Offer, Sender, Sink
from protocols.spec import ProtocolSpec

__all__ = ["Job", "Node", "OnDisk", "ReceiverProgram", "SenderProgram", "accounted", "in_memory"]

Key: TypeAlias = tuple[int, int]
Sinks: TypeAlias = Callable[[Offer], Sink | None]
ACCOUNTED = Accounted()


@dataclass(frozen=True, slots=True)
class Node:
    """What a program needs to make its machine; `id` is the 32-bit id of the node within the protocol.

    `fast`: make the protocol's fast machines, which only the simulator runs.
    """

    protocol: ProtocolSpec
    config: Any
    id: int
    group: Group
    instance: int = 1
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """Content handed to the sender at a time."""

    at: float
    content: Content


class SenderProgram:
    """Submits its jobs; finished when everything was sent and the flush after the last object is completed."""

    __slots__ = (
        "_at_end",
        "_down",
        "_host",
        "_invariants",
        "_jobs",
        "_left",
        "_life",
        "_node",
        "ended_at",
        "failures",
        "machine",
        "sent",
        "watch",
    )

    def __init__(self, node: Node, jobs: Sequence[Job], watch: Callable[[Event], None] | None = None) -> None:
        self._node = node
        self._jobs = jobs
        self._invariants: Invariants | None = None
        self._left = len(jobs)
        self._life = -1
        self._down = False
        self._at_end = 0
        self._host: PortsHost | None = None
        self.machine: Sender | None = None
        self.sent: dict[int, int] = {}
        """Object id -> number of the job."""
        self.failures: list[str] = []
        self.ended_at: float | None = None
        self.watch = watch

    def start(self, host: PortsHost) -> None:
        """Make the sender on the host and plan the jobs; called again after a crash, all of them as another instance."""
        node = self._node
        self._host = host
        self._life += 1
        self._down = False
        self._left, self._at_end, self.sent, self.ended_at = len(self._jobs), 0, {}, None
        instance = (node.instance + self._life) & 0xFFFF
        self.machine = node.protocol.makers(node.fast).make_sender(host, node.config, node.id, node.group, instance)
        host.run(self.machine, self._on_event)
        for number, job in enumerate(self._jobs):
            if job.at <= host.now:
                self._submit(number)
            else:
                host.later(job.at, partial(self._submit_in, self._life, number))

    def check_with(self, name: str, invariants: Invariants) -> None:
        """Report submitted objects to the checker; call before `start`."""
        del name
        self._invariants = invariants

    def restarted_after(self, times: int) -> None:
        """The host crashed so often before `start`, in other processes: it will be another instance than those."""
        self._life = times - 1

    def crash(self) -> None:
        """The host is going down: what was planned is not done."""
        self._down = True
        self.ended_at = None

    def _submit_in(self, life: int, number: int) -> None:
        if life == self._life and not self._down:
            self._submit(number)

    def _submit(self, number: int) -> None:
        assert self._host is not None
        assert self.machine is not None
        self._left -= 1
        self.ended_at = None
        content = self._jobs[number].content
        object_id = self._host.call(self.machine.submit, content)
        self.sent[object_id] = number
        if self._invariants is not None:
            self._invariants.submitted(self._node.id, object_id, content)

    def _on_event(self, event: Event) -> None:
        assert self._host is not None
        if isinstance(event, ObjectSent):
            self._at_end += 1
        elif isinstance(event, ObjectAborted):
            self._at_end += 1
            self.failures.append(event.reason)
        elif isinstance(event, FlushCompleted) and not self._left and self._at_end == len(self._jobs):
            self.ended_at = self._host.now
        if self.watch is not None:
            self.watch(event)

    def finished(self) -> bool:
        """Whether everything is sent and flushed."""
        return self.ended_at is not None

    def result(self) -> dict[str, Any]:
        """What was sent, as plain values; counts as the protocol calls them."""
        return {
            "role": "sender",
            "ended_at": self.ended_at,
            "sent": sorted([object_id, number] for object_id, number in self.sent.items()),
            "failures": self.failures,
            "counts": {} if self.machine is None else self.machine.counts(),
        }


class ReceiverProgram:
    """Takes the objects for which `sinks` has a place; finished when `expected` of them came (None: never)."""

    __slots__ = (
        "_expected",
        "_host",
        "_invariants",
        "_name",
        "_node",
        "_one_run",
        "_open",
        "_sinks",
        "aborted",
        "duplicates",
        "first_at",
        "last_at",
        "machine",
        "octets",
        "received",
        "watch",
    )

    def __init__(
        self,
        node: Node,
        sinks: Sinks,
        expected: int | None = None,
        watch: Callable[[Event], None] | None = None,
        one_run: bool = False,
    ) -> None:
        self._one_run = one_run
        self._name = ""
        self._invariants: Invariants | None = None
        self._node = node
        self._sinks = sinks
        self._expected = expected
        self._host: PortsHost | None = None
        self._open: dict[Key, Sink] | None = None
        self.machine: Machine | None = None
        self.received: dict[Key, tuple[int, Sink | None]] | None = None
        """(sender, object id) -> (size, sink); None until something came, because dictionaries are heavy."""
        self.octets = self.aborted = self.duplicates = 0
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.watch = watch

    def start(self, host: PortsHost) -> None:
        """Make the receiver on the host; a second call, after a crash, begins without any state."""
        node = self._node
        self._host = host
        self._open = self.received = None
        self.octets = 0
        self.first_at = self.last_at = None
        self.machine = node.protocol.makers(node.fast).make_receiver(host, node.config, node.id, node.group)
        host.run(self.machine, self._on_event, self._accept)

    def check_with(self, name: str, invariants: Invariants) -> None:
        """Report received and aborted objects to the checker under this name; call before `start`."""
        self._name, self._invariants = name, invariants

    def restarted_after(self, times: int) -> None:
        """The host crashed so often before `start`: a receiver begins with nothing each time."""

    def crash(self) -> None:
        """The host is going down."""
        if self._invariants is not None:
            self._invariants.forgotten(self._name)

    def _accept(self, offer: Offer) -> Sink | None:
        sink = self._sinks(offer)
        if sink is not None and sink is not ACCOUNTED:
            self._open = self._open or {}
            self._open[offer.sender, offer.object_id] = sink
        return sink

    def _on_event(self, event: Event) -> None:
        assert self._host is not None
        if isinstance(event, ObjectReceived):
            self._check(event)
            self._keep((event.sender, event.object_id), event.size)
            self.last_at = self._host.now
        elif isinstance(event, ObjectAborted):
            self._check(event)
            self.aborted += 1
        elif isinstance(event, ObjectOpened):
            if self.first_at is None:
                self.first_at = self._host.now
            self._check(event)
        elif isinstance(event, SenderReset):
            self._forget(event.sender)
        if self.watch is not None:
            self.watch(event)

    def _check(self, event: ObjectReceived | ObjectAborted | ObjectOpened) -> None:
        invariants = self._invariants
        if invariants is None or self._host is None or self.machine is None:
            return
        now, key = self._host.now, (event.sender, event.object_id)
        had = self.received is not None and key in self.received
        if isinstance(event, ObjectReceived):
            invariants.received(self._name, event, had, now)
        elif isinstance(event, ObjectAborted):
            invariants.aborted(self._name, key, had, now)
        else:
            invariants.weigh(self._name, self.machine, now)

    def _forget(self, sender: int) -> None:
        """A sender that restarted in a run sends everything again. On a real network another `send` has other files."""
        if not self._one_run:
            return
        if self._invariants is not None:
            self._invariants.forgotten(self._name, sender)
        if self.received:
            self.received = {key: kept for key, kept in self.received.items() if key[0] != sender}
            self.octets = sum(size for size, _ in self.received.values())

    def _keep(self, key: Key, size: int) -> None:
        self.received = self.received or {}
        if key in self.received:
            self.duplicates += 1
            return
        self.received[key] = (size, self._open.pop(key, None) if self._open else None)
        self.octets += size

    def finished(self) -> bool:
        """Whether everything that was expected is there."""
        return self._expected is not None and len(self.received or ()) >= self._expected

    def result(self) -> dict[str, Any]:
        """What came, as plain values: rows [sender, object id, size, SHA-256 or None]. Waits for hashes under way."""
        came = sorted((self.received or {}).items())
        return {
            "role": "receiver",
            "first_at": self.first_at,
            "last_at": self.last_at,
            "received": [[*key, size, _digest(sink)] for key, (size, sink) in came],
            "duplicates": self.duplicates,
            "aborted": self.aborted,
            "counts": {} if self.machine is None else self.machine.counts(),
        }


def _digest(sink: Sink | None) -> str | None:
    if isinstance(sink, MemorySink):
        return sink.sha256
    if isinstance(sink, ScratchSink):
        return None if sink.digest is None else sink.digest.result()
    return None


def accounted(offer: Offer) -> Sink:
    """Sinks for content without bytes."""
    return ACCOUNTED


def in_memory(offer: Offer) -> Sink:
    """Sinks for simulated receivers of real bytes."""
    return MemorySink(offer.size)


class OnDisk:
    """Sinks for emulated receivers; the hashing thread begins with the first object, after the node was forked."""

    __slots__ = ("_hasher",)

    def __init__(self) -> None:
        self._hasher: Hasher | None = None

    def __call__(self, offer: Offer) -> Sink:
        self._hasher = self._hasher or Hasher()
        return ScratchSink(offer.size, self._hasher)
