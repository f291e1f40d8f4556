"""Programs made of programs: several on one host, and one that is not there all the time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, cast

from emu.node import Program
from experiments.program import SenderProgram
from protocols.machine import Host, Message
from protocols.several import Several

__all__ = ["Role", "Troupe", "Visitor"]


class Role:
    """One program of a host: `name` names its dice ("" for the host's own), `takes` says which messages are for it."""

    __slots__ = ("name", "program", "takes")

    def __init__(self, name: str, takes: Callable[[Message], bool], program: Program) -> None:
        self.name = name
        self.takes = takes
        self.program = program


class Troupe:
    """Programs side by side on one host."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = roles

    def start(self, host: Host) -> None:
        """Start them in order."""
        whole = Several(host)
        for role in self._roles:
            role.program.start(cast(Host, whole.part(role.name, role.takes)))

    def finished(self) -> bool:
        """Have all senders finished, of which there are some?"""
        senders = [role.program for role in self._roles if isinstance(role.program, SenderProgram)]
        return bool(senders) and all(sender.finished() for sender in senders)

    def result(self) -> dict[str, Any]:
        """The results of all, in order."""
        return {"role": "troupe", "parts": [role.program.result() for role in self._roles]}


class _Stoppable(Host, Protocol):
    def stop(self) -> None:
        """The machine runs no more."""


class Visitor:
    """A program that starts at `join` and is stopped at `leave`."""

    def __init__(self, program: Program, join: float, leave: float | None) -> None:
        self._program = program
        self._join = join
        self._leave = leave

    def start(self, host: Host) -> None:
        """Plan both."""
        if self._join > host.now:
            host.later(self._join, partial(self._program.start, host))
        else:
            self._program.start(host)
        if self._leave is not None:
            host.later(self._leave, cast(_Stoppable, host).stop)

    def finished(self) -> bool:
        """Nobody waits for it."""
        return self._program.finished()

    def result(self) -> dict[str, Any]:
        """Of the program."""
        return self._program.result()
