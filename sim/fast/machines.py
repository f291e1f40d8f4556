"""Which machines and messages take part in the fast engine's shortcuts: the only place that looks at their types."""

from typing import Any, Final

from protocols.fast.contract import FastMachine, FastMessage
from protocols.fast.group import MachineGroup
from protocols.machine import Message

__all__ = ["begins_chain", "fast_machine", "make_group"]

_known: Final[dict[type, bool]] = {}


def fast_machine(machine: Any) -> FastMachine | None:
    """Return the machine if it is a fast one, else None; the check, which is slow, is made once for each class."""
    kind = type(machine)
    known = _known.get(kind)
    if known is None:
        known = _known[kind] = issubclass(kind, FastMachine)
    return machine if known else None


def begins_chain(message: Message) -> bool:
    """Whether the message determines the next state of its receivers, which may then be advanced together."""
    return isinstance(message, FastMessage) and message.next_state is not None


def make_group(machines: list[Any]) -> MachineGroup | None:
    """Return a group that advances the fast ones among these machines together; None if these differ in how."""
    kinds = dict.fromkeys(type(machine) for machine in machines if fast_machine(machine) is not None)
    makers = dict.fromkeys(kind.make_group for kind in kinds if kind.make_group is not FastMachine.make_group)
    return next(iter(makers))(machines) if len(makers) == 1 else None
