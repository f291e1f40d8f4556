"""How a publisher or a subscriber becomes a member of topics: it asks the guard, and registers with the topic's manager."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from protocols.errors import UsageError
from protocols.fjm.config import FjmConfig
from protocols.fjm.messages import MOST_TOPICS, Answer, Ask, Register, Registered, Unregister
from protocols.fjm.wire import size_of
from protocols.machine import Group, Machine, Message, Packet
from protocols.roles import RoleContext
from protocols.shared_maps import shared_map, with_entry, without_entry

__all__ = ["RegisteredClient", "Registration", "topic_group"]

_NO_TOPICS: Final[dict[str, Group]] = {}
"""The other topics of most clients, in a session of one topic; never modified."""
_NO_COUNTS: Final[dict[str, int]] = {}
"""The numbers of members where they have no effect; never modified."""


@lru_cache(maxsize=MOST_TOPICS)
def topic_group(group: Group, place: int) -> Group:
    """Return the group of a topic by its number: another port of the session's address, or another name."""
    address, colon, port = group.name.rpartition(":")
    if colon and port.isdigit():
        return Group(f"{address}:{(int(port) + 1 + place) & 0xFFFF}", group.network)
    return Group(f"{group.name}.{place}", group.network)


class _Topic(NamedTuple):
    """The manager and the group of a topic, from an answer of the guard."""

    manager: int
    group: Group


@dataclass(slots=True)
class _Request:
    """A topic of which this client is to become a member: when to ask again (seconds), and what the guard answered."""

    again_at: float = inf
    topic: _Topic | None = None


_NO_REQUESTS: Final[dict[str, _Request]] = {}
"""The requests of a client that is a member of all it wants; never modified."""


class Registration:
    """The topics of one client, whose `registered` is called when it is a member of a topic."""

    __slots__ = ("_client", "_group", "_member_counts", "_node", "_requests", "_topics", "deadline", "groups_refused", "others")

    def __init__(self, context: RoleContext, client: "RegisteredClient") -> None:
        self._client = client
        self._node = context.node
        self._group = context.group
        self._requests = _NO_REQUESTS
        # The topics of which this client is a member.
        self._topics: dict[str, _Topic] = shared_map()
        # How many members each topic has, where their changes cost time.
        self._member_counts: dict[str, int] = {} if context.config.churn_fault else _NO_COUNTS
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
        if destination not in self._topics and destination not in self._requests:
            self._requests = self._requests or {}
            self._requests[destination] = _Request()
            self._ask(destination, now)

    def leave(self, destination: str) -> None:
        """Leave a topic."""
        topic = self._topics.get(destination)
        if topic is not None:
            self._topics = without_entry(self._topics, destination)
            self._send(Unregister(self._node, topic.manager, destination))
        elif destination in self._requests:
            asked = self._requests[destination].topic
            if asked is not None:
                # Its manager may have registered this client already.
                self._send(Unregister(self._node, asked.manager, destination))
            self._forget_request(destination)
        if destination in self._member_counts:
            del self._member_counts[destination]

    def _forget_request(self, destination: str) -> None:
        del self._requests[destination]
        self._requests = self._requests or _NO_REQUESTS

    def _ask(self, destination: str, now: float) -> None:
        # The guard learns of a manager that does not answer by being asked again.
        again_at = now + self._client.fjm.ask * (0.75 + 0.5 * self._client.ports.rng.uniform())
        self._requests[destination].again_at = again_at
        self._send(Ask(self._node, destination))
        self._rearm()

    def _rearm(self) -> None:
        self.deadline = min((request.again_at for request in self._requests.values()), default=inf)

    def wake(self, now: float) -> None:
        """Ask again for topics of which this is no member yet."""
        for destination, request in self._requests.items():
            if request.again_at <= now:
                self._ask(destination, now)
        self._rearm()

    def receive(self, message: Message, now: float) -> bool:
        """Handle a message of a manager; return whether it is a change of an own topic's members that takes processor time."""
        if isinstance(message, Registered):
            is_change = self._client.fjm.churn_fault and self._count_members(message)
            if message.node == self._node and message.destination in self._requests:
                self._become_member(message.destination, now)
            return bool(is_change) and message.destination in self._topics
        if isinstance(message, Answer):
            self._on_answer(message)
        return False

    def _on_answer(self, message: Answer) -> None:
        destination = message.destination
        if message.place >= MOST_TOPICS or destination in self._topics:
            return
        request, group = self._requests.get(destination), topic_group(self._group, message.place)
        if request is not None:
            request.topic = _Topic(message.manager, group)
            if destination in self.others:
                del self.others[destination]
            self._send(Register(self._node, message.manager, destination))
        elif destination in self.others or len(self.others) < MOST_TOPICS:
            self.others = self.others or {}
            self.others[destination] = group

    def _count_members(self, message: Registered) -> bool:
        """Note the number of members of a topic; return whether it changed."""
        destination, counts = message.destination, self._member_counts
        if destination not in self._topics and destination not in self._requests:
            return False
        is_change = counts.get(destination, 0) != message.members
        counts[destination] = message.members
        return is_change

    def _become_member(self, destination: str, now: float) -> None:
        """Tell the client to use the group of a topic; a topic whose group can't be joined is asked for again."""
        request = self._requests[destination]
        topic = request.topic
        if topic is None:
            return
        self._topics = with_entry(self._topics, destination, topic)
        try:
            self._client.registered(destination, topic.group, now)
        except UsageError:
            # The answer may be forged: another program uses the port, or this one may not.
            self.groups_refused += 1
            self._topics = without_entry(self._topics, destination)
            request.topic = None
            self._send(Unregister(self._node, topic.manager, destination))
        else:
            self._forget_request(destination)
            self._rearm()

    def counts(self) -> dict[str, int]:
        """Return how often a group could not be joined, if it happened."""
        return {"groups_refused": self.groups_refused} if self.groups_refused else {}

    def group_of(self, destination: str) -> Group | None:
        """Return the group of a topic of which this is a member, None for others."""
        topic = self._topics.get(destination)
        return topic.group if topic is not None else None


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
        if self._registration.receive(message, now):
            self.ports.work(self.fjm.churn)

    def rearm(self) -> None:
        """Set the deadline, if a request is to be repeated before it."""
        if self._registration.deadline < self.deadline:
            self._due(self._registration.deadline)
