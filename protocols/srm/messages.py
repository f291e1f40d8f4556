"""The messages of SRM beside DATA and END of `protocols.arq`: requests, repairs, and session messages."""

from dataclasses import dataclass, field

from protocols.arq.messages import Data, Nack
from protocols.machine import Message

__all__ = ["Echo", "Position", "Repair", "Request", "SessionMessage", "microseconds", "repair_of", "request_of"]

Position = tuple[int, int, int, int]
"""Highest unit sent by a source as a member has it: (source, instance, object id, unit), up to and without that unit."""
Echo = tuple[int, int]
"""The clock in the last session message of another member, and the time since it came, both in microseconds."""
LARGEST = 0xFFFFFFFF


@dataclass(slots=True)
class Request(Nack):
    """A NACK with the requester's distance to the source in microseconds; 0 if it has not been measured."""

    distance: int = 0

    def __init__(self, sender: int, instance: int, object_id: int, unit: int, node: int, distance: int = 0) -> None:
        # Not by `super()`: `slots=True` makes another class of this one.
        Nack.__init__(self, sender, instance, object_id, unit, node)
        self.distance = distance


@dataclass(slots=True)
class Repair(Data):
    """A repeated unit with the distance of its sender to the requester in microseconds; 0 if it has not been measured."""

    distance: int = 0

    def __init__(
        self,
        sender: int,
        instance: int,
        object_id: int,
        unit: int,
        first: int,
        size: int,
        segment: int,
        is_file: bool,
        repair: bool,
        payload: bytes | None,
        length: int,
        identity: int | None = None,
        distance: int = 0,
    ) -> None:
        Data.__init__(self, sender, instance, object_id, unit, first, size, segment, is_file, repair, payload, length, identity)
        self.distance = distance


@dataclass(slots=True)
class SessionMessage(Message):
    """Report of member `node`: its clock in microseconds, the positions of its sources, and echoes to members.

    A source puts its own position first.
    A member that sent a session message with clock t at t, and receives the echo (t, held) at t', is (t' - t - held) / 2 away
    (Floyd et al. 1997, section III-A). Clocks are modulo 2**32.
    """

    node: int
    clock: int
    positions: tuple[Position, ...] = ()
    echoes: dict[int, Echo] = field(default_factory=dict)
    """Echoes by the node id of the member they are for."""

    def __init__(
        self, node: int, clock: int, positions: tuple[Position, ...] = (), echoes: dict[int, Echo] | None = None
    ) -> None:
        self.node = node
        self.clock = clock
        self.positions = positions
        self.echoes = {} if echoes is None else echoes

    @property
    def brief(self) -> str:
        """The member, and the number of its echoes."""
        return f"{self.node}+{len(self.echoes)}"


def microseconds(seconds: float | None) -> int:
    """Return a distance for a message: from 1 to 2**32 - 1 microseconds; 0 for None."""
    return 0 if seconds is None else min(max(round(seconds * 1e6), 1), LARGEST)


def request_of(nack: Nack, distance: int) -> Request:
    """Return a NACK with the requester's distance to the source in microseconds."""
    return Request(nack.sender, nack.instance, nack.object_id, nack.unit, nack.node, distance)


def repair_of(message: Data, distance: int) -> Repair:
    """Return the repair of a unit by a member at this distance to the requester in microseconds."""
    return Repair(
        message.sender,
        message.instance,
        message.object_id,
        message.unit,
        message.first,
        message.size,
        message.segment,
        message.is_file,
        True,
        message.payload,
        message.length,
        message.identity,
        distance,
    )


# To mypyc these would be fields, if they were in the dataclasses.
Request.extra = Repair.extra = 4
SessionMessage.kind = "session"
