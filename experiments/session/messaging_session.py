"""Base of sessions that publish and subscribe on a real network: subscriptions and events."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

from emu.host import UdpHost
from experiments.session.arguments import as_whole
from experiments.session.lifetime import Lifetime, SessionClosed
from experiments.session.subscription_stream import SubscriptionStream
from experiments.session.waiting import Changes
from protocols.errors import TransferError, UsageError
from protocols.events import Event
from protocols.messaging import PublisherIdle, PublisherUnblocked, Subscribed, Subscription

__all__ = ["MessagingSession"]

S = TypeVar("S", bound=SubscriptionStream[Any])
T = TypeVar("T")
MOST_EVENTS = 10_000
"""Events that wait for a program; the oldest are dropped."""


class MessagingSession(Lifetime, Generic[S]):
    """Subscriptions by number, events for the program, and whether the publisher is idle.

    At most `waiting` messages of a subscription wait for the program, unless it says otherwise; UsageError for less than one.
    It is an asynchronous iterator of events: what is lost, expired or dropped, and callbacks that failed.
    """

    _untold: ClassVar[tuple[type[Event], ...]]
    """Events that are not passed on to the program."""

    def __init__(self, waiting: int) -> None:
        super().__init__()
        self._most = as_whole("waiting", waiting, 1)
        self._subscriptions: dict[int, S] = {}
        self._numbers = 0
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._changes, self._heard = Changes(), Changes()
        self._is_idle = True
        self.events_dropped = 0
        """Events that the program did not take in time."""

    # Subscriptions

    @abstractmethod
    def _subscriber(self) -> tuple[UdpHost, Any]:
        """Return the machine with `subscribe` and `unsubscribe`, and its host."""

    def _enter(self, stream: S, destination: str, selector: str = "") -> S:
        """Begin the subscription of a stream. UsageError for one that is not allowed."""
        host, machine = self._subscriber()
        # Before the call, which may deliver at once.
        self._subscriptions[stream.number] = stream
        try:
            host.call(machine.subscribe, Subscription(stream.number, destination, selector))
        except UsageError:
            del self._subscriptions[stream.number]
            raise
        self._numbers += 1
        return stream

    def _limit(self, most: int | None) -> int:
        """Return how many messages of a subscription may wait. UsageError for less than one."""
        return self._most if most is None else as_whole("most", most, 1)

    def _unsubscribe(self, stream: S) -> None:
        self._check()
        host, machine = self._subscriber()
        host.call(machine.unsubscribe, stream.number)
        del self._subscriptions[stream.number]
        stream.finish()

    @property
    def _dropped(self) -> int:
        """Messages dropped because the program was too slow."""
        return sum(stream.dropped for stream in self._subscriptions.values())

    # Publishing

    def _publishing(self, host: UdpHost, verb: Callable[..., T], *args: object) -> T:
        """Call a verb that publishes. UsageError for what is not allowed: then nothing was published."""
        was_idle, self._is_idle = self._is_idle, False
        try:
            return host.call(verb, *args)
        except UsageError:
            self._is_idle = was_idle
            raise

    async def _idle(self) -> None:
        """Wait until everything that was published is sent."""
        await self._changes.until(lambda: self._is_idle)

    # Events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event. It ends with the session."""
        try:
            await self._heard.until(lambda: self._events)
        except SessionClosed:
            raise StopAsyncIteration from None
        return self._events.popleft()

    def _on_event(self, event: Event) -> None:
        """Take an event of a machine that carries no content."""
        if isinstance(event, (PublisherUnblocked, PublisherIdle)):
            self._is_idle = self._is_idle or isinstance(event, PublisherIdle)
            self._changes.changed()
        elif not isinstance(event, (Subscribed, *self._untold)):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self.events_dropped += len(self._events) == MOST_EVENTS
        self._events.append(event)
        self._heard.changed()

    # Within

    def _release(self, error: TransferError) -> None:
        for stream in self._subscriptions.values():
            if self._failure is None:
                stream.finish()
            else:
                stream.fail(error)
        self._changes.fail(error)
        self._heard.fail(error)
