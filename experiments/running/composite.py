"""Programs that run other programs: several on one host, and a receiver that joins late or leaves early."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from experiments.running.foreign_brokers import MosquittoPublisher
from experiments.running.program import ReceiverProgram, SenderProgram
from experiments.running.publishing import PublisherProgram
from experiments.running.subscribing import SubscriberProgram
from protocols.composite import ComponentHost, CompositeMachine
from protocols.hosting import PortsHost, Program
from protocols.leaving import LeavingMachine
from protocols.machine import Codec

__all__ = ["RestartableProgram", "Role", "CompositeProgram", "PartTimeReceiver"]


class RestartableProgram(Program, Protocol):
    """A program that can be restarted: after each crash of its host, `start` is called again."""

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes of the host, whose programs ran in other processes; call before `start`."""

    def crash(self) -> None:
        """Handle a crash of the host."""


@dataclass(frozen=True, slots=True)
class Role:
    """One program of a host; its port is its number among those of the host."""

    name: str
    """The name of its random stream; "" for the host's own."""
    program: RestartableProgram
    codec: Callable[[], Codec] | None = None
    """Makes the codec of its messages; None: that of the protocol of the scenario."""


class CompositeProgram:
    """Several programs on one host."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = roles
        self._whole: CompositeMachine | None = None
        self._components: list[ComponentHost] = []
        self._away: set[int] = set()
        """The ports of publishers and subscribers that left."""

    def start(self, host: PortsHost) -> None:
        """Start all programs, in order."""
        whole = self._whole = CompositeMachine(host)
        self._away.clear()
        self._components.clear()
        for role in self._roles:
            self._components.append(whole.component(role.name, role.codec))
            role.program.start(self._components[-1])

    def leave(self) -> None:
        """Let the publishers and subscribers leave; the other programs go on."""
        for port, role in enumerate(self._roles):
            if isinstance(role.program, (PublisherProgram, SubscriberProgram)):
                role.program.leave()
                self._close(port)
                self._away.add(port)

    def _close(self, port: int) -> None:
        """Remove a component whose machine, if it had any, is gone."""
        assert self._whole is not None
        if self._components[port] in self._whole.components:
            self._components[port].stop()

    def come(self) -> None:
        """Start what left again, unless the host crashed meanwhile."""
        away, self._away = sorted(self._away), set()
        for port in away:
            assert self._whole is not None
            role = self._roles[port]
            self._components[port] = self._whole.component(role.name, role.codec, port)
            role.program.start(self._components[port])

    def crash(self) -> None:
        """Handle a crash of the host: all programs crash."""
        self._away.clear()
        for role in self._roles:
            role.program.crash()

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes of the host; call before `start`."""
        for role in self._roles:
            role.program.restarted_after(times)

    def finished(self) -> bool:
        """Return whether there are senders or publishers, and all have finished."""
        awaited = (SenderProgram, PublisherProgram, MosquittoPublisher)
        senders = [role.program for role in self._roles if isinstance(role.program, awaited)]
        return bool(senders) and all(sender.finished() for sender in senders)

    def result(self) -> dict[str, Any]:
        """Return the results of all programs, in order."""
        return {"role": "composite", "parts": [role.program.result() for role in self._roles]}


class PartTimeReceiver:
    """A receiver that starts at `join` seconds and stops at `leave` seconds (None: never)."""

    def __init__(self, program: ReceiverProgram, join: float, leave: float | None) -> None:
        self.program = program
        self._join = join
        self._leave = leave
        self._life = 0

    def start(self, host: PortsHost) -> None:
        """Schedule join and leave; a call after a crash schedules them again."""
        self._life += 1
        if self._leave is not None and self._leave <= host.now:
            return
        if self._join > host.now:
            host.later(self._join, partial(self._in_life, self._life, partial(self.program.start, host)))
        else:
            self.program.start(host)
        if self._leave is not None:
            host.later(self._leave, partial(self._in_life, self._life, partial(self._depart, host)))

    def _depart(self, host: PortsHost) -> None:
        """Stop the host; a machine that announces its leaving does so before."""
        if isinstance(self.program.machine, LeavingMachine):
            host.call(self.program.machine.leave)
        host.stop()

    def _in_life(self, life: int, action: Callable[[], None]) -> None:
        """Call `action` unless the host has crashed since it was scheduled."""
        if life == self._life:
            action()

    def crash(self) -> None:
        """Handle a crash of the host; a receiver that has not joined yet does so no earlier than the host restarts."""
        self._life += 1
        self.program.crash()

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes of the host; call before `start`."""
        self.program.restarted_after(times)

    def finished(self) -> bool:
        """Return whether the receiver has finished; a run does not wait for it."""
        return self.program.finished()

    def result(self) -> dict[str, Any]:
        """Return the result of the receiver."""
        return self.program.result()
