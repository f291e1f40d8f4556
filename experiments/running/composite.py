"""Programs made of programs: several on one host, and one that is not there all the time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from emu.node import Program
from experiments.running.program import ReceiverProgram, SenderProgram
from protocols.composite import CompositeMachine
from protocols.hosting import PortsHost
from protocols.machine import Message

__all__ = ["Lively", "Role", "CompositeProgram", "PartTimeReceiver"]


class Lively(Program, Protocol):
    """A program that survives crashes of its host: `start` is called again after each."""

    def restarted_after(self, times: int) -> None:
        """The host crashed so often before `start`, in other processes."""

    def crash(self) -> None:
        """The host is going down."""


class Role:
    """One program of a host: `name` selects its random stream ("" for the host's own), `takes` its messages."""

    __slots__ = ("name", "program", "takes")

    def __init__(self, name: str, takes: Callable[[Message], bool], program: Lively) -> None:
        self.name = name
        self.takes = takes
        self.program = program


class CompositeProgram:
    """Programs side by side on one host."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = roles

    def start(self, host: PortsHost) -> None:
        """Start them in order."""
        whole = CompositeMachine(host)
        for role in self._roles:
            role.program.start(whole.component(role.name, role.takes))

    def crash(self) -> None:
        """The host is going down, with all of them."""
        for role in self._roles:
            role.program.crash()

    def restarted_after(self, times: int) -> None:
        """The host crashed so often before `start`."""
        for role in self._roles:
            role.program.restarted_after(times)

    def finished(self) -> bool:
        """Whether there are senders and all of them have finished."""
        senders = [role.program for role in self._roles if isinstance(role.program, SenderProgram)]
        return bool(senders) and all(sender.finished() for sender in senders)

    def result(self) -> dict[str, Any]:
        """The results of all, in order."""
        return {"role": "composite", "parts": [role.program.result() for role in self._roles]}


class PartTimeReceiver:
    """A receiver that starts at `join` and is stopped at `leave`."""

    def __init__(self, program: ReceiverProgram, join: float, leave: float | None) -> None:
        self.program = program
        self._join = join
        self._leave = leave
        self._life = 0

    def start(self, host: PortsHost) -> None:
        """Plan both; after a crash, anew."""
        self._life += 1
        if self._leave is not None and self._leave <= host.now:
            return
        if self._join > host.now:
            host.later(self._join, partial(self._in_life, self._life, partial(self.program.start, host)))
        else:
            self.program.start(host)
        if self._leave is not None:
            host.later(self._leave, partial(self._in_life, self._life, host.stop))

    def _in_life(self, life: int, action: Callable[[], None]) -> None:
        """Do what was planned, unless the host crashed since."""
        if life == self._life:
            action()

    def crash(self) -> None:
        """The host is going down; nothing to do for a receiver that has not joined."""
        if self.program.machine is not None:
            self._life += 1
            self.program.crash()

    def restarted_after(self, times: int) -> None:
        """The host crashed so often before `start`."""
        self.program.restarted_after(times)

    def finished(self) -> bool:
        """As the program: a run does not wait for it."""
        return self.program.finished()

    def result(self) -> dict[str, Any]:
        """Of the program."""
        return self.program.result()
