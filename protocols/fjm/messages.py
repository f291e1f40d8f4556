"""The messages of managers, publishers and subscribers, all by multicast to the group of the session."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message

__all__ = [
    "MOST_TOPICS",
    "Answer",
    "Ask",
    "Candidate",
    "ForManagers",
    "FromManager",
    "Guard",
    "Register",
    "Registered",
    "Unregister",
]

MOST_TOPICS = 1000
"""Topics of a session; their groups are numbered."""


class ForManagers(Message):
    """A message for managers; publishers and subscribers receive it, too, and ignore it."""

    __slots__ = ()


class FromManager(Message):
    """A message of a manager to publishers and subscribers."""

    __slots__ = ()


@dataclass(slots=True)
class Candidate(ForManagers):
    """A topic manager stands for election as guard, or answers a candidate with a lower id."""

    kind: ClassVar[str] = "candidate"
    node: int


@dataclass(slots=True)
class Guard(ForManagers):
    """Heartbeat of the guard."""

    kind: ClassVar[str] = "guard"
    node: int


@dataclass(slots=True)
class Ask(ForManagers):
    """Request of a publisher or a subscriber to the guard for the manager of a topic."""

    kind: ClassVar[str] = "ask"
    is_feedback: ClassVar[bool] = True
    node: int
    destination: str


@dataclass(slots=True)
class Answer(FromManager):
    """Reply of the guard: the manager of a topic, and the number of its multicast group."""

    kind: ClassVar[str] = "answer"
    manager: int
    place: int
    destination: str


@dataclass(slots=True)
class Register(ForManagers):
    """Request of a publisher or a subscriber to the manager of a topic to become a member."""

    kind: ClassVar[str] = "register"
    is_feedback: ClassVar[bool] = True
    node: int
    manager: int
    destination: str


@dataclass(slots=True)
class Registered(FromManager):
    """Reply of a manager: the number of members of a topic after `node` joined or left."""

    kind: ClassVar[str] = "registered"
    node: int
    members: int
    destination: str


@dataclass(slots=True)
class Unregister(ForManagers):
    """Notice of a member that leaves a topic."""

    kind: ClassVar[str] = "unregister"
    is_feedback: ClassVar[bool] = True
    node: int
    manager: int
    destination: str
