"""The rules of publish and subscribe (`protocols.messaging`), for the machines of a messaging protocol in any world.

Two publishers publish messages of 0 to 3,000 bytes to two topics, two subscribers take one topic each and one both, and the
other roles of the protocol are taken by hosts of their own. Every machine is in a `Watch`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from experiments.contract.damage import Damage
from experiments.contract.watch import Watch
from experiments.contract.worlds import BenchWorld, ContractWorld
from protocols.admin.node import Node, place_of
from protocols.errors import UsageError
from protocols.events import Event
from protocols.machine import Codec, Group, Machine, Ports
from protocols.messaging import (
    Guarantees,
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    MessageReceived,
    MessageSent,
    Publication,
    Publisher,
    PublisherUnblocked,
    Subscribed,
    Subscriber,
    Subscription,
    SubscriptionEnded,
)
from protocols.object_messaging import guarantees_of, roles_of
from protocols.roles import BOTH, MakeMachine, RoleContext
from protocols.spec import ProtocolSpec
from protocols.tunnel import Tunnel, TunnelCodec, TunnelOptions

__all__ = [
    "MESSAGE_RULES",
    "MessageCase",
    "MessageSession",
    "damaged_messages_are_harmless",
    "messages_are_delivered",
    "subscriptions_end",
]

TUNNEL = "tunnel"
LIMIT = 30.0
"""Seconds after which a session has failed."""
DAMAGED_AFTER, DAMAGED_UNTIL = 1.0, 5.0
"""Seconds after which publishers of a session with damaged messages publish, and after which it ends."""
SIZES = (0, 1, 500, 3000)
MESSAGES = 40
"""Messages of each publisher."""
WANTED = ((0,), (1,), (0, 1))
"""Which of the two topics each subscriber takes."""


@dataclass(frozen=True, slots=True)
class MessageCase:
    """A messaging protocol and values for its config. `wrong` replaces the makers of roles by machines that break a rule.

    `loss` is the probability that a receiver loses a packet, `topics` are destinations that the protocol knows.
    """

    protocol: ProtocolSpec
    settings: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, MakeMachine] = field(default_factory=dict)
    loss: float = 0.0
    tunnels: bool = False
    """True: publishers and subscribers are in different sites, which two tunnels connect."""
    both: bool = False
    """True: publishers have the role `both`, in which one machine publishes and subscribes."""
    topics: tuple[str, str, str] = ("topic:a", "topic:b", "topic:c")

    def __str__(self) -> str:
        return self.protocol.name

    def codec(self) -> Codec:
        """Make a codec."""
        return TunnelCodec(self.protocol.codec()) if self.tunnels else self.protocol.codec()

    @property
    def guarantees(self) -> Guarantees:
        """Guarantees of the protocol."""
        return guarantees_of(self.protocol, self.protocol.config(**self.settings))


def _tunnel(ports: Ports, context: RoleContext) -> Machine:
    """Make one of two tunnels, in whose sites the group has different names."""
    tunnel = Tunnel(ports, context.node, context.group, TunnelOptions(), known_as="everywhere")
    others = [address for address in context.addresses[TUNNEL] if address != context.address]
    tunnel.update_peers([Node(1, "other", 0, *place_of(others[0]), "")])
    return tunnel


class _Publishing:
    """The application of a publisher: publishes as fast as it may."""

    def __init__(self, session: "MessageSession", watch: Watch, machine: Publisher, node: int, topics: Sequence[str]) -> None:
        self._session, self._watch, self._machine, self._node, self._topics = session, watch, machine, node, topics
        self.sent: dict[int, Publication] = {}
        self.told: dict[int, Event] = {}
        """What became of each message, by its number."""

    def publish(self) -> None:
        """Publish until it is blocked or all is published."""
        while len(self.sent) < MESSAGES:
            number = len(self.sent)
            body = bytes([number]) * SIZES[number % len(SIZES)]
            message = Publication(self._node, number, self._topics[number // 3 % 2], len(body), body)
            self.sent[number] = message
            if self._session.call(self._watch, partial(self._machine.publish, message)):
                return

    def hear(self, event: Event) -> None:
        """Go on when unblocked, and note what becomes of messages."""
        if isinstance(event, PublisherUnblocked):
            self.publish()
        elif isinstance(event, (MessageAccepted, MessageSent, MessageDropped, MessageExpired)):
            assert event.number in self.sent, f"{event} of a message that was not published"
            assert event.number not in self.told, f"{event} after {self.told[event.number]}"
            self.told[event.number] = event


class _Subscribing:
    """The application of a subscriber."""

    def __init__(self, watch: Watch, machine: Subscriber, wanted: Sequence[str]) -> None:
        self.watch, self.machine = watch, machine
        self.wanted = dict(enumerate(wanted, 1))
        self.in_effect: set[int] = set()
        self.received: list[tuple[int, Publication]] = []

    def hear(self, event: Event) -> None:
        """Keep what is delivered."""
        if isinstance(event, Subscribed):
            self.in_effect.add(event.number)
        elif isinstance(event, SubscriptionEnded):
            self.in_effect.discard(event.number)
        elif isinstance(event, MessageReceived):
            assert event.subscription in self.in_effect, f"{event} of a subscription that is not in effect"
            self.received.append((event.subscription, event.message))


class MessageSession:
    """Machines of all roles of a case in a world; use as a context."""

    def __init__(self, case: MessageCase, make: Callable[[MessageCase, int, float], ContractWorld]) -> None:
        self._case = case
        roles = roles_of(case.protocol)
        needed = {need for name in ("publisher", "subscriber") for need in roles[name].needs}
        servers = [name for name in roles if name in needed and name not in ("publisher", "subscriber", BOTH)]
        servers += [TUNNEL, TUNNEL] if case.tunnels else []
        rest = ["subscriber", BOTH, BOTH] if case.both else [*("subscriber" for _ in WANTED), "publisher", "publisher"]
        self._taken = [*servers, *rest]
        self.world = make(case, len(self._taken), case.loss)
        self.publishing: list[_Publishing] = []
        self.subscribing: list[_Subscribing] = []
        self.watches: list[Watch] = []
        for place, name in enumerate(self._taken):
            needs = {need: self._addresses(place, need) for need in roles[name].needs}
            config, address = case.protocol.config(**case.settings), self.world.hosts[place].address_of(self.world.names[place])
            context = RoleContext(config, 1 + place, self._group(place), addresses=needs, address=address)
            own = _tunnel if name == TUNNEL else roles[name].make
            self._start(place, name, case.wrong.get(name, own), context)

    def _group(self, place: int) -> Group:
        """Return the group of a machine; with tunnels that of publishers is another one than that of subscribers."""
        group, name = self.world.group, self._taken[place]
        in_first = name in ("publisher", BOTH) or (name == TUNNEL and place == self._taken.index(TUNNEL))
        if not self._case.tunnels or in_first:
            return group
        address, _, port = group.name.rpartition(":")
        return Group(f"{address}:{int(port) - 1}")

    def _addresses(self, place: int, role: str) -> list[Any]:
        host, names = self.world.hosts[place], self.world.names
        return [host.address_of(names[other]) for other, name in enumerate(self._taken) if name == role]

    def _start(self, place: int, role: str, make: MakeMachine, context: RoleContext) -> None:
        host = self.world.hosts[place]
        watch = Watch(host, lambda ports: make(ports, context))
        self.watches.append(watch)
        applications: list[_Publishing | _Subscribing] = []
        if role in ("publisher", BOTH):
            applications.append(_Publishing(self, watch, cast(Publisher, watch.made), 1 + place, self._case.topics))
        if role in ("subscriber", BOTH):
            wanted = [self._case.topics[number] for number in WANTED[len(self.subscribing)]]
            applications.append(_Subscribing(watch, cast(Subscriber, watch.made), wanted))

        def hear(event: Event) -> None:
            for application in applications:
                application.hear(event)

        host.run(watch, *watch.through(hear, host))
        for application in applications:
            self._begin(application)

    def _begin(self, application: _Publishing | _Subscribing) -> None:
        if isinstance(application, _Publishing):
            self.publishing.append(application)
            return
        self.subscribing.append(application)
        for number, topic in application.wanted.items():
            self.call(application.watch, partial(application.machine.subscribe, Subscription(number, topic)))

    def call(self, watch: Watch, verb: Callable[[float], Any]) -> Any:
        """Call `verb(now)` of a machine as an input."""
        host = self.world.hosts[self.watches.index(watch)]
        return host.call(lambda now: watch.act(lambda: verb(now), now))

    def until(self, over: Callable[[], bool], what: str) -> None:
        """Run until `over()`. AssertionError with `what` if that does not come."""
        self.world.run(self.world.now + LIMIT, over)
        assert over(), f"after {LIMIT} s: {what}"

    def __enter__(self) -> "MessageSession":
        self.until(lambda: all(each.in_effect == set(each.wanted) for each in self.subscribing), "not subscribed")
        return self

    def __exit__(self, *error: object) -> None:
        self.world.close()

    def publish(self) -> None:
        """Publish everything, and run until the publishers are told what became of it and it had time to arrive."""
        for each in self.publishing:
            each.publish()
        self.until(
            lambda: all(len(each.told) == MESSAGES for each in self.publishing), "publishers are not told of all messages"
        )

    def expected(self, subscriber: _Subscribing) -> list[tuple[int, Publication]]:
        """Return what a subscriber is to get, publisher by publisher."""
        messages = [message for each in self.publishing for message in each.sent.values()]
        return [
            (number, message)
            for message in messages
            for number, topic in subscriber.wanted.items()
            if topic == message.destination
        ]


def messages_are_delivered(case: MessageCase, make: Callable[[MessageCase, int, float], ContractWorld]) -> None:
    """Every subscriber gets what it subscribed to, as it was published, once, and in order if that is promised."""
    with MessageSession(case, make) as session:
        session.publish()
        wanted = [len(session.expected(each)) for each in session.subscribing]
        session.until(
            lambda: [len(each.received) for each in session.subscribing] >= wanted,
            f"fewer than {wanted} messages are delivered",
        )
        session.world.run(session.world.now + 0.05, lambda: False)
        for each in session.subscribing:
            _compare(each.received, session.expected(each), case.guarantees)


def _compare(received: list[tuple[int, Publication]], expected: list[tuple[int, Publication]], guarantees: Guarantees) -> None:
    """Compare what arrived with what was published, in all that an application sees."""

    def seen(entry: tuple[int, Publication]) -> tuple[int, int, int, str, bytes | None]:
        return entry[0], entry[1].publisher, entry[1].number, entry[1].destination, entry[1].body

    assert sorted(map(seen, received)) == sorted(map(seen, expected)), "other messages are delivered than were published"
    if guarantees.fifo:
        for publisher in {message.publisher for _, message in expected}:
            order = [message.number for _, message in received if message.publisher == publisher]
            assert order == sorted(order), f"messages of {publisher} come in the order {order}"


def subscriptions_end(case: MessageCase, make: Callable[[MessageCase, int, float], ContractWorld]) -> None:
    """After `unsubscribe` nothing is delivered, the other subscription stays, and a number in use is refused."""
    with MessageSession(case, make) as session:
        both = session.subscribing[-1]
        try:
            session.call(both.watch, partial(both.machine.subscribe, Subscription(2, case.topics[2])))
        except UsageError:
            pass
        else:
            raise AssertionError("a subscription took the number of another")
        session.call(both.watch, partial(both.machine.unsubscribe, 1))
        del both.wanted[1]
        session.publish()
        wanted = len(session.expected(both))
        session.until(lambda: len(both.received) >= wanted, f"fewer than {wanted} messages are delivered")
        session.world.run(session.world.now + 0.05, lambda: False)
        _compare(both.received, session.expected(both), case.guarantees)


def damaged_messages_are_harmless(case: MessageCase) -> None:
    """Messages with damaged fields make no machine raise, whatever they announce."""
    session = MessageSession(case, BenchWorld)
    assert isinstance(session.world, BenchWorld)
    damage = Damage(case.codec())
    for host in session.world.bench.hosts.values():
        host.damage = damage
    session.world.run(DAMAGED_AFTER, lambda: False)
    for each in session.publishing:
        each.publish()
    session.world.run(DAMAGED_UNTIL, lambda: False)
    assert damage.copies, "the codec refuses every damaged payload, so that no field can be damaged"


MESSAGE_RULES = [messages_are_delivered, subscriptions_end]
