"""The NORM sender (RFC 5740 5.1, 5.4, 5.5.1): paces, repairs, flushes and probes.

Order of transmission: repairs before new content, the lowest object, block and symbol first.
"""

from dataclasses import replace
from math import inf
from typing import Final

from protocols.events import FlushCompleted, ObjectSent
from protocols.machine import Address, Group, Message, Packet, Ports
from protocols.norm.config import NormConfig
from protocols.norm.congestion.controller import CongestionControl
from protocols.norm.grtt import RTT_FLOOR
from protocols.norm.limits import RepairLimit
from protocols.norm.messages import (
    FLAG_REPAIR,
    Ack,
    CcNode,
    Command,
    Data,
    DataRun,
    Info,
    Nack,
    NormMessage,
    RepairAdv,
    Squelch,
)
from protocols.norm.object_control import ObjectControl
from protocols.norm.quantise import rate_code
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import Request
from protocols.norm.snapshot import acknowledgement, control, object_sent
from protocols.norm.tx_object import TxObject
from protocols.norm.tx_stream import TxStream
from protocols.norm.wire.preview import feedback_to, is_nack, sender_in
from protocols.norm.wire.sizes import AUTH_SIZE, ID_SIZES, ITEM_HEADER, header_size, size_of
from protocols.snapshot import Snapshot, buffers

__all__ = ["NormSender"]

CATCH_UP: Final = 0.02
"""A sender woken late sends at once what was due during at most this many seconds."""
SENT: Final = ("data", "repairs", "objects", "flushes", "probes", "squelches")
HEARD: Final = ("nacks", "acks")
NACK_OVERHEAD: Final = 1000
"""Bytes that a NACK may have beside its requests: header and extensions, whose length has 8 bits and counts words."""
CLOCK_OFFSET: Final = 1_000_000
"""Microseconds at time 0: an echo of 0, 0 means that no probe was received."""
LATEST_CLOCK: Final = 1 << 50
"""Microseconds that a random clock may be ahead at time 0; its seconds have 32 bits on the wire."""


class NormSender(ObjectControl):
    """Sends objects to a group. `node` is its 32-bit id, `instance` changes with every restart.

    The methods `_catch_up`, `_interrupt` and `_settle_feedback` are hooks for subclasses, and those of its base classes.
    """

    __slots__ = (
        "_acks_received",
        "_aggregate_at",
        "_busy",
        "_cc_sequence",
        "_clear",
        "_clock_offset",
        "_data_sent",
        "_flushes_sent",
        "_full",
        "_group",
        "_holdoff",
        "_limit",
        "_most",
        "_nacks_received",
        "_objects_sent",
        "_overhead",
        "_parity_sent",
        "_probe_at",
        "_probe_next",
        "_probed",
        "_probes_sent",
        "_rate",
        "_repairs_sent",
        "_squelched",
        "_squelches_sent",
        "congestion",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group, instance: int = 1) -> None:
        super().__init__(ports, config, node, instance)
        self._group = group
        self._overhead = AUTH_SIZE if config.key_file else 0
        self._rate = config.rate
        self.congestion: CongestionControl | None = None
        """Sets the rate; None while it is fixed."""
        if config.congestion != "none":
            self.congestion = CongestionControl(ports, config, self._grtt.measured)
            self._rate = self.congestion.rate
        self._limit = RepairLimit(config.repair_share, self._rate) if config.repair_share < 1.0 else None
        # Who has heard no probe can't guess a clock that begins at a random time.
        self._clock_offset = CLOCK_OFFSET if self._limit is None else CLOCK_OFFSET + round(ports.rng.uniform() * LATEST_CLOCK)
        self._clear = 0.0
        self._most = 1
        self._busy = self._full = False
        self._aggregate_at = self._probe_at = inf
        self._holdoff = -inf
        self._probed = -1
        self._probe_next = inf
        self._cc_sequence = 0
        self._squelched: TxStream | None = None
        self._data_sent = self._repairs_sent = self._objects_sent = self._flushes_sent = self._probes_sent = 0
        self._squelches_sent = self._nacks_received = self._acks_received = self._parity_sent = 0

    # -- inputs ----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Join the group, and probe its round-trip time at once."""
        self.ports.join(self._group)
        self._clear = now
        if self._config.probing != "none":
            self._probe_at = now
        self._schedule()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process feedback for this sender and instance; report another sender with its node id; ignore others' messages.

        What is no message of NORM goes to the supply.
        """
        if isinstance(message, (Nack, Ack)):
            origin = self._factory.origin
            if message.sender_id != origin.source_id or message.instance_id != origin.instance_id:
                return
            sample = self._on_response(message, now)
            if self.congestion is not None and message.cc is not None:
                self.congestion.heard(message.source_id, message.cc, sample, now, is_nack=isinstance(message, Nack))
                self._adopt_rate(self.congestion.rate)
            is_news = False
            if isinstance(message, Nack):
                is_news = self._on_nack(message, source, now)
            else:
                self._acks_received += 1
            control = self._control
            if not isinstance(to, Group) and control.advertise(message, is_news):
                self._invalidate()
            control.heard(message, now)
            self._settle_feedback()
        elif isinstance(message, (Data, Info, Command)) and message.origin.source_id == self._factory.origin.source_id:
            self._clash(source)
        elif self.supply is not None and not isinstance(message, NormMessage):
            self.supply.told(message, now)

    def wake(self, now: float) -> None:
        """Send all that is due."""
        if self._aggregate_at <= now:
            self._aggregate_at = inf
            self._holdoff = now + self._grtt.advertised
            self._repairs = self._window.activate()
            self._control.acks.rewound(self._repairs)
        self._transmit(now)
        if self._needs_room:
            # Last, because a probe just sent may have shortened the time after which an object makes room.
            self._admit(now)
            self._transmit(now)
        while self._streams and self._offer_room(now):
            self._transmit(now)
        self._schedule()

    def resume(self, now: float) -> None:
        """Go on after "full"."""
        self._full = False
        self._clear = max(self._clear, now)
        self.wake(now)

    def send_runs(self, most: int) -> None:
        """Send up to `most` source symbols of a block as one run."""
        # The messages of a run carry their object's FTI.
        self._most = most if self._config.fti == "always" else 1

    def counts(self) -> dict[str, int]:
        """Return the counters of messages sent and received."""
        names = [f"{name}_sent" for name in SENT] + [f"{name}_received" for name in HEARD]
        return {name: getattr(self, f"_{name}") for name in names}

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        """Return whether a packet holds no message of a sender, and no feedback that would be ignored.

        Feedback is for this sender, no longer than a NACK that fits a segment (RFC 5740 4.3.1), and of an address that has sent
        no more NACKs than are served.
        """
        if sender_in(data) is not None:
            return False
        to, origin = feedback_to(data), self._factory.origin
        if to is None:
            return True
        if to != (origin.source_id, origin.instance_id) or len(data) > self._config.segment + NACK_OVERHEAD:
            return False
        return self._limit is None or not is_nack(data) or self._limit.has_nacks(source, now, self._grtt.advertised)

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the objects in the window."""
        window, items = self._window, self._window.objects.values()
        values = {
            **self.counts(),
            "parity_sent": self._parity_sent,
            "bytes_sent": window.octets_gone + sum([item.octets_sent for item in items]),
            "rate": self._rate,
            "grtt": self._grtt.advertised,
            "grtt_measured": self._grtt.measured,
        }
        flushing = "flushing" if self._flushes and self._flush_at < inf else "idle"
        activity = "repairing" if self._repairs else "sending" if self._unsent else flushing
        objects = [object_sent(item, item.object_id in self._streams) for item in items]
        waiting = (*acknowledgement(self._control.acks), Snapshot("queue", "objects", {"held": len(window.backlog)}))
        controls = () if self.congestion is None else (control(self.congestion.state),)
        states = {"role": "sender", "activity": activity}
        return Snapshot("session", self._group.name, values, states, (*controls, *objects, *waiting, *buffers(self.held())))

    @property
    def grtt(self) -> float:
        """The advertised group round-trip time in seconds."""
        return self._grtt.advertised

    # -- feedback --------------------------------------------------------------------------------------------------

    def _settle_feedback(self) -> None:
        """Set the deadline after feedback."""
        self._schedule()

    def _catch_up(self, requested: RequestedRepairs | None) -> None:
        """Bring the transmit state up to date before it is compared with `requested`, or before it is read (None).

        Here it always is; a subclass may have sent ahead of its state.
        """

    def _interrupt(self, requested: RequestedRepairs) -> None:
        """Note that what is requested will be repaired in its turn; a subclass may have planned to send something else then."""

    def _clock(self, now: float) -> int:
        """Return the clock of probes in microseconds."""
        return round(now * 1e6) + self._clock_offset

    def _on_response(self, message: Nack | Ack, now: float) -> float | None:
        """Take the answer to a probe; return the round-trip time of that receiver in seconds, None if it shows none."""
        if not (message.response_sec or message.response_usec):
            return None
        sample = (self._clock(now) - message.response_sec * 1_000_000 - message.response_usec) / 1e6
        # No probe was sent before the start.
        if not -RTT_FLOOR < sample < now + RTT_FLOOR:
            return None
        if self._grtt.respond(sample):
            self._invalidate()
            self._factory.advertise(self._grtt.code)
            self._probe_next = min(self._probe_next, now + self._config.probe_min)
            self._probe_at = min(self._probe_at, self._probe_next) if self._probe_at < inf else inf
        return max(sample, 1e-6)

    def _adopt_rate(self, rate: float) -> None:
        """Send at another rate from now on, bytes per second."""
        self._rate = rate
        if self._limit is not None:
            self._limit.follow(rate)
        if self._grtt.follow(rate):
            self._factory.advertise(self._grtt.code)

    def _on_nack(self, nack: Nack, source: Address, now: float) -> bool:
        """Aggregate the requests, or serve those beyond the transmit point during the hold-off (RFC 5740 5.4).

        Return whether anything is requested that was not before.
        """
        self._nacks_received += 1
        if self._limit is not None and not self._is_served(nack, source, now, self._limit):
            return False
        requests = self._renumbered(nack.requests) if self._streams else nack.requests
        requested = requested_repairs(self._window.resolve_erasures(requests), self._config.fec)
        is_holding_off = now < self._holdoff
        self._catch_up(None if is_holding_off else requested)
        is_news = False
        for item in self._window.asked(requested, now):
            if is_holding_off and not requested.is_beyond(item.object_id, self._factory.tx_point):
                continue
            if item.want(requested):
                item.active_at = now
                is_news = True
                if self._limit is not None:
                    self._limit.charge(source, item.symbols_asked(requested) * self._config.segment, now)
            if item.is_costly():
                break
        self._refuse(requested, now)
        if is_news and (is_holding_off or self._config.repair != "gathered"):
            self._interrupt(requested)
            self._repairs = self._window.activate()
            self._control.acks.rewound(self._repairs)
        elif is_news and self._aggregate_at == inf:
            factor = self._config.backoff
            wait = (factor + 1) * self._grtt.advertised if factor or self._config.parity else 0.0
            self._catch_up(None)
            self._aggregate_at = max(now + wait, self._clear)
            if self.ports.trace is not None:
                self.ports.trace("repair_aggregation", {"until": self._aggregate_at})
        return is_news

    def _refuse(self, requested: RequestedRepairs, now: float) -> None:
        """Squelch what is requested and can't be repaired any more (RFC 5740 4.2.3.3)."""
        gone = self._window.refused(requested, self._next_id, now)
        refused = next((each for each in self._streams.values() if each.is_refused(requested)), None) if self._streams else None
        if refused is not None:
            self._squelched, gone = refused, gone or set()
        if gone is not None and (self._limit is None or self._limit.may_squelch(now, self._grtt.advertised)):
            self._invalidate()
            self._squelch = gone | (self._squelch or set())

    def _renumbered(self, requests: tuple[Request, ...]) -> tuple[Request, ...]:
        """Return repair requests with the blocks of streams as they are numbered here, where that differs from the wire."""
        if not any(stream.block > stream.block_mask >> 1 for stream in self._streams.values()):
            return requests
        streams = self._streams
        return tuple(
            replace(
                request,
                items=tuple(
                    item._replace(block=streams[item.object_id].number(item.block)) if item.object_id in streams else item
                    for item in request.items
                ),
            )
            for request in requests
        )

    def _is_served(self, nack: Nack, source: Address, now: float, limit: RepairLimit) -> bool:
        """Return whether an address may send a NACK: one of a segment at the most (RFC 5740 4.3.1), or of a single range."""
        items = sum([len(request.items) for request in nack.requests])
        if items > 2 and items * (ITEM_HEADER + ID_SIZES[self._config.fec]) > self._config.segment:
            return False
        is_idle = not (self._unsent or self._repairs or self._window.backlog)
        return limit.admits(source, now, self._grtt.advertised, is_idle)

    # -- sending ---------------------------------------------------------------------------------------------------

    def _transmit(self, now: float) -> None:
        """Send until the rate is used up, nothing is due or the network is full."""
        # A sender that had nothing to send does not send faster afterwards.
        least = now - CATCH_UP if self._busy else now
        if self._clear < least:  # noqa: PLR1730 (on the path of every packet)
            self._clear = least
        while self._clear <= now and not self._full:
            if not self._send_next(now):
                self._busy = False
                return

    def _send_next(self, now: float) -> bool:
        """Send what comes next, if anything is due."""
        message = self._probe(now) if self._probe_at <= now else self._next(now)
        if message is None:
            return False
        self._send(message, size_of(message) + self._overhead)
        self._busy = bool(self._repairs or self._unsent)
        return True

    def _send(self, message: NormMessage | DataRun, size: int) -> None:
        """Send a message of `size` bytes; the next is due when the rate allows it."""
        self._full = bool(self.ports.send(Packet(message, size, self._group)))
        self._clear += size / self._rate if self.congestion is None else self.congestion.sent(message, size)

    def _next(self, now: float) -> NormMessage | DataRun | None:
        """Make what comes next: a squelch or another control message, content or a flush; None for nothing."""
        message: NormMessage | DataRun | None = None
        if self._squelch is not None:
            message = self._make_squelch(now)
        elif self._control.due <= now:
            message = self._next_control(now)
        while message is None and (self._repairs or self._unsent):
            message = self._next_content(now)
        if message is None:
            message = self._next_flush(now)
        if message is not None and self._probe_at == inf and self._config.probing != "none" and not self._has_only_probed:
            # Probing was suspended because nothing else was sent.
            self._probe_at = max(now, self._probe_next)
        return message

    def _next_control(self, now: float) -> NormMessage | None:
        """Make the next control message; FLUSH that asks for ACKs waits for repairs."""
        repairing_until = -inf
        if self._aggregate_at < inf:
            repairing_until = self._aggregate_at
        elif self._repairs:
            repairing_until = now + self._grtt.advertised
        has_only_probed = self._has_only_probed
        message = self._control.next(now, self._grtt.advertised, repairing_until)
        if has_only_probed and isinstance(message, RepairAdv):
            # It belongs to the probe that it follows: with unicast feedback, probes would otherwise go on for ever.
            self._probed = self._factory.ordinal
        return message

    @property
    def _has_only_probed(self) -> bool:
        """Whether nothing but CMD(REPAIR_ADV) was sent since the last probe, CMD(CC)."""
        return self._factory.ordinal == self._probed

    def _next_content(self, now: float) -> NormMessage | DataRun | None:
        """Make a repair or new content; None when the source can't be read."""
        repairs, unsent, limit = self._repairs, self._unsent, self._limit
        is_repair = bool(repairs)
        if limit is not None and repairs and unsent:
            is_repair = not limit.favours_new
            limit.sent(self._config.segment, is_repair)
        item = repairs[0] if is_repair else unsent[0]
        item.active_at = now
        if not item.is_open or self._streams[item.object_id].wants_flush:
            self._flushes, self._flush_at = 0, inf
        try:
            return self._repair(item) if is_repair else self._make_new(item)
        except OSError as error:
            self._fail(item, str(error))
            return None

    def _repair(self, item: TxObject) -> NormMessage | DataRun | None:
        """Make a repair of `item`, or new content when that comes first in transmission order."""
        message: NormMessage | DataRun | None = None
        if item.info_due and item.info_sent:
            item.info_due = False
            message = self._factory.info(item, FLAG_REPAIR)
        elif item.repairing:
            step = item.repair_step()
            if step is None:
                return self._make_new(item)
            self._parity_sent += step[1] >= item.partition.length(step[0])
            more = item.repairs_following(*step, self._most_due(item) - 1) if self._most > 1 else 0
            message = (
                self._factory.run(item, *step, 1 + more, FLAG_REPAIR) if more else self._factory.data(item, *step, FLAG_REPAIR)
            )
        if not item.repairing:
            self._repairs.pop(0)
        self._repairs_sent += message.packets if isinstance(message, DataRun) else message is not None
        return message

    def _make_new(self, item: TxObject) -> NormMessage | DataRun:
        """Make the next new content of an object."""
        message: NormMessage | DataRun
        if item.info_due and not item.info_sent:
            item.info_sent, item.info_due = True, False
            message = self._factory.info(item, 0)
        elif (count := self._new_symbols(item) if self._most > 1 else 1) > 1:
            message = self._factory.run(item, item.block, item.symbol, count, 0)
            item.advance(count)
            self._data_sent += count
        else:
            message = self._factory.data(item, *item.step(), 0)
            self._data_sent += 1
        if not item.unsent:
            self._unsent.remove(item)
            if not item.is_open:
                self._objects_sent += 1
                self.ports.notify(ObjectSent(item.object_id))
                if self.supply is not None and not self._unsent:
                    self.supply.next(item.active_at)
            self._control.content_sent(item.active_at)
        elif item.is_open and self._control.acks.is_waiting:
            self._control.content_sent(item.active_at)
        return message

    def _new_symbols(self, item: TxObject) -> int:
        """Return how many new source symbols of a block go next in one run; one while repairs are to be sent."""
        return 1 if self._repairs else min(self._most_due(item), item.following)

    def _most_due(self, item: TxObject) -> int:
        """Return how many symbols of an object may go in one run: as many as are due. One where shares of the rate count."""
        if item.counted or (self._limit is not None and self._repairs and self._unsent):
            return 1
        due = (item.active_at - self._clear) * self._rate / (header_size(item.fti) + item.partition.segment)
        return min(self._most, 1 + int(due), self._factory.most)

    def _next_flush(self, now: float) -> NormMessage | None:
        """Make a FLUSH, of which `robust` are sent when nothing is pending (RFC 5740 4.2.3.1).

        When no object is left to be named, all having failed, a SQUELCH takes its place.
        """
        if self._aggregate_at < inf or self._control.acks.is_asking or not self._has_end():
            return None
        last_id = next(reversed(self._window.objects), 0)
        if not self._flushes and self._control.acks.replaced_flush == last_id:
            # Everything is acknowledged, or will not be.
            self._flushes = max(1, self._config.robust)
            self.ports.notify(FlushCompleted(last_id))
            return None
        if self._flush_at == inf:
            if self._flushes:
                return None
            self._flush_at = now if self._config.robust else now + self._last_wait()
        if self._flush_at > now:
            return None
        if self._flushes >= self._config.robust:
            self._flushes, self._flush_at = max(1, self._flushes), inf
            self.ports.notify(FlushCompleted(next(reversed(self._window.objects), 0)))
            return None
        self._flushes += 1
        self._flushes_sent += 1
        last = self._flushes >= self._config.robust
        self._flush_at = now + (self._last_wait() if last else 2 * self._grtt.advertised)
        ends = self._ends()
        return self._factory.flush(ends[self._flushes % len(ends)]) if ends else self._make_squelch(now)

    def _last_wait(self) -> float:
        """Return how long the sender waits after its last message: a receiver may begin a back-off then, and send a NACK."""
        return (self._config.backoff + 2) * self._grtt.advertised

    def _make_squelch(self, now: float) -> Squelch:
        """Make a CMD(SQUELCH) that names the first block that can be repaired (RFC 5740 4.2.3.3).

        Receivers give up everything before it. So a stream that has dropped requested blocks is named only if no object before
        it is needed any more.
        """
        gone, self._squelch = self._squelch or (), None
        stream, self._squelched = self._squelched, None
        self._squelches_sent += 1
        objects = self._window.objects
        item = next(iter(objects.values()), None)
        if stream is not None and stream.object_id in objects:
            item = self._window.first_kept(stream, now, self._rest)
        if item is None:
            return self._factory.squelch(self._next_id, 0, 0, gone)
        block = item.low & item.block_mask if isinstance(item, TxStream) else 0
        length = item.partition.length(0) if item.partition.blocks else 0
        return self._factory.squelch(item.object_id, block, length, gone)

    def _schedule(self) -> None:
        aggregate, probe, clear = self._aggregate_at, self._probe_at, self._clear
        when = aggregate if aggregate < probe else probe
        if self._repairs or self._unsent or self._squelch is not None:
            when = min(when, clear)
        elif (
            self._aggregate_at == inf
            and (self._window.objects or self._failed)
            and not self._control.acks.is_asking
            and self._has_end()
        ):
            idle = self._flush_at if self._flushes or self._flush_at < inf else self._clear
            when = min(when, max(idle, self._clear))
        if self._needs_room:
            when = min(when, self._window.vacancy_at(self._rest))
        for stream in self._streams.values():
            if stream.is_waiting:
                when = min(when, stream.vacant_at(self._rest))
        if self._control.due < when:
            when = max(self._control.due, clear)
        if self._full:
            when = self._aggregate_at
        if when == probe and when < clear:
            when = clear
        self._due(when)

    def _probe(self, now: float) -> NormMessage | DataRun | None:
        """Make a CMD(CC), unless nothing else was sent since the last one: then probing is suspended until something is."""
        if self._has_only_probed:
            self._probe_at = inf
            return self._next(now)
        if self._grtt.probed(now):
            self._factory.advertise(self._grtt.code)
        interval = self._grtt.next_interval()
        nodes: tuple[CcNode, ...] = ()
        if self.congestion is not None:
            self.congestion.probed(self._grtt.measured, now)
            self._adopt_rate(self.congestion.rate)
            nodes = self.congestion.nodes
            if self._repairs or self._unsent:
                interval = self.congestion.interval()
        self._probe_at = self._probe_next = now + interval
        rate = rate_code(self._rate) if self._config.probing == "active" else None
        message = self._factory.probe(self._cc_sequence, self._clock(now), rate, nodes)
        self._cc_sequence = (self._cc_sequence + 1) & 0xFFFF
        self._probes_sent += 1
        self._probed = self._factory.ordinal
        return message
