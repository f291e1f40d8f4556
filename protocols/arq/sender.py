"""The senders: what all have in common, and who waits for ACKs or for NACKs.

Packets go to the group, repairs before what is new, at the configured rate. A sender of the NACK protocols says END until
that stays unanswered often enough; the sender of protocol A is finished when everybody it knows of has acknowledged everything.
"""

from abc import abstractmethod
from heapq import heappop, heappush
from itertools import takewhile
from math import inf

from protocols.arq.config import AConfig, N1Config
from protocols.arq.messages import Ack, Data, End, Nack
from protocols.arq.tx_object import Store, TxObject
from protocols.arq.wire import size_of
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.machine import Address, Content, Group, Message, Packet, Ports, Sender

__all__ = ["AckedSender", "ArqSender", "AskedSender", "NackedSender"]

CATCH_UP = 0.02
"""A sender woken late makes up for at most this much time (seconds) at once."""

Key = tuple[int, int]
"""A unit: (object id, unit)."""


class ArqSender(Sender):
    """Sends units at a rate and repeats those in `_repairs`."""

    __slots__ = (
        "_busy",
        "_clear",
        "_config",
        "_data_sent",
        "_finished",
        "_full",
        "_group",
        "_instance",
        "_node",
        "_objects_sent",
        "_repairs",
        "_repairs_sent",
        "_store",
    )

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports)
        self._config = config
        self._node = node
        self._group = group
        self._instance = instance & 0xFFFF
        self._store = Store(config, node, instance)
        self._repairs: dict[Key, None] = {}
        self._clear = 0.0
        self._busy = self._full = False
        self._finished = True
        self._data_sent = self._repairs_sent = self._objects_sent = 0

    def start(self, now: float) -> None:
        """Listen to the group."""
        self.ports.join(self._group)

    def submit(self, content: Content, now: float) -> int:
        """Queue an object."""
        object_id = self._store.add(content)
        self._finished = False
        self._begin()
        self._schedule()
        return object_id

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Feedback to this sender and instance; everything else is not for a sender."""
        if isinstance(message, (Ack, Nack)) and message.sender == self._node and message.instance == self._instance:
            self._hear(message, now)
            self._schedule()

    def wake(self, now: float) -> None:
        """Send all that is due."""
        self._expire(now)
        # Who had nothing to send has nothing to make up for.
        self._clear = max(self._clear, now - CATCH_UP if self._busy else now)
        while self._clear <= now and not self._full:
            message = self._next(now)
            if message is None:
                self._busy = False
                break
            size = size_of(message)
            self._full = bool(self.ports.send(Packet(message, size, self._group)))
            self._clear += size / self._config.rate
            self._busy = bool(self._repairs or self._store.waiting)
        self._schedule()

    def resume(self, now: float) -> None:
        """Go on after "full"."""
        self._full = False
        self._clear = max(self._clear, now)
        self.wake(now)

    def counts(self) -> dict[str, int]:
        """What was sent."""
        return {
            "data_sent": self._data_sent,
            "repairs_sent": self._repairs_sent,
            "objects_sent": self._objects_sent,
        }

    # -- what the protocols do differently -------------------------------------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """There is something new to send."""

    @abstractmethod
    def _hear(self, message: Ack | Nack, now: float) -> None:
        """Feedback for this sender."""

    @abstractmethod
    def _expire(self, now: float) -> None:
        """Look at the timers."""

    @abstractmethod
    def _idle(self, now: float) -> Message | None:
        """What to send when no content is due."""

    @abstractmethod
    def _sent(self, key: Key, repair: bool, now: float) -> None:
        """A unit was sent."""

    @abstractmethod
    def _timer(self) -> float:
        """When `_expire` or `_idle` has something to do, while no content is due."""

    # -- sending ---------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        timer = self._timer()
        if self._full:
            self._due(inf)
        elif self._repairs or self._store.waiting:
            self._due(min(timer, self._clear))
        else:
            self._due(max(timer, self._clear))

    def _next(self, now: float) -> Message | None:
        while self._repairs or self._store.waiting:
            message = self._content(now)
            if message is not None:
                return message
        return self._idle(now)

    def _content(self, now: float) -> Data | None:
        """The next unit; None when it is not to be had."""
        store = self._store
        repair = bool(self._repairs)
        if repair:
            key = next(iter(self._repairs))
            del self._repairs[key]
            if key[0] not in store.objects:
                return None
            item, unit = store.objects[key[0]], key[1]
        else:
            item, unit = store.take_next()
        try:
            message = store.message(item, unit, repair)
        except OSError as error:
            self._fail(item, f"source: {error}")
            return None
        self._sent((item.object_id, unit), repair, now)
        if repair:
            self._repairs_sent += 1
        else:
            self._data_sent += 1
            self._sent_first(item, unit)
        return message

    def _sent_first(self, item: TxObject, unit: int) -> None:
        if unit + 1 == item.units:
            self._objects_sent += 1
            self.ports.notify(ObjectSent(item.object_id))
        for object_id in self._store.purge():
            self.ports.notify(ObjectPurged(object_id))

    def _fail(self, item: TxObject, reason: str) -> None:
        """The source can't be read; receivers give up after asking in vain."""
        self._store.drop(item.object_id)
        self.ports.notify(ObjectAborted(self._node, item.object_id, reason))

    def _finish(self) -> None:
        """Nothing is left to do."""
        self._finished = True
        self.ports.notify(FlushCompleted(self._store.last))


class AskedSender(ArqSender):
    """A sender that repeats what is asked for, and says END until that stays unanswered often enough.

    A repeated unit is not repeated again within `hold` seconds. After the last END receivers have `rest` seconds to ask.
    """

    __slots__ = ("_collecting", "_end_at", "_ends", "_ends_sent", "_held", "_hold", "_nacks", "_rest")

    def __init__(
        self, ports: Ports, config: AConfig, node: int, group: Group, instance: int, *, hold: float, rest: float
    ) -> None:
        super().__init__(ports, config, node, group, instance)
        self._nacks = self._ends = self._ends_sent = 0
        self._collecting: dict[Key, float] = {}
        """Units asked for, and when to repeat them."""
        self._held: dict[Key, float] = {}
        self._hold = hold
        self._rest = rest
        self._end_at = -inf

    @abstractmethod
    def _delay(self) -> float:
        """How long to wait before a unit is repeated."""

    def counts(self) -> dict[str, int]:
        """What was sent and heard."""
        return {**super().counts(), "nacks_received": self._nacks, "flushes_sent": self._ends_sent}

    def _begin(self) -> None:
        self._ends, self._end_at = 0, -inf

    def _hear(self, message: Ack | Nack, now: float) -> None:
        if isinstance(message, Ack):
            return
        self._nacks += 1
        key = (message.object_id, message.unit)
        item = self._store.objects.get(message.object_id)
        if item is None or message.unit >= item.units:
            return
        if self._finished:
            # Somebody is still there: say END again when this is repaired.
            self._finished = False
        self._ends, self._end_at = 0, -inf
        if now >= self._held.get(key, -inf) and key not in self._collecting and key not in self._repairs:
            self._collecting[key] = now + self._delay()

    def _expire(self, now: float) -> None:
        for key in self._ready(now):
            del self._collecting[key]
            self._repairs[key] = None
        if len(self._held) > 4096:
            self._held = {key: when for key, when in self._held.items() if when > now}

    def _sent(self, key: Key, repair: bool, now: float) -> None:
        self._ends, self._end_at = 0, -inf
        if repair and self._hold:
            self._held[key] = now + self._hold

    def _idle(self, now: float) -> Message | None:
        if self._finished or self._collecting or now < self._end_at:
            return None
        if self._ends >= self._config.robust:
            self._end_at = -inf
            self._finish()
            return None
        self._ends += 1
        self._ends_sent += 1
        last = self._ends >= self._config.robust
        # After the last one a receiver still has its wait before it can ask.
        self._end_at = now + (self._rest if last else self._config.timeout)
        objects = self._store.objects
        units = objects[self._store.last].units if self._store.last in objects else 1
        return End(self._node, self._instance, self._store.last, units, self._store.first)

    def _timer(self) -> float:
        if self._collecting:
            return self._soonest()
        if self._finished:
            return inf
        return self._end_at if self._ends else self._clear

    def _ready(self, now: float) -> list[Key]:
        """Units whose wait is over."""
        return [key for key, when in self._collecting.items() if when <= now]

    def _soonest(self) -> float:
        """When the first wait is over."""
        return min(self._collecting.values())


class NackedSender(AskedSender):
    """The sender of N1 and N2: one repair for all requests that come within `gather`."""

    __slots__ = ("_gather",)

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group, instance: int) -> None:
        rest = 2.0 * (config.timeout + getattr(config, "window", 0.0))
        super().__init__(ports, config, node, group, instance, hold=config.hold, rest=rest)
        self._gather = config.gather

    def _delay(self) -> float:
        return self._gather

    def _ready(self, now: float) -> list[Key]:
        # All wait equally long, so they are in order of time.
        return list(takewhile(lambda key: self._collecting[key] <= now, self._collecting))

    def _soonest(self) -> float:
        return next(iter(self._collecting.values()))


class _Outstanding:
    """A unit that not everybody has acknowledged."""

    __slots__ = ("acked", "due", "tries")

    def __init__(self) -> None:
        self.acked: set[int] = set()
        self.due = inf
        self.tries = 0


class AckedSender(ArqSender):
    """The sender of A: repeats each unit until every receiver it knows of has acknowledged it.

    It knows of those that acknowledged anything, and forgets who was silent for `robust` time-outs.
    """

    __slots__ = ("_acks", "_heap", "_heard", "_outstanding", "_timeouts")

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self._acks = self._timeouts = 0
        self._heard: dict[int, float] = {}
        self._outstanding: dict[Key, _Outstanding] = {}
        self._heap: list[tuple[float, Key]] = []

    def counts(self) -> dict[str, int]:
        """What was sent and heard."""
        return {**super().counts(), "acks_received": self._acks, "timeouts": self._timeouts}

    def _begin(self) -> None:
        """A unit that was never sent needs no timer."""

    def _hear(self, message: Ack | Nack, now: float) -> None:
        if isinstance(message, Nack):
            return
        self._acks += 1
        self._heard[message.node] = now
        known = self._outstanding.get((message.object_id, message.unit))
        if known is not None:
            known.acked.add(message.node)

    def _sent(self, key: Key, repair: bool, now: float) -> None:
        known = self._outstanding.get(key)
        if known is None:
            known = self._outstanding[key] = _Outstanding()
        known.tries += 1
        known.due = now + self._config.timeout
        heappush(self._heap, (known.due, key))

    def _expire(self, now: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            key = heappop(heap)[1]
            known = self._outstanding[key]
            if key[0] not in self._store.objects or self._settled(known, now):
                del self._outstanding[key]
                continue
            self._timeouts += 1
            self._repairs[key] = None

    def _settled(self, known: _Outstanding, now: float) -> bool:
        """Has everybody the unit, of those who are still there?"""
        silent = now - self._config.robust * self._config.timeout
        if known.tries > self._config.robust:
            self._heard = {node: when for node, when in self._heard.items() if when > silent}
            if not self._heard:
                return True
        return bool(self._heard) and self._heard.keys() <= known.acked

    def _idle(self, now: float) -> Message | None:
        if not self._finished and not self._outstanding:
            self._finish()
        return None

    def _timer(self) -> float:
        if self._heap:
            return self._heap[0][0]
        return inf if self._finished else self._clear
