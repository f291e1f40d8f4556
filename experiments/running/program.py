"""The application of one node: sends or receives objects, in the simulator, in Mininet and on a real network alike.

A program makes its machine on the host given to `start`, calls it through `host.call` and `host.later` only, and returns its
result at the end. Programs have slots, since a simulated run may have ten thousand receivers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from experiments.running.content import Accounted, MemorySink
from experiments.running.files import ScratchSink
from experiments.running.hashing import Hasher
from experiments.running.invariants import Invariants
from experiments.running.lives import NO_COUNTS, total_counts
from experiments.running.open_sinks import AbortableSink, OpenSinks
from protocols.events import (
    FlushCompleted,
    ObjectAborted,
    ObjectOpened,
    ObjectPurged,
    ObjectReceived,
    ObjectsAborted,
    ObjectSent,
    SenderHeard,
    SenderReset,
)
from protocols.hosting import PortsHost
from protocols.machine import Content, Event, Group, Machine, Offer, Sender, Sink
from protocols.roles import RoleContext
from protocols.spec import ProtocolSpec

__all__ = ["Job", "Node", "OnDisk", "ReceiverProgram", "SenderProgram", "accounted", "in_memory"]

Key: TypeAlias = tuple[int, int]
Sinks: TypeAlias = Callable[[Offer], AbortableSink | Accounted | None]
ACCOUNTED = Accounted()


@dataclass(frozen=True, slots=True)
class Node:
    """The parameters of a program's machine; `id` is the 32-bit node id within the protocol.

    `instance` is that of a sender, raised by one at each restart. `fast`: make the protocol's fast machines, which only the
    simulator runs. `places` are the hosts, with the port there, of all machines of each role that others need.
    """

    protocol: ProtocolSpec
    config: Any
    id: int
    group: Group
    instance: int = 1
    fast: bool = False
    places: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)

    def make(self, role: str, host: PortsHost, instance: int) -> Machine:
        """Make the machine of the role `sender` or `receiver` on the host's ports."""
        found = self.protocol.file_role(role, self.fast)
        addresses = {need: [host.address_of(*place) for place in self.places[need]] for need in found.needs}
        return found.make(host, RoleContext(self.config, self.id, self.group, instance, addresses=addresses))


@dataclass(frozen=True, slots=True)
class Job:
    """Content to submit to the sender at `at` seconds."""

    at: float
    content: Content


class SenderProgram:
    """Submit jobs to a sender; finished when each object was sent and the flush after the last one has completed."""

    __slots__ = (
        "_down",
        "_earlier",
        "_ended",
        "_host",
        "_invariants",
        "_jobs",
        "_left",
        "_node",
        "_repairable",
        "_restarts",
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
        self._restarts = -1
        self._down = False
        self._ended = 0
        self._earlier = NO_COUNTS
        """Counters of the machines before crashes."""
        # Objects that were sent and can still fail, in a repair.
        self._repairable: set[int] = set()
        self._host: PortsHost | None = None
        self.machine: Sender | None = None
        self.sent: dict[int, int] = {}
        """Object id -> index of the job."""
        self.failures: list[str] = []
        self.ended_at: float | None = None
        self.watch = watch

    def start(self, host: PortsHost) -> None:
        """Run a sender on the host and schedule the jobs; a call after a crash does so again, as another instance."""
        node = self._node
        self._host = host
        self._restarts += 1
        self._down = False
        self._left, self._ended, self.sent, self.ended_at = len(self._jobs), 0, {}, None
        self._repairable.clear()
        instance = (node.instance + self._restarts) & 0xFFFF
        self.machine = cast(Sender, node.make("sender", host, instance))
        host.run(self.machine, self._on_event)
        for number, job in enumerate(self._jobs):
            if job.at <= host.now:
                self._submit(number)
            else:
                host.later(job.at, partial(self._submit_in, self._restarts, number))

    def check_with(self, name: str, invariants: Invariants) -> None:
        """Report submitted objects to `invariants`; call before `start`."""
        del name
        self._invariants = invariants

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes, in other processes, from which the instance follows; call before `start`."""
        self._restarts = times - 1

    def crash(self) -> None:
        """Handle a crash of the host: scheduled jobs are cancelled."""
        if self.machine is not None and not self._down:
            self._earlier = total_counts(self._earlier, self.machine)
        self._down = True
        self.ended_at = None

    def _submit_in(self, restarts: int, number: int) -> None:
        if restarts == self._restarts and not self._down:
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
            self._ended += 1
            self._repairable.add(event.object_id)
        elif isinstance(event, ObjectPurged):
            self._repairable.discard(event.object_id)
        elif isinstance(event, ObjectAborted):
            self._ended += event.object_id not in self._repairable
            self._repairable.discard(event.object_id)
            self.failures.append(event.reason)
        elif isinstance(event, FlushCompleted) and not self._left and self._ended == len(self._jobs):
            self.ended_at = self._host.now
        if self.watch is not None:
            self.watch(event)

    def finished(self) -> bool:
        """Return whether every object was sent and flushed."""
        return self.ended_at is not None

    def result(self) -> dict[str, Any]:
        """Return what was sent, as plain values; counters by the protocol's names."""
        return {
            "role": "sender",
            "ended_at": self.ended_at,
            "sent": sorted([object_id, number] for object_id, number in self.sent.items()),
            "failures": self.failures,
            "counts": total_counts(self._earlier, None if self._down else self.machine),
        }


class ReceiverProgram:
    """Receive the objects for which `sinks` returns a sink; finished when `expected` of them are received (None: never).

    `one_run`: a restarted sender sends the same objects again, so those received before are forgotten.
    """

    __slots__ = (
        "_earlier",
        "_expected",
        "_host",
        "_invariants",
        "_name",
        "_node",
        "_one_run",
        "_open",
        "_repeatable",
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
        self._earlier = NO_COUNTS
        """Counters of the machines before crashes."""
        self._name = ""
        self._invariants: Invariants | None = None
        self._node = node
        self._sinks = sinks
        self._expected = expected
        self._host: PortsHost | None = None
        self._open: OpenSinks[AbortableSink] | None = None
        self.machine: Machine | None = None
        self.received: dict[Key, tuple[int, AbortableSink | None]] | None = None
        """(sender, object id) -> (size in bytes, sink); None before the first object, to save memory."""
        self._repeatable: set[Key] | None = None
        """Objects that were received before the machine forgot their sender, and may come again; None for none."""
        self.octets = self.aborted = self.duplicates = 0
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.watch = watch

    def start(self, host: PortsHost) -> None:
        """Run a receiver on the host; a call after a crash starts without any state."""
        node = self._node
        self._host = host
        self._open = self.received = self._repeatable = None
        self.octets = 0
        self.first_at = self.last_at = None
        self.machine = node.make("receiver", host, node.instance)
        host.run(self.machine, self._on_event, self._accept)

    def check_with(self, name: str, invariants: Invariants) -> None:
        """Report received and aborted objects to `invariants` under the host name `name`; call before `start`."""
        self._name, self._invariants = name, invariants

    def restarted_after(self, times: int) -> None:
        """Do nothing: a receiver starts without state after any number of crashes."""

    def crash(self) -> None:
        """Handle a crash of the host: received objects are forgotten."""
        if self.machine is not None:
            self._earlier = total_counts(self._earlier, self.machine)
            self.machine = None
        if self._invariants is not None:
            self._invariants.forget(self._name)

    def _accept(self, offer: Offer) -> Sink | None:
        sink = self._sinks(offer)
        if sink is not None and not isinstance(sink, Accounted):
            if self._open is None:
                self._open = OpenSinks()
            self._open.add((offer.sender, offer.object_id), sink)
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
            if self._open is not None:
                self._open.discard((event.sender, event.object_id))
        elif isinstance(event, ObjectsAborted):
            self._check(event)
            self.aborted += event.count
        elif isinstance(event, ObjectOpened):
            if self.first_at is None:
                self.first_at = self._host.now
            self._check(event)
        elif isinstance(event, SenderReset):
            self._forget(event.sender)
        elif isinstance(event, SenderHeard):
            self._begin_again(event.sender)
        if self.watch is not None:
            self.watch(event)

    def _check(self, event: ObjectReceived | ObjectAborted | ObjectsAborted | ObjectOpened) -> None:
        invariants = self._invariants
        if invariants is None or self._host is None or self.machine is None:
            return
        now = self._host.now
        if isinstance(event, ObjectReceived):
            invariants.received(self._name, event, self._has_ended((event.sender, event.object_id)), now)
        elif isinstance(event, ObjectAborted):
            key = event.sender, event.object_id
            invariants.aborted(self._name, key, self._has_ended(key), now)
        elif isinstance(event, ObjectsAborted):
            for step in range(event.count):
                key = event.sender, (event.first + step) & 0xFFFF
                invariants.aborted(self._name, key, self._has_ended(key), now)
        else:
            invariants.check_memory(self._name, self.machine, now)

    def _forget(self, sender: int) -> None:
        """Forget the objects of a sender that restarted within a run, since it sends them again.

        On a real network a restarted sender is another `mcastlab send` with other files.
        """
        if not self._one_run:
            return
        if self._invariants is not None:
            self._invariants.forget(self._name, sender)
        if self.received:
            self.received = {key: kept for key, kept in self.received.items() if key[0] != sender}
            self.octets = sum(size for size, _ in self.received.values())

    def _begin_again(self, sender: int) -> None:
        """Let objects of a sender end again: it is heard for the first time, or again since the machine forgot it."""
        if self._invariants is not None and (self.received or self.aborted):
            self._invariants.forget(self._name, sender)
        known = {key for key in self.received or () if key[0] == sender}
        if known:
            self._repeatable = (self._repeatable or set()) | known

    def _has_ended(self, key: Key) -> bool:
        """Return whether an object was received, and may not come again."""
        return key in (self.received or ()) and key not in (self._repeatable or ())

    def _keep(self, key: Key, size: int) -> None:
        self.received = self.received or {}
        if self._has_ended(key):
            self.duplicates += 1
            return
        if self._repeatable is not None and key in self._repeatable:
            self._repeatable.remove(key)
            self.octets -= self.received[key][0]
        self.received[key] = (size, None if self._open is None else self._open.take(key))
        self.octets += size

    def finished(self) -> bool:
        """Return whether the expected number of objects was received."""
        return self._expected is not None and len(self.received or ()) >= self._expected

    def result(self) -> dict[str, Any]:
        """Return what was received, as plain values, with rows [sender, object id, size, SHA-256 or None].

        Waits for hashes in progress.
        """
        came = sorted((self.received or {}).items())
        return {
            "role": "receiver",
            "first_at": self.first_at,
            "last_at": self.last_at,
            "received": [[*key, size, _digest(sink)] for key, (size, sink) in came],
            "duplicates": self.duplicates,
            "aborted": self.aborted,
            "counts": total_counts(self._earlier, self.machine),
        }


def _digest(sink: Sink | None) -> str | None:
    if isinstance(sink, MemorySink):
        return sink.sha256
    if isinstance(sink, ScratchSink):
        return None if sink.digest is None else sink.digest.result()
    return None


def accounted(offer: Offer) -> Accounted:
    """Return the sink for content without bytes."""
    return ACCOUNTED


def in_memory(offer: Offer) -> AbortableSink:
    """Return a sink in memory, for simulated content with bytes."""
    return MemorySink(offer.size)


class OnDisk:
    """Make sinks on disk for emulated receivers; the hashing thread starts with the first object, after the node was forked."""

    __slots__ = ("_hasher",)

    def __init__(self) -> None:
        self._hasher: Hasher | None = None

    def __call__(self, offer: Offer) -> AbortableSink:
        self._hasher = self._hasher or Hasher()
        return ScratchSink(offer.size, self._hasher)
