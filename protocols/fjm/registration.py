"""How a publisher or a subscriber becomes a member of topics: it asks the guard, and registers with the topic's manager."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

from protocols.errors import UsageError
from protocols.fjm.config import FjmConfig
from protocols.fjm.messages import MOST_TOPICS, Answer, Ask, Register, Registered, Unregister
from protocols.fjm.wire import size_of
from protocols.machine import Group, Machine, Message, Packet
from protocols.norm.maps import SmallDict
from protocols.roles import RoleContext

__all__ = ["RegisteredClient", "Registration", "topic_group"]

_NO_TOPICS: Final[dict[str, Group]] = {}
"""The other topics of most clients, in a session of one topic; never modified."""


@lru_cache(maxsize=MOST_TOPICS)
def topic_group(group: Group, place: int) -> Group:
    """Return the group of a topic by its number: another port of the session's address, or another name."""
    address, colon, port = group.name.rpartition(":")
    if colon and port.isdigit():
        return Group(f"{address}:{(int(port) + 1 + place) & 0xFFFF}", group.network)
    return Group(f"{group.name}.{place}", group.network)


@dataclass(slots=True)
class _Topic:
    """A topic: its manager and group from the answer of the guard on, and whether the manager has registered this client."""

    manager: int = -1
    group: Group | None = None
    is_member: bool = False
    members: int = 0
    again_at: float = inf


class Registration:
    """The topics of one client, whose `registered` is called when it is a member of a topic."""

    __slots__ = ("_client", "_group", "_node", "_topics", "deadline", "groups_refused", "others")

    def __init__(self, context: RoleContext, client: "RegisteredClient") -> None:
        self._client = client
        self._node = context.node
        self._group = context.group
        self._topics: SmallDict[_Topic] = SmallDict()
        self.groups_refused = 0
        """How often the host could not join the group of a topic."""
        self.others = _NO_TOPICS
        """The groups of topics of which this client is no member."""
        self.deadline = inf
        """When to ask again."""

    def start(self) -> None:
        """Join the group of the session, to which managers multicast."""
        self._client.ports.join(self._group)

    def _send(self, message: Message) -> None:
        self._client.ports.send(Packet(message, size_of(message), self._group))

    def enter(self, destination: str, now: float) -> None:
        """Become a member of a topic; one that is wanted already stays."""
        if destination not in self._topics:
            self._topics[destination] = _Topic()
            self._request(destination, now)

    def leave(self, destination: str) -> None:
        """Leave a topic."""
        if destination not in self._topics:
            return
        topic = self._topics.pop(destination)
        if topic.is_member:
            self._send(Unregister(self._node, topic.manager, destination))

    def _request(self, destination: str, now: float) -> None:
        topic = self._topics[destination]
        # The guard learns of a manager that does not answer by being asked again.
        topic.again_at = now + self._client.fjm.ask * (0.75 + 0.5 * self._client.ports.rng.uniform())
        self._send(Ask(self._node, destination))
        self._rearm()

    def _rearm(self) -> None:
        self.deadline = min((topic.again_at for topic in self._topics.values()), default=inf)

    def wake(self, now: float) -> None:
        """Ask again for topics of which this is no member yet."""
        for destination, topic in self._topics.items():
            if topic.again_at <= now:
                self._request(destination, now)
        self._rearm()

    def receive(self, message: Message, now: float) -> bool:
        """Handle a message of a manager; return whether the members of an own topic changed."""
        if isinstance(message, Answer):
            self._on_answer(message)
        elif isinstance(message, Registered):
            return self._on_registered(message, now)
        return False

    def _on_answer(self, message: Answer) -> None:
        if message.place >= MOST_TOPICS:
            return
        topic, group = self._topics.get(message.destination), topic_group(self._group, message.place)
        if topic is None:
            if message.destination in self.others or len(self.others) < MOST_TOPICS:
                self.others = self.others or {}
                self.others[message.destination] = group
        elif not topic.is_member:
            topic.manager, topic.group = message.manager, group
            self.others.pop(message.destination, None)
            self._send(Register(self._node, message.manager, message.destination))

    def _on_registered(self, message: Registered, now: float) -> bool:
        topic = self._topics.get(message.destination)
        if topic is None:
            return False
        is_change = topic.members != message.members
        topic.members = message.members
        if message.node == self._node and topic.group is not None and not topic.is_member:
            self._become_member(message.destination, topic, topic.group, now)
        return is_change and topic.is_member

    def _become_member(self, destination: str, topic: _Topic, group: Group, now: float) -> None:
        """Tell the client to use the group of a topic; a topic whose group can't be joined is asked for again."""
        again_at, topic.again_at, topic.is_member = topic.again_at, inf, True
        self._rearm()
        try:
            self._client.registered(destination, group, now)
        except UsageError:
            # The answer may be forged: another program uses the port, or this one may not.
            self.groups_refused += 1
            topic.group, topic.again_at, topic.is_member = None, again_at, False
            self._rearm()
            self._send(Unregister(self._node, topic.manager, destination))

    def counts(self) -> dict[str, int]:
        """Return how often a group could not be joined, if it happened."""
        return {"groups_refused": self.groups_refused} if self.groups_refused else {}

    def group_of(self, destination: str) -> Group | None:
        """Return the group of a topic of which this is a member, None for others."""
        topic = self._topics.get(destination)
        return topic.group if topic is not None and topic.is_member else None


class RegisteredClient(Machine):
    """A publisher or a subscriber that registers for its topics. A subclass has slots for its config and its registration."""

    __slots__ = ()
    fjm: FjmConfig
    _registration: Registration

    def start(self, now: float) -> None:
        """Join the group of the session."""
        self._registration.start()

    @abstractmethod
    def registered(self, destination: str, group: Group, now: float) -> None:
        """Note that this is a member of a topic now. UsageError, and nothing changes, if its group can't be joined."""

    def group_of(self, destination: str) -> Group:
        """Return the group of a topic that is registered."""
        group = self._registration.group_of(destination)
        assert group is not None
        return group

    def take_from_manager(self, message: Message, now: float) -> None:
        """Handle a message if it is one of a manager; with `churn_fault` a change of members takes processor time."""
        if self._registration.receive(message, now) and self.fjm.churn_fault:
            self.ports.work(self.fjm.churn)

    def rearm(self) -> None:
        """Set the deadline, if a request is to be repeated before it."""
        if self._registration.deadline < self.deadline:
            self._due(self._registration.deadline)
