"""A topic manager, and the guard that one of them is.

*Election*: a manager that starts, or hears no guard for `silence`, announces that it is a candidate. Managers with a higher id
answer by the same message; who hears none of them for `election` is the guard and announces it every `beacon`. A manager with a
higher id than the guard's begins an election again. *Registration*: the guard answers who asks for a topic with its manager and
the number of its group; a topic that is new goes to the managers in turn. The manager keeps the members of its topics, and
tells every change to all. Managers hear the answers of the guard, so that the next one knows all topics.
"""

from math import inf

from protocols.fjm.config import FjmConfig
from protocols.fjm.messages import MOST_TOPICS, Answer, Ask, Candidate, Guard, Register, Registered, Unregister
from protocols.fjm.wire import size_of
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.roles import RoleContext

__all__ = ["FjmManager"]

MOST_MEMBERS = 100_000
"""Members of all topics of a manager."""
MOST_MANAGERS = 1000
_PATIENCE = 3
"""Requests for a topic, without an answer of its manager, after which the guard takes the topic over."""


class FjmManager(Machine):
    """Takes part in elections, and manages topics."""

    __slots__ = (
        "_asked",
        "_beacon_at",
        "_config",
        "_counts",
        "_elected_at",
        "_group",
        "_managers",
        "_member_count",
        "_members",
        "_node",
        "_silent_at",
        "_topics",
        "guard",
    )

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self._config: FjmConfig = context.config
        self._node = context.node
        self._group = context.group
        self.guard: int | None = None
        """The node id of the guard; None while there is none."""
        self._managers = {self._node}
        self._topics: dict[str, tuple[int, int]] = {}
        """Manager and number of each topic."""
        self._members: dict[str, dict[int, None]] = {}
        self._member_count = 0
        self._asked: dict[str, int] = {}
        self._elected_at = self._beacon_at = self._silent_at = inf
        names = ("elections", "answers_sent", "members_registered", "members_left")
        self._counts = dict.fromkeys(names, 0)

    def start(self, now: float) -> None:
        """Join the group, and begin an election."""
        self.ports.join(self._group)
        self._begin_election(now)

    def _send(self, message: Message) -> None:
        self.ports.send(Packet(message, size_of(message), self._group))

    def _rearm(self) -> None:
        self._due(min(self._elected_at, self._beacon_at, self._silent_at))

    # Election

    def _begin_election(self, now: float) -> None:
        self._counts["elections"] += 1
        self._send(Candidate(self._node))
        self._elected_at, self._beacon_at, self._silent_at = now + self._config.election, inf, inf
        self._rearm()

    def _note_manager(self, node: int) -> None:
        if len(self._managers) < MOST_MANAGERS:
            self._managers.add(node)

    def _on_candidate(self, message: Candidate, now: float) -> None:
        self._note_manager(message.node)
        if message.node > self._node:
            self.guard = None if self.guard == self._node else self.guard
            self._elected_at = self._beacon_at = inf
            self._silent_at = now + self._config.silence
        elif self.guard == self._node:
            self._send(Guard(self._node))
        elif self._elected_at == inf:
            # The answer to a lower one; while an election runs, it has been given.
            self._begin_election(now)
        self._rearm()

    def _on_guard(self, message: Guard, now: float) -> None:
        if message.node == self._node:
            # Another host has the same id.
            return
        if message.node < self._node:
            if self._elected_at == inf:
                self._begin_election(now)
            return
        if self.guard != message.node:
            # The guard needs all managers.
            self._send(Candidate(self._node))
        self.guard = message.node
        self._note_manager(message.node)
        self._elected_at = self._beacon_at = inf
        self._silent_at = now + self._config.silence
        self._rearm()

    def wake(self, now: float) -> None:
        """Become the guard, send the heartbeat of the guard, or begin an election when the guard is silent."""
        if self._elected_at <= now:
            self._elected_at, self.guard, self._beacon_at = inf, self._node, now
        if self._beacon_at <= now:
            self._send(Guard(self._node))
            self._beacon_at = now + self._config.beacon
        if self._silent_at <= now:
            if self.guard is not None:
                self._managers.discard(self.guard)
            self.guard = None
            self._begin_election(now)
        self.deadline = inf
        self._rearm()

    # Topics

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of another manager, or of a client."""
        if isinstance(message, Candidate):
            self._on_candidate(message, now)
        elif isinstance(message, Guard):
            self._on_guard(message, now)
        elif isinstance(message, Ask):
            self._on_ask(message)
        elif isinstance(message, Answer):
            self._learn(message)
        elif isinstance(message, Register) and message.manager == self._node:
            self._on_register(message)
        elif isinstance(message, Registered):
            self._asked.pop(message.destination, None)
        elif isinstance(message, Unregister) and message.manager == self._node:
            self._on_unregister(message)

    def _on_ask(self, message: Ask) -> None:
        if self.guard != self._node:
            return
        topic = self._topics.get(message.destination)
        if topic is None:
            if len(self._topics) >= MOST_TOPICS:
                return
            managers = sorted(self._managers)
            topic = managers[len(self._topics) % len(managers)], self._next_place()
        asked = self._asked[message.destination] = self._asked.get(message.destination, 0) + 1
        if asked > _PATIENCE:
            self._managers.discard(topic[0])
            self._managers.add(self._node)
            topic = self._node, topic[1]
        self._topics[message.destination] = topic
        self._counts["answers_sent"] += 1
        self._send(Answer(*topic, message.destination))

    def _next_place(self) -> int:
        taken = {place for _, place in self._topics.values()}
        return next(place for place in range(MOST_TOPICS) if place not in taken)

    def _learn(self, message: Answer) -> None:
        is_known = message.destination in self._topics or len(self._topics) < MOST_TOPICS
        if is_known and message.place < MOST_TOPICS:
            self._topics[message.destination] = (message.manager, message.place)

    def _on_register(self, message: Register) -> None:
        members = self._members.get(message.destination)
        if members is None:
            if len(self._members) >= MOST_TOPICS:
                return
            members = self._members[message.destination] = {}
        is_new = message.node not in members
        if not is_new or self._member_count < MOST_MEMBERS:
            self._counts["members_registered"] += is_new
            self._member_count += is_new
            members[message.node] = None
            self._asked.pop(message.destination, None)
            self._send(Registered(message.node, len(members), message.destination))

    def _on_unregister(self, message: Unregister) -> None:
        members = self._members.get(message.destination, {})
        if message.node in members:
            del members[message.node]
            self._member_count -= 1
            self._counts["members_left"] += 1
            self._send(Registered(message.node, len(members), message.destination))

    def counts(self) -> dict[str, int]:
        """Return elections begun, answers as the guard, and members that came and left."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the topics that are known, and the members of the own ones."""
        return {"topics": (len(self._topics), MOST_TOPICS), "members": (self._member_count, MOST_MEMBERS)}
