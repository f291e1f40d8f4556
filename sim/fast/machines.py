"""Which machines and messages take part in the fast engine's shortcuts: the only module that checks their types."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from protocols.composite import ComponentHost, CompositeMachine
from protocols.fast.contract import FastMachine, FastMessage, Other
from protocols.fast.group import MachineGroup
from protocols.machine import Address, Machine, Message
from protocols.snapshot import Snapshot
from sim.group_members import GroupMembers

__all__ = ["are_hosted", "begins_chain", "fast_machine", "fast_machines", "make_group"]

Maker: TypeAlias = Callable[[list[Any], list[Other]], Any]

_known: Final[dict[type, bool]] = {}
_NONE: Final[Sequence[FastMachine]] = ()


def fast_machine(machine: Any) -> FastMachine | None:
    """Return the machine if it is a fast one, else None; the check, which is slow, is made once for each class."""
    kind = type(machine)
    known = _known.get(kind)
    if known is None:
        known = _known[kind] = issubclass(kind, FastMachine)
    return machine if known else None


def fast_machines(machine: Machine) -> Sequence[FastMachine]:
    """Return the fast machines that a composite machine consists of; none if it is not in a group, and of other machines."""
    if type(machine) is not CompositeMachine or not machine.on_change:
        return _NONE
    found = [fast_machine(component.machine) for component in machine.components]
    return [each for each in found if each is not None]


def are_hosted(machines: Sequence[Machine]) -> bool:
    """Return whether the ports of all these machines are hosts, as they are not of parts of composite machines."""
    return CompositeMachine not in set(map(type, machines))


def begins_chain(message: Message) -> bool:
    """Return whether the message determines the next state of its receivers, which may then be advanced together."""
    return isinstance(message, FastMessage) and message.next_state is not None


def make_group(members: GroupMembers, to: Address) -> MachineGroup | None:
    """Return a group that advances the fast ones among the machines that listen to `to` together.

    None if there are none, or if these differ in how. A part of a composite machine may be one; the composite then dissolves
    the group when it changes.
    """
    machines = members.machines
    assert machines is not None, "the members are packed before a delivery"
    kinds = list(dict.fromkeys(map(type, machines)))
    if len(kinds) == 1 and kinds[0] is not CompositeMachine:
        maker = _maker_of(machines[0])
        return None if maker is None else maker(machines, [])
    parts = [_part_for(machine, to) for machine in machines]
    makers = dict.fromkeys(maker for machine, _ in parts if (maker := _maker_of(machine)) is not None)
    if len(makers) != 1:
        return None
    kind = next(type(machine) for machine, _ in parts if _maker_of(machine) in makers)
    others: list[Other] = []
    for index, (whole, (machine, part)) in enumerate(zip(machines, parts, strict=True)):
        if type(machine) is not kind:
            others.append((index, whole, _takes_feedback_only(whole)))
        elif part is not None:
            assert isinstance(whole, CompositeMachine)
            if members.dissolve not in whole.on_change:
                whole.on_change.append(members.dissolve)
            beside = [each.machine for each in whole.components if each is not part and to in each.groups]
            if beside:
                others.append((index, _Rest(whole, part), all(map(_takes_feedback_only, beside))))
    maker = next(iter(makers))
    group: MachineGroup | None = maker([machine if type(machine) is kind else None for machine, _ in parts], others)
    return group


def _maker_of(machine: Any) -> Maker | None:
    """Return what makes groups of such machines, if anything does."""
    found = fast_machine(machine)
    if found is None or type(found).make_group is FastMachine.make_group:
        return None
    return type(found).make_group


def _part_for(machine: Machine, to: Address) -> tuple[Any, ComponentHost | None]:
    """Return the only machine of a composite that can be in a lockstep group for `to`, and its host; else the machine.

    Such a machine takes all messages of its protocol.
    """
    if type(machine) is CompositeMachine:
        listening = [each for each in machine.components if to in each.groups and _maker_of(each.machine) is not None]
        if len(listening) == 1:
            return listening[0].machine, listening[0]
    return machine, None


def _takes_feedback_only(machine: Machine | None) -> bool:
    found = fast_machine(machine)
    return found is not None and found.takes_feedback_only


class _Rest(Machine):
    """The components of a composite machine but one, as receivers."""

    __slots__ = ("_composite", "_part")

    def __init__(self, composite: CompositeMachine, part: ComponentHost) -> None:
        super().__init__(composite.ports)
        self._composite = composite
        self._part = part

    def start(self, now: float) -> None:
        """Do nothing: the composite is running."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to the components."""
        self._composite.deliver(message, source, to, now, self._part)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message that a queue marked to the components."""
        self._composite.deliver(message, source, to, now, self._part, "receive_marked")

    def wake(self, now: float) -> None:
        """Wake the composite."""
        self._composite.wake(now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the composite."""
        return self._composite.counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the composite."""
        return self._composite.snapshot(now)
