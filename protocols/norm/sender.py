"""The NORM sender (RFC 5740 5.1, 5.4, 5.5.1): paces, repairs, flushes and probes.

One rule orders everything: what was asked for again comes before what is new, the lowest object, block and symbol first.
"""

from collections import deque
from math import inf

from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.fast.contract import FastState
from protocols.fast.lookahead import Burst
from protocols.machine import Address, Content, Group, Message, Packet, Ports, Sender
from protocols.norm.config import NormConfig
from protocols.norm.fast.bursts import Start, Symbols, plan_bursts
from protocols.norm.grtt import GrttEstimator
from protocols.norm.message_factory import MessageFactory
from protocols.norm.messages import (
    FLAG_REPAIR,
    Ack,
    Data,
    Nack,
    NormMessage,
    Origin,
    Squelch,
)
from protocols.norm.quantise import gsize_code, rate_code
from protocols.norm.repair_requests import requested_repairs
from protocols.norm.tx_object import TxObject, check_content
from protocols.norm.window import IDS, Window
from protocols.norm.wire.codec import size_of

__all__ = ["NormSender"]

CATCH_UP = 0.02
"""A sender woken late makes up for at most this much time (seconds) at once."""
SENT, HEARD = ("data", "repairs", "objects", "flushes", "probes", "squelches"), ("nacks", "acks")
CLOCK_OFFSET = 1_000_000
"""Probe times start at one second: an echo of 0, 0 means that no probe was heard."""


class NormSender(Sender):
    """Sends objects to a group. `node` is its 32-bit id, `instance` changes with every restart."""

    plans_bursts = True

    __slots__ = (
        "_acks_received",
        "_aggregate_at",
        "_busy",
        "_cc_sequence",
        "_chain",
        "_clear",
        "_config",
        "_data_sent",
        "_flush_at",
        "_flushes",
        "_flushes_sent",
        "_full",
        "_group",
        "_grtt",
        "_holdoff",
        "_nacks_received",
        "_next_id",
        "_objects_sent",
        "_probe_at",
        "_probe_next",
        "_probed",
        "_probes_sent",
        "_repairs",
        "_repairs_sent",
        "_run",
        "_squelch",
        "_squelches_sent",
        "_unsent",
        "_window",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> None:
        super().__init__(ports)
        self.fast_state = FastState(object())
        self._config = config
        self._group = group
        self._grtt = GrttEstimator(config)
        self._chain = MessageFactory(config, Origin(node, instance, self._grtt.code, config.backoff, gsize_code(config.gsize)))
        self._window = Window(config)
        self._unsent: deque[TxObject] = deque()
        self._repairs: list[TxObject] = []
        self._run: Burst | None = None
        self._next_id = 0
        self._clear = 0.0
        self._busy = self._full = False
        self._aggregate_at = self._flush_at = self._probe_at = inf
        self._holdoff = -inf
        self._flushes, self._probed = 0, -1
        self._probe_next = inf
        self._cc_sequence = 0
        self._squelch: set[int] | None = None
        self._data_sent = self._repairs_sent = self._objects_sent = self._flushes_sent = self._probes_sent = 0
        self._squelches_sent = self._nacks_received = self._acks_received = 0

    # -- inputs ----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Hear feedback, and probe the group's round-trip time at once."""
        self.ports.join(self._group)
        self._clear = now
        if self._config.probing != "none":
            self._probe_at = now
        self._schedule()

    def submit(self, content: Content, now: float) -> int:
        """Queue an object; it is sent as soon as the window has room for it. UsageError when NORM can't carry it."""
        check_content(content, self._config)
        object_id, self._next_id = self._next_id, (self._next_id + 1) % IDS
        self._window.backlog.append(TxObject(object_id, content, self._config, self._chain.origin.source_id))
        self._admit(now)
        self._schedule()
        return object_id

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Feedback for this sender and instance; everything else is not for a sender."""
        if isinstance(message, (Nack, Ack)):
            origin = self._chain.origin
            if message.sender_id != origin.source_id or message.instance_id != origin.instance_id:
                return
            self._on_response(message, now)
            if isinstance(message, Nack):
                self._on_nack(message, now)
            else:
                self._acks_received += 1
            self._reconsider()

    def wake(self, now: float) -> None:
        """Send all that is due."""
        if self._aggregate_at <= now:
            self._aggregate_at = inf
            self._holdoff = now + self._grtt.advertised
            self._repairs = self._window.activate()
        self._transmit(now)
        if self._window.backlog:
            # Last, for a probe just sent may have shortened the rest after which an object makes room.
            self._admit(now)
            self._transmit(now)
        self._schedule()

    def plan_bursts(self) -> list[Burst]:
        """What was asked for again and the rest of the object, when that is simple and nothing else is to be done before."""
        chain, clear = self._chain, self._clear
        if not self._unsent or self._squelch is not None or self._full or self._window.backlog or self.ports.trace is not None:
            return []
        item, until = self._unsent[0], min(self._probe_at, self._aggregate_at)
        if not item.counted or not item.packet or self.deadline != clear or not clear < until < inf:
            return []
        if chain.position is None or chain.said is not chain.origin:
            return []
        start = Start(chain.position, chain.ordinal, clear, item.packet / self._config.rate, chain.origin, self._group)
        return plan_bursts(self, item, self._repairs, start, until)

    def bursts_taken(self, run: Burst, deadline: float) -> None:
        """What was foreseen is sent without a wake-up for each: the next is due then."""
        self._run = run
        # As `_schedule`: a probe that is due waits until the rate allows it, and so does what comes after the probe.
        self._due(deadline if self._probe_at <= self._aggregate_at else min(deadline, self._aggregate_at))

    def advance(self, run: Symbols, sent: int, count: int, last: float, clear: float) -> None:
        """Be as after waking for `count` more of what was foreseen: the last sent at `last`, the next due at `clear`."""
        chain = self._chain
        run.item.active_at = max(run.item.active_at, last)
        self._flushes, self._flush_at = 0, inf
        self._busy = True
        chain.ordinal += count
        chain.position, chain.place = run.position(sent), run.place(sent - 1)
        self._clear = clear

    def flowed(self, count: int) -> None:
        """So many symbols were sent for the first time as foreseen."""
        self._data_sent += count

    def repaired(self, item: TxObject, count: int) -> None:
        """So many repairs of this object were sent as foreseen."""
        self._repairs_sent += count
        if not item.repairing:
            self._repairs.pop(0)

    def bursts_ended(self) -> None:
        """What is not sent yet of what was foreseen, is not: the host asks again."""
        self._run = None
        self._schedule()

    def resume(self, now: float) -> None:
        """Go on after "full"."""
        self._full = False
        self._clear = max(self._clear, now)
        self.wake(now)

    def counts(self) -> dict[str, int]:
        """What was sent and heard."""
        self.leave_lockstep()
        names = [f"{name}_sent" for name in SENT] + [f"{name}_received" for name in HEARD]
        return {name: getattr(self, f"_{name}") for name in names}

    def held(self) -> dict[str, tuple[int, int]]:
        """Objects kept for repair."""
        return {"objects in the window": (len(self._window.objects), self._config.cache_max)}

    @property
    def grtt(self) -> float:
        """The advertised group round-trip time in seconds."""
        return self._grtt.advertised

    # -- feedback --------------------------------------------------------------------------------------------------

    def _reconsider(self) -> None:
        """After feedback: what is foreseen stands, as far as repairs leave it."""
        run = self._run
        if run is None or run.carrier is None:
            self._schedule()
        elif self._aggregate_at < run.until:
            run.until = self._aggregate_at
            run.carrier.shorten(run.until)

    def _report(self) -> None:
        """Be as after sending what is due by now of what is foreseen."""
        run = self._run
        if run is not None and run.carrier is not None:
            run.carrier.report()

    def _on_response(self, message: Nack | Ack, now: float) -> None:
        if message.response_sec or message.response_usec:
            sent = message.response_sec * 1_000_000 + message.response_usec
            if self._grtt.respond((_clock(now) - sent) / 1e6):
                self.leave_lockstep()
                self._chain.retime(self._grtt.code)

    def _on_nack(self, nack: Nack, now: float) -> None:
        self._nacks_received += 1
        demand = requested_repairs(nack, self._config.fec)
        held = now < self._holdoff
        if held or (self._unsent and demand.reaches(self._unsent[0].object_id, self._unsent[0].block)):
            self._report()
        wanted = False
        for item in self._window.asked(demand):
            if held and not demand.is_beyond(item.object_id, self._chain.place):
                continue
            if item.want(demand):
                item.active_at = now
                wanted = True
        gone = self._window.refused(demand, self._next_id)
        if gone is not None:
            # What can't be repaired any more is squelched (RFC 5740 4.2.3.3).
            self.leave_lockstep()
            self._squelch = gone | (self._squelch or set())
        if wanted and held:
            self.leave_lockstep()
            self._repairs = self._window.activate()
        elif wanted and self._aggregate_at == inf:
            factor = self._config.backoff
            wait = (factor + 1) * self._grtt.advertised if factor or self._config.parity else 0.0
            self._report()
            self._aggregate_at = max(now + wait, self._clear)
            if self.ports.trace is not None:
                self.ports.trace("repair_aggregation", {"until": self._aggregate_at})

    # -- sending ---------------------------------------------------------------------------------------------------

    def _admit(self, now: float) -> None:
        rest = self._config.flow * (self._config.backoff + 1) * self._grtt.advertised
        for purged, admitted in self._window.admit(now, rest):
            if purged is not None:
                self.ports.notify(ObjectPurged(purged.object_id))
            elif admitted is not None:
                self._unsent.append(admitted)
                self._flushes, self._flush_at = 0, inf

    def _transmit(self, now: float) -> None:
        """Send until the rate is used up, nothing is due or the network is full."""
        # Who had nothing to send has nothing to make up for.
        least = now - CATCH_UP if self._busy else now
        if self._clear < least:  # noqa: PLR1730 (on the path of every packet)
            self._clear = least
        rate = self._config.rate
        while self._clear <= now and not self._full:
            message: NormMessage | None
            if self._probe_at <= now:
                message = self._probe(now)
            elif self._only_sends() and self._is_flowing(item := self._unsent[0]):
                message = self._flow(item, now)
                if not item.packet:
                    item.packet = size_of(message)
                self._full = bool(self.ports.send(Packet(message, item.packet, self._group)))
                self._clear += item.packet / rate
                continue
            else:
                message = self._next(now)
            if message is None:
                self._busy = False
                return
            size = size_of(message)
            self._chain.said = self._chain.origin
            self._full = bool(self.ports.send(Packet(message, size, self._group)))
            self._clear += size / rate
            self._busy = bool(self._repairs or self._unsent)

    def _only_sends(self) -> bool:
        """Is there content to be sent for the first time, and nothing before it?"""
        chain = self._chain
        return chain.said is chain.origin and bool(self._unsent) and not self._repairs and self._squelch is None

    def _is_flowing(self, item: TxObject) -> bool:
        """Is a symbol next, in the middle of a block of counted content? Elsewhere there is more to think of."""
        flowing = item.counted and 0 < item.symbol < item.length - 1 and not item.info_due
        return flowing and self._chain.position is not None and self._probe_at < inf

    def _flow(self, item: TxObject, now: float) -> Data:
        """What `_next` does then, without its questions."""
        item.active_at = now
        self._flushes, self._flush_at = 0, inf
        self._data_sent += 1
        self._busy = True
        return self._chain.middle(item)

    def _next(self, now: float) -> NormMessage | None:
        message: NormMessage | None = None
        if self._squelch is not None:
            message = self._make_squelch()
        while message is None and (self._repairs or self._unsent):
            message = self._next_content(now)
        if message is None:
            message = self._next_flush(now)
        if message is not None and self._probe_at == inf and self._config.probing != "none":
            # Probing rested because nothing else was sent.
            self._probe_at = max(now, self._probe_next)
        return message

    def _next_content(self, now: float) -> NormMessage | None:
        repairs, unsent = self._repairs, self._unsent
        item = repairs[0] if repairs else unsent[0]
        item.active_at = now
        self._flushes, self._flush_at = 0, inf
        try:
            return self._repair(item) if repairs else self._fresh(item)
        except OSError as error:
            self._fail(item, str(error))
            return None

    def _repair(self, item: TxObject) -> NormMessage | None:
        """A repair of `item`, or something fresh when that comes first."""
        message: NormMessage | None = None
        if item.info_due and item.info_sent:
            item.info_due = False
            message = self._chain.info(item, FLAG_REPAIR)
        elif item.repairs:
            step = item.repair_step()
            if step is None:
                return self._fresh(item)
            message = self._chain.data(item, *step, FLAG_REPAIR)
        if not item.repairing:
            self._repairs.pop(0)
        self._repairs_sent += message is not None
        return message

    def _fresh(self, item: TxObject) -> NormMessage:
        if item.info_due and not item.info_sent:
            item.info_sent, item.info_due = True, False
            message: NormMessage = self._chain.info(item, 0)
        else:
            message = self._chain.data(item, *item.step(), 0)
            self._data_sent += 1
        if not item.unsent:
            self._unsent.popleft()
            self._objects_sent += 1
            self.ports.notify(ObjectSent(item.object_id))
        return message

    def _fail(self, item: TxObject, reason: str) -> None:
        """The source can't be read: the object is gone, and receivers are told so when they ask."""
        self._window.drop(item.object_id)
        self._unsent = deque(other for other in self._unsent if other is not item)
        self._repairs = [other for other in self._repairs if other is not item]
        self.ports.notify(ObjectAborted(self._chain.origin.source_id, item.object_id, f"source: {reason}"))

    def _next_flush(self, now: float) -> NormMessage | None:
        """Nothing is pending: say so `robust` times, then be quiet (RFC 5740 4.2.3.1)."""
        if self._aggregate_at < inf or not (self._window.objects or self._flushes):
            return None
        if self._flush_at == inf:
            if self._flushes:
                return None
            self._flush_at = now
        if self._flush_at > now:
            return None
        if self._flushes >= self._config.robust:
            self._flush_at = inf
            self.ports.notify(FlushCompleted(next(reversed(self._window.objects), 0)))
            return None
        self._flushes += 1
        self._flushes_sent += 1
        last = self._flushes >= self._config.robust
        # After the last one a receiver still has its back-off to wait before it can ask.
        self._flush_at = now + (max(2, self._config.backoff + 2) if last else 2) * self._grtt.advertised
        item = next(reversed(self._window.objects.values()), None)
        return self._make_squelch() if item is None else self._chain.flush(item)

    def _make_squelch(self) -> Squelch:
        gone, self._squelch = self._squelch or (), None
        item = next(iter(self._window.objects.values()), None)
        length = item.partition.length(0) if item and item.partition.blocks else 0
        self._squelches_sent += 1
        return self._chain.squelch(item.object_id if item else self._next_id, length, gone)

    def _schedule(self) -> None:
        aggregate, probe, clear = self._aggregate_at, self._probe_at, self._clear
        when = aggregate if aggregate < probe else probe
        if self._repairs or self._unsent or self._squelch is not None:
            when = min(when, clear)
        elif self._aggregate_at == inf and self._window.objects:
            idle = self._flush_at if self._flushes else self._clear
            when = min(when, max(idle, self._clear))
        if self._window.backlog:
            rest = self._config.flow * (self._config.backoff + 1) * self._grtt.advertised
            when = min(when, self._window.vacancy_at(rest))
        if self._full:
            when = self._aggregate_at
        if when == probe and when < clear:
            when = clear
        self._due(when)

    def _probe(self, now: float) -> NormMessage | None:
        """CMD(CC), unless nothing else was sent since the last one: then probing rests until something is."""
        if self._chain.ordinal == self._probed:
            self._probe_at = inf
            return self._next(now)
        if self._grtt.probed(now):
            self._chain.retime(self._grtt.code)
        self._probe_at = self._probe_next = now + self._grtt.next_interval()
        rate = rate_code(self._config.rate) if self._config.probing == "active" else None
        message = self._chain.probe(self._cc_sequence, _clock(now), rate)
        self._cc_sequence = (self._cc_sequence + 1) & 0xFFFF
        self._probes_sent += 1
        self._probed = self._chain.ordinal
        return message


def _clock(now: float) -> int:
    return round(now * 1e6) + CLOCK_OFFSET
