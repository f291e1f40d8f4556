"""Processor time of simulated hosts: what machines state with `Ports.work`, and what sending costs.

A host does one thing after another. While its processor is busy, inputs of its machine wait in a queue, and so do packets it
sends. Hosts whose machines state no work have none of this.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Final

from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message
from protocols.snapshot import Snapshot
from protocols.storage import Record
from sim.idle import IDLE
from sim.kernel import Kernel, Pending
from sim.timers import KernelHost

__all__ = ["HostProcessor", "InputQueue", "ProcessorCounts"]

_GIVE: Final = "give"
"""An input of `InputQueue` that is a message of a connection; its arguments are the end of the connection and the message."""


@dataclass(frozen=True, slots=True)
class ProcessorCounts:
    """Counters of a host's processor: seconds of work, and how many inputs waited for it, for how many seconds in all."""

    host: str
    busy: float
    waited: int
    waiting: float


class HostProcessor(Pending):
    """The processor of one host. When the host's machine first states work, it puts an `InputQueue` before it."""

    __slots__ = ("_host", "_is_halted", "_kernel", "_lives", "_replace", "busy", "busy_until", "waited", "waiting")

    def __init__(self, kernel: Kernel, host: KernelHost, replace: Callable[[Machine], None]) -> None:
        self._kernel = kernel
        self._host = host
        self._replace = replace
        self._lives = 0
        self._is_halted = False
        self.busy_until = 0.0
        self.busy = 0.0
        """Seconds of work so far."""
        self.waited = 0
        """Inputs that waited."""
        self.waiting = 0.0
        """Seconds that they waited, in all."""

    def work(self, seconds: float, now: float) -> None:
        """Be busy for `seconds` more."""
        self.busy_until = max(self.busy_until, now) + seconds
        self.busy += seconds
        if type(self._host.machine) is not InputQueue and self not in self._kernel.pending:
            # Not at once: the machine is in the middle of an input.
            self._kernel.pending.append(self)

    def settle(self) -> None:
        """Put the queue before the machine, after the input in which the machine first states work."""
        machine = self._host.machine
        if machine is not IDLE and type(machine) is not InputQueue:
            self._replace(InputQueue(machine, self, self._host))

    def delay(self, action: Callable[[], None], now: float) -> bool:
        """Call `action` when the processor is free; returns False, without calling it, when it is free now.

        After `halt`, `action` is never called.
        """
        if self._is_halted:
            return True
        if self.busy_until <= now:
            return False
        self._kernel.later(self.busy_until, partial(self._act, self._lives, action))
        return True

    def _act(self, life: int, action: Callable[[], None]) -> None:
        if life == self._lives:
            action()

    def crash(self) -> None:
        """Drop what waits: the host crashed."""
        self._lives += 1
        self.busy_until = 0.0
        self._is_halted = False

    def halt(self) -> None:
        """Drop what the machine sends until the crash that follows."""
        self._is_halted = True

    def counts(self) -> ProcessorCounts:
        """Return its counters."""
        return ProcessorCounts(self._host.name, self.busy, self.waited, self.waiting)


class InputQueue(Machine):
    """A machine before another whose inputs cost processor time: they wait, in order, while the processor is busy."""

    __slots__ = ("_host", "_processor", "_waiting", "inner")

    def __init__(self, inner: Machine, processor: HostProcessor, host: KernelHost) -> None:
        super().__init__(inner.ports)
        self.inner: Any = inner
        self._processor = processor
        self._host = host
        # Since when, what, and with which arguments.
        self._waiting: deque[tuple[float, str, tuple[Any, ...]]] = deque()

    @property
    def deadline(self) -> float:
        """Time of the next queued input or of the machine's deadline, but not before the processor is free."""
        busy_until = self._processor.busy_until
        due: float = busy_until if self._waiting else self.inner.deadline
        return due if due > busy_until else busy_until

    @deadline.setter
    def deadline(self, when: float) -> None:
        assert when == inf, "an input queue has no deadline of its own"

    def start(self, now: float) -> None:
        """Start the machine."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Pass a message on, or let it wait."""
        if isinstance(source, Connection) and self._has_to_wait(now):
            end: Any = source
            end.postpone()
            self._input(_GIVE, (end, message), now)
        else:
            self._input("receive", (message, source, to), now)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Pass on a packet that a queue marked, or let it wait."""
        self._input("receive_marked", (message, source, to), now)

    def resume(self, now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("resume", (), now)

    def opened(self, connection: Connection, now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("opened", (connection,), now)

    def drained(self, connection: Connection, now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("drained", (connection,), now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("closed", (connection, reason), now)

    def stored(self, ticket: int, now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("stored", (ticket,), now)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Pass it on, or let it wait."""
        self._input("fetched", (ticket, records), now)

    def wake(self, now: float) -> None:
        """Process what waits until an input makes the processor busy, then wake the machine if it is due."""
        processor = self._processor
        while self._waiting and processor.busy_until <= now:
            since, verb, arguments = self._waiting.popleft()
            processor.waited += 1
            processor.waiting += now - since
            self._pass(verb, arguments, now)
        if not self._waiting and processor.busy_until <= now and self.inner.deadline <= now:
            self.inner.wake(now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the machine."""
        counts: dict[str, int] = self.inner.counts()
        return counts

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the state the machine keeps."""
        held: dict[str, tuple[int, int]] = self.inner.held()
        return held

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the machine."""
        snapshot: Snapshot = self.inner.snapshot(now)
        return snapshot

    def _has_to_wait(self, now: float) -> bool:
        return bool(self._waiting) or self._processor.busy_until > now

    def _input(self, verb: str, arguments: tuple[Any, ...], now: float) -> None:
        """Pass on an input, the name of a method of `Machine` or `_GIVE`, or let it wait."""
        if not self._has_to_wait(now):
            self._pass(verb, arguments, now)
            return
        self._waiting.append((now, verb, arguments))
        self._host.arm(self.deadline)

    def _pass(self, verb: str, arguments: tuple[Any, ...], now: float) -> None:
        # By name: `inner` may have become another one while the input waited.
        if verb == _GIVE:
            end, message = arguments
            end.give(self.inner.receive, message, now)
        else:
            getattr(self.inner, verb)(*arguments, now)
