"""Which machines and messages take part in the fast engine's shortcuts: the only place that looks at their types."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocols.machine import Machine, Message

__all__ = ["AcceleratedMachine", "accelerated", "all_accelerated", "begins_chain"]

AcceleratedMachine: TypeAlias = Machine

_known: dict[type, bool] = {}


def accelerated(machine: Any) -> AcceleratedMachine | None:
    """Return the machine if it can be in a lockstep group and plan bursts, else None; the check is made once for each class."""
    kind = type(machine)
    known = _known.get(kind)
    if known is None:
        known = _known[kind] = issubclass(kind, AcceleratedMachine)
    return machine if known else None


def all_accelerated(machines: Sequence[Machine]) -> bool:
    """Whether all machines of a group can be in a lockstep group."""
    return all(accelerated(machine) is not None for machine in machines)


def begins_chain(message: Message) -> bool:
    """Whether the message moves receivers to another state of its sender's chain."""
    return message.next_state is not None
