"""The sender of the ARQ protocols: transmission at a constant rate, repairs before new content.

What differs between the protocols is in subclasses: `AckedSender` repeats what was not acknowledged, `NackedSender` what NACKs
request.
"""

from abc import abstractmethod
from math import inf
from typing import Final

from protocols.arq.config import AConfig
from protocols.arq.messages import Ack, Data, Nack
from protocols.arq.tx_object import ObjectStore, TxObject
from protocols.arq.wire import size_of
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.machine import Address, Content, Group, Message, Packet, Ports, Sender
from protocols.snapshot import Snapshot, buffers

__all__ = ["ArqSender", "Key"]

CATCH_UP: Final = 0.02
"""Seconds of transmission time that a sender woken late may make up for in one burst."""

Key = tuple[int, int]
"""A unit: (object id, unit)."""


class ArqSender(Sender):
    """Sends every unit once, in order, and repeats those in `_repairs`. `node` is the sender's 32-bit id."""

    __slots__ = (
        "_backlogged",
        "_blocked",
        "_config",
        "_data_sent",
        "_finished",
        "_group",
        "_instance",
        "_next_at",
        "_node",
        "_objects_sent",
        "_octets_sent",
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
        self._store = self._make_store()
        self._repairs: dict[Key, None] = {}
        """Units to repeat, in the order in which they are due."""
        self._next_at = 0.0
        """When the rate allows the next packet, in seconds."""
        self._backlogged = False
        """Whether content was waiting for the rate after the last packet, so that lost time may be made up for."""
        self._blocked = False
        """Whether the network answered "full" and has not called `resume` since."""
        self._finished = True
        """Whether everything was sent and, as far as the protocol can know, received."""
        self._data_sent = self._repairs_sent = self._objects_sent = 0
        # Bytes of the objects that were sent to their end.
        self._octets_sent = 0

    def _make_store(self) -> ObjectStore:
        return ObjectStore(self._config, self._node, self._instance)

    # -- inputs ----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Join the group, to which receivers may multicast feedback."""
        self.ports.join(self._group)

    def submit(self, content: Content, now: float) -> int:
        """Queue an object for transmission; returns its id."""
        object_id = self._store.add(content)
        self._finished = False
        self._on_submit()
        self._schedule()
        return object_id

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle feedback to this sender and instance; other messages do not concern a sender."""
        if isinstance(message, (Ack, Nack)) and message.sender == self._node and message.instance == self._instance:
            self._on_feedback(message, now)
            self._schedule()

    def wake(self, now: float) -> None:
        """Serve the timers, and send what the rate allows by now."""
        self._on_timers(now)
        # Only a backlogged sender makes up for lost time; one that was idle starts at its rate.
        self._next_at = max(self._next_at, now - CATCH_UP if self._backlogged else now)
        while self._next_at <= now and not self._blocked:
            message = self._next_message(now)
            if message is None:
                self._backlogged = False
                break
            size = size_of(message)
            self._blocked = bool(self.ports.send(Packet(message, size, self._group)))
            self._next_at += size / self._config.rate
            self._backlogged = bool(self._repairs or self._store.waiting)
        self._schedule()

    def resume(self, now: float) -> None:
        """Go on after the network answered "full"."""
        self._blocked = False
        self._next_at = max(self._next_at, now)
        self.wake(now)

    def counts(self) -> dict[str, int]:
        """Return the packets and objects sent, by name."""
        return {
            "data_sent": self._data_sent,
            "repairs_sent": self._repairs_sent,
            "objects_sent": self._objects_sent,
        }

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the object that is being sent."""
        store, parts, octets = self._store, [], self._octets_sent
        item, unit = store.waiting[-1] if store.waiting else (None, 0)
        if item is not None and unit:
            sent = (unit - 1) * self._config.segment
            octets += sent
            values = {"size": item.content.source.size, "bytes_sent": sent}
            parts.append(Snapshot("object", str(item.object_id), values, {"state": "sending"}))
        parts.append(Snapshot("queue", "objects", {"held": len(store.waiting)}))
        parts.append(Snapshot("buffer", "objects for repair", {"held": len(store.objects), "limit": self._config.keep}))
        due = self._repairs_due(now)
        totals = {**self.counts(), "bytes_sent": octets, "rate": self._config.rate, "repairs_due": due}
        activity = "repairing" if due else "sending" if store.waiting else "idle" if self._finished else "waiting"
        states = {"role": "sender", "activity": activity}
        return Snapshot("session", self._group.name, totals, states, (*parts, *buffers(self.held())))

    def _repairs_due(self, now: float) -> int:
        """Return the number of units to be repeated as soon as the rate allows it."""
        del now
        return len(self._repairs)

    # -- what the protocols do differently -------------------------------------------------------------------------

    @abstractmethod
    def _on_submit(self) -> None:
        """React to a new object."""

    @abstractmethod
    def _on_feedback(self, message: Ack | Nack, now: float) -> None:
        """React to an ACK or a NACK for this sender."""

    @abstractmethod
    def _on_sent(self, key: Key, repair: bool, now: float) -> None:
        """React to the transmission of a unit; `repair` if it was repeated."""

    @abstractmethod
    def _on_timers(self, now: float) -> None:
        """Serve the timers that have run out: add units to `_repairs`."""

    @abstractmethod
    def _on_idle(self, now: float) -> Message | None:
        """Return what to send while no content is due, or None."""

    @abstractmethod
    def _next_timer(self) -> float:
        """Return when `_on_timers` or `_on_idle` has something to do, in seconds; inf for never."""

    # -- transmission ----------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Set the deadline: content waits for the rate alone, everything else for its timer, too."""
        timer = self._next_timer()
        if self._blocked:
            self._due(inf)
        elif self._repairs or self._store.waiting:
            self._due(min(timer, self._next_at))
        else:
            self._due(max(timer, self._next_at))

    def _next_message(self, now: float) -> Message | None:
        while self._repairs or self._store.waiting:
            message = self._next_repair(now) if self._repairs else self._next_new(now)
            if message is not None:
                return message
        return self._on_idle(now)

    def _next_repair(self, now: float) -> Data | None:
        """Return the first unit of `_repairs`; None if its object is no longer served or its source failed."""
        key = next(iter(self._repairs))
        del self._repairs[key]
        item = self._store.objects.get(key[0])
        message = None if item is None else self._read(item, key[1], True)
        if message is not None:
            self._on_sent(key, True, now)
            self._repairs_sent += 1
        return message

    def _next_new(self, now: float) -> Data | None:
        """Return the next unit that was never sent; None if its source failed."""
        item, unit = self._store.take_next()
        message = self._read(item, unit, False)
        if message is not None:
            self._on_sent((item.object_id, unit), False, now)
            self._data_sent += 1
            if unit + 1 == item.units:
                self._objects_sent += 1
                self._octets_sent += item.content.source.size
                self.ports.notify(ObjectSent(item.object_id))
            for object_id in self._store.purge():
                self.ports.notify(ObjectPurged(object_id))
        return message

    def _read(self, item: TxObject, unit: int, repair: bool) -> Data | None:
        """Return the DATA message of a unit. If the source fails the object is aborted; receivers give up when not repaired."""
        try:
            return self._store.message(item, unit, repair)
        except OSError as error:
            self._store.drop(item.object_id)
            self.ports.notify(ObjectAborted(self._node, item.object_id, f"source: {error}"))
            return None

    def _finish(self) -> None:
        self._finished = True
        self.ports.notify(FlushCompleted(self._store.last))
