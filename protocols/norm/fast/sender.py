"""The NORM sender that plans bursts: it lists beforehand what it will send if no feedback arrives."""

from bisect import bisect_left
from math import inf
from typing import Final, cast

from protocols.fast.contract import FastMachine, OwnState
from protocols.fast.lookahead import Burst
from protocols.machine import Content, Group, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.bursts import Repairs, Start, Symbols, plan_bursts
from protocols.norm.fast.message_factory import FastMessageFactory
from protocols.norm.fast.tx_object import FastTxObject
from protocols.norm.message_factory import MessageFactory
from protocols.norm.messages import Origin
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.sender import NormSender
from protocols.norm.tx_object import TxObject
from protocols.norm.wire.sizes import size_of
from protocols.snapshot import Snapshot
from protocols.stream import StreamSettings

__all__ = ["FastNormSender", "LinkingNormSender"]

MOST_PLANNED: Final = 1024
"""Most messages that are planned at once where no probe ends a burst: feedback may end it early."""


class FastNormSender(NormSender, FastMachine):
    """A `NormSender` whose messages are linked, and whose next messages a host can ask for."""

    plans_bursts = True
    takes_feedback_only = True

    __slots__ = ("_burst", "_linked", "fast_state")

    _linked: FastMessageFactory

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()
        self._burst: Burst | None = None

    def _make_factory(self, origin: Origin) -> MessageFactory:
        self._linked = FastMessageFactory(self._config, origin)
        return self._linked

    def _make_object(self, object_id: int, content: Content) -> TxObject:
        return FastTxObject(object_id, content, self._config, self._linked.origin.source_id)

    def open_stream(self, settings: StreamSettings, now: float) -> int:
        """Begin a stream; from now on messages are not linked, so that receivers process each of them in full."""
        self._invalidate()
        self._linked.links, self._linked.position = False, None
        return super().open_stream(settings, now)

    def requeue(self, object_id: int, now: float) -> bool:
        """Send an object once more; from now on messages are not linked, since they do not follow each other in one order."""
        self._invalidate()
        self._linked.links, self._linked.position = False, None
        return super().requeue(object_id, now)

    def counts(self) -> dict[str, int]:
        """Return the counters of messages sent and received."""
        self.leave_lockstep()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the objects in the window."""
        self.leave_lockstep()
        return super().snapshot(now)

    # -- planning --------------------------------------------------------------------------------------------------

    def plan_bursts(self) -> list[Burst]:
        """Return the pending repairs and the rest of the object, when that is simple and nothing else is due before."""
        factory, clear = self._linked, self._clear
        if self._limit is not None or self._control.due < inf or not self._busy:
            return []
        if self._squelch is not None or self._full or self._needs_room or self.ports.trace is not None:
            return []
        pending, until = self._unsent or self._repairs, min(self._probe_at, self._aggregate_at)
        first = cast(FastTxObject, pending[0]) if pending else None
        if first is None or not first.counted or not first.packet or self.deadline != clear or not clear < until:
            return []
        if factory.position is None or factory.last_origin is not factory.origin:
            return []
        interval = first.packet / self._config.rate
        if until == inf:
            until = clear + MOST_PLANNED * interval
        start = Start(factory.position, factory.ordinal, clear, interval, factory.origin, self._group)
        repairs = cast("list[FastTxObject]", self._repairs)
        return plan_bursts(self, first if self._unsent else None, repairs, start, until)

    def burst_taken(self, burst: Burst, deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""
        self._burst = burst
        # As `_schedule`: a probe that is due waits until the rate allows it, and so does what comes after the probe.
        self._due(deadline if self._probe_at <= self._aggregate_at else min(deadline, self._aggregate_at))

    def commit(self, burst: Symbols, sent: int, count: int, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more messages, `sent` of the burst by now.

        The last was sent at `last` seconds; the next is due at `clear`.
        """
        factory = self._linked
        burst.item.active_at = max(burst.item.active_at, last)
        self._flushes, self._flush_at = 0, inf
        self._busy = bool(self._repairs or self._unsent)
        factory.ordinal += count
        factory.position, factory.tx_point = burst.position(sent), burst.point(sent - 1)
        self._clear = clear

    def commit_new(self, count: int) -> None:
        """Count so many new symbols of a burst."""
        self._data_sent += count

    def commit_repairs(self, item: FastTxObject, count: int, parity: int) -> None:
        """Count so many repairs of an object in a burst, and how many of them are parity."""
        self._repairs_sent += count
        self._parity_sent += parity
        if not item.repairing:
            self._repairs.pop(0)

    def burst_ended(self) -> None:
        """Drop what was planned and not sent; the host asks again."""
        self._burst = None
        self._schedule()

    # -- hooks of the plain sender ---------------------------------------------------------------------------------

    def _settle_feedback(self) -> None:
        """Set the deadline after feedback; a burst ends before the repairs begin."""
        burst = self._burst
        if burst is None or burst.carrier is None:
            self._schedule()
        elif self._aggregate_at < burst.until:
            burst.until = self._aggregate_at
            burst.carrier.shorten(burst.until)

    def _catch_up(self, requested: RequestedRepairs | None) -> None:
        """Commit what was sent of a burst, if requests may concern it."""
        burst = self._burst
        if burst is not None and burst.carrier is not None:
            unsent = self._unsent
            if requested is None or (unsent and requested.reaches(unsent[0].object_id, unsent[0].block)):
                burst.carrier.report()

    def _interrupt(self, requested: RequestedRepairs) -> None:
        """End a burst of repairs before the first block that is requested."""
        burst, names_objects = self._burst, bool(requested.objects or requested.infos)
        if not isinstance(burst, Repairs) or burst.carrier is None or names_objects or requested.owners() != {burst.key}:
            self._invalidate()
            return
        burst.carrier.report()
        kept = bisect_left(range(burst.count), True, key=lambda number: not requested.is_beyond(burst.key, burst.point(number)))
        if not kept:
            self._invalidate()
        elif kept < burst.count:
            # Between two messages.
            burst.carrier.shorten(burst.begin + (kept - 0.5) * burst.interval)

    def _invalidate(self) -> None:
        """End the burst."""
        self.leave_lockstep()

    def _send_next(self, now: float) -> bool:
        """Send what comes next; in the middle of a block of content without bytes by a shorter way."""
        factory = self._linked
        if self._sends_only_new(now) and self._is_in_block(item := cast(FastTxObject, self._unsent[0])):
            # As `_next`, with fewer conditions.
            item.active_at = now
            self._flushes, self._flush_at = 0, inf
            self._data_sent += 1
            self._busy = True
            message = factory.middle(item)
            if not item.packet:
                item.packet = size_of(message) + self._overhead
            self._send(message, item.packet)
            return True
        if not super()._send_next(now):
            return False
        factory.last_origin = factory.origin
        return True

    def _sends_only_new(self, now: float) -> bool:
        """Return whether there is new content to send, and nothing before it."""
        factory = self._linked
        is_alone = bool(self._unsent) and not self._repairs and self._squelch is None and self._limit is None
        return is_alone and factory.last_origin is factory.origin and self._probe_at > now < self._control.due

    def _is_in_block(self, item: FastTxObject) -> bool:
        """Return whether the next symbol is in the middle of a block of content without bytes."""
        is_inside = item.counted and 0 < item.symbol < item.length - 1 and not item.info_due
        return is_inside and self._linked.position is not None


class LinkingNormSender(FastNormSender):
    """A `FastNormSender` that plans nothing, because its rate or the requests of its receivers can't be predicted."""

    plans_bursts = False

    __slots__ = ()

    # A `FastTxObject`, and the shorter way to send one, are for gathered repairs; others are queued by the plain object.

    def _make_object(self, object_id: int, content: Content) -> TxObject:
        if self._config.repair == "gathered":
            return super()._make_object(object_id, content)
        return NormSender._make_object(self, object_id, content)

    def _is_in_block(self, item: FastTxObject) -> bool:
        return self._config.repair == "gathered" and super()._is_in_block(item)
