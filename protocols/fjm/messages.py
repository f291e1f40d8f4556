"""What managers, publishers and subscribers say to each other, all by multicast to the group of the session."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message

__all__ = ["Answer", "Ask", "Candidate", "Guard", "Register", "Registered", "Unregister"]


@dataclass(slots=True)
class Candidate(Message):
    """A topic manager wants to be the guard, or answers a lower one that wants to."""

    kind: ClassVar[str] = "candidate"
    node: int


@dataclass(slots=True)
class Guard(Message):
    """The guard lives."""

    kind: ClassVar[str] = "guard"
    node: int


@dataclass(slots=True)
class Ask(Message):
    """A publisher or a subscriber asks the guard for a topic."""

    kind: ClassVar[str] = "ask"
    is_feedback: ClassVar[bool] = True
    node: int
    destination: str


@dataclass(slots=True)
class Answer(Message):
    """The guard tells the manager of a topic, and the number of its multicast group."""

    kind: ClassVar[str] = "answer"
    manager: int
    place: int
    destination: str


@dataclass(slots=True)
class Register(Message):
    """A publisher or a subscriber becomes a member of a topic, by the topic's manager."""

    kind: ClassVar[str] = "register"
    is_feedback: ClassVar[bool] = True
    node: int
    manager: int
    destination: str


@dataclass(slots=True)
class Registered(Message):
    """A topic has a new member, and so many in all; or, where there are fewer, `node` is none any more."""

    kind: ClassVar[str] = "registered"
    node: int
    members: int
    destination: str


@dataclass(slots=True)
class Unregister(Message):
    """A member of a topic leaves it."""

    kind: ClassVar[str] = "unregister"
    is_feedback: ClassVar[bool] = True
    node: int
    manager: int
    destination: str
