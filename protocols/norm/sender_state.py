"""The state of one sender at a receiver, and what each message of the sender changes (RFC 5740 5.3).

`SenderState.receive` is the one place where a sender's message is handled; it leads to one method per message (`_on_data`,
`_on_info`, `_on_flush`, `_on_squelch`, `_on_probe`). What they have in common comes behind them: joining, NACKs, the answer to
probes, the activity check. What becomes of the objects is in the base class.
"""

from math import inf
from typing import ClassVar, Final, TypeAlias

from protocols.events import CommandReceived, SenderActive, SenderReset, SenderSilent
from protocols.norm.backoff import NEVER
from protocols.norm.congestion.receiver import congestion_of
from protocols.norm.congestion.states import FeedbackState
from protocols.norm.maps import SmallDict
from protocols.norm.messages import (
    ACK_CC,
    ACK_FLUSH,
    FLAG_INFO,
    FLAG_REPAIR,
    FLAG_STREAM,
    Ack,
    Application,
    Command,
    Data,
    Flush,
    Fti,
    Info,
    Nack,
    Probe,
    RepairAdv,
    Squelch,
)
from protocols.norm.nack_modes import NackModes
from protocols.norm.nack_process import (
    BEGIN,
    NOTHING,
    SUPPRESS,
    Decision,
    MissingRange,
    NackProcess,
    contents_for,
    is_missing_before,
    nack_size,
)
from protocols.norm.pending_objects import PendingObjects
from protocols.norm.position import Point, TransmitPosition
from protocols.norm.probe_response import NOTHING_HEARD, ProbeResponse
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import Item
from protocols.norm.rx_object import RxObject, fits
from protocols.norm.sender_extras import NO_EXTRAS
from protocols.norm.sender_requests import SenderRequests, answer_to, app_ack, is_asked
from protocols.norm.session import Session, later
from protocols.norm.wire.sizes import size_of
from protocols.serial import ahead

__all__ = ["SenderMessage", "SenderState"]

NEW_SENDER: Final = 64
"""Messages up to which a sender counts as new: to receive all of it costs at most as many repairs."""

SenderMessage: TypeAlias = Data | Info | Command


class SenderState(PendingObjects):
    """One sender as one receiver sees it: its objects, and what there is to be sent to it."""

    __slots__ = (
        "_base",
        "first_sequence",
        "idle_at",
        "last_heard",
        "lost",
        "probe_response",
    )

    process_type: ClassVar[type[NackProcess]] = NackProcess

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.probe_response: ProbeResponse | None = None
        self.last_heard = NEVER
        """When the last message of the sender arrived, seconds."""
        self.first_sequence: int | None = 0
        """The sequence number of the sender's first message, as far as known; None once the receiver has joined."""
        self.lost = 0
        """Messages of the sender that did not arrive."""
        self._base = 0
        self.idle_at = inf
        """When `wake` checks whether the sender is silent; inf before its first message and once it is."""
        modes = session.modes()
        if modes is not None:
            self.change_extras().modes = modes
        self._begin_congestion()

    # -- inputs ----------------------------------------------------------------------------------------------------

    def receive(self, message: SenderMessage, now: float) -> None:
        """Process a message of this sender."""
        if message.origin is not self.origin:
            self._update_origin(message)
        self.last_heard = now
        if self.idle_at == inf:
            if self.extras.silent_periods:
                self.session.ports.notify(SenderActive(self.node))
                self.extras.silent_periods = 0
            self.idle_at = later(now, self.activity_period())
        sequence = self._count_losses(message.sequence)
        if self.extras.congestion is not None:
            is_content = isinstance(message, Data)
            self.extras.congestion.arrived(message.sequence, size_of(message), self._profile, now, is_content=is_content)
        has_moved = False
        if isinstance(message, Data):
            has_moved = self._on_data(message, sequence, now)
        elif isinstance(message, Probe):
            self._on_probe(message, now)
        elif isinstance(message, Info):
            has_moved = self._on_info(message, sequence, now)
        elif isinstance(message, Flush):
            has_moved = (self._on_acking_flush if message.acking else self._on_flush)(message, sequence, now)
        elif isinstance(message, Squelch):
            self._on_squelch(message)
        elif isinstance(message, RepairAdv):
            self._on_repair_adv(message, now)
        elif isinstance(message, Application):
            self._on_command(message, now)
        if not has_moved:
            position = self.position
            self._move(message, (position.object_id, position.block, position.symbol), sequence)

    def overhear(self, message: Nack | Ack, now: float) -> bool:
        """Process another receiver's feedback to this sender; return whether that changes what this one has to send."""
        if not self.is_addressed(message):
            return False
        response = before = self.probe_response
        if response is not None and (message.response_sec or message.response_usec):
            response = self.probe_response = response.overheard()
        control, cc = self.extras.congestion, message.cc
        is_silenced = control is not None and cc is not None and control.overhear(cc, self._profile, now)
        is_suppressed = isinstance(message, Nack) and self._is_suppressed_by(message, now)
        return is_suppressed or response is not before or is_silenced

    def _is_suppressed_by(self, message: Nack | RepairAdv, now: float) -> bool:
        """Note what others have requested of the sender; return whether that suppresses the NACK to come."""
        process = self.nack_process
        if process is None or now >= process.backoff_end:
            return False
        if process.overhear(self.requested_repairs(message), self.boundary(), self.requested(), now) is not SUPPRESS:
            return False
        self.note_suppression(process)
        return True

    def is_addressed(self, message: Nack | Ack) -> bool:
        """Return whether feedback is for this instance of the sender."""
        origin = self.origin
        return origin is not None and message.sender_id == origin.source_id and message.instance_id == origin.instance_id

    def requested_repairs(self, nack: Nack | RepairAdv) -> RequestedRepairs:
        """Return what a NACK to this sender asks for."""
        return requested_repairs(nack.requests, self._profile.fec_id)

    def wake(self, now: float) -> None:
        """Do whatever of NACK, probe response and activity check is due."""
        if self.nack_process is not None and self.nack_process.due <= now:
            self._expire(self.nack_process, now)
        if self.probe_response is not None and self.probe_response.due <= now:
            self._send_ack(now)
        congestion, requests = self.extras.congestion, self.extras.requests
        if congestion is not None and congestion.due <= now:
            self._send_ack(now)
        if requests is not None and requests.due <= now:
            self._send_flush_ack(requests, now)
        if self.idle_at <= now:
            self._check_activity(now)

    def feedback_due(self) -> float:
        """Return when a NACK or an answer to a probe is due; inf for never."""
        due = inf
        if self.nack_process is not None:
            due = self.nack_process.due
        if self.probe_response is not None and self.probe_response.due < due:
            due = self.probe_response.due
        return due if self.extras is NO_EXTRAS else min(due, self.extras.due())

    def deadline(self) -> float:
        """Return when `wake` is wanted."""
        due = self.feedback_due()
        return due if due < self.idle_at else self.idle_at

    @property
    def grtt(self) -> float:
        """The group round-trip time that the sender advertises, in seconds."""
        return self._profile.grtt

    @property
    def is_established(self) -> bool:
        """Whether the receiver has joined the sender, received enough of it, and the sender is not silent."""
        return self.is_joined and self.is_active and self.received >= NEW_SENDER

    @property
    def is_active(self) -> bool:
        """Whether a message arrived and the sender is not silent since."""
        return self.idle_at < inf

    def forget(self) -> None:
        """Give up the sender's objects and keep its counters; the state is not used any more."""
        self._give_up(list(self.objects), "the sender was forgotten")
        for name, number in (("data_received", self.received), ("data_lost", self.lost), ("duplicates", self.duplicates)):
            self.session.count(name, number)

    @property
    def received(self) -> int:
        """Messages of this sender that arrived, by their sequence numbers."""
        return self.position.sequence - self._base - self.lost

    # -- content ---------------------------------------------------------------------------------------------------

    # A handler is given the message and the sequence number that comes next. It returns whether it has set the position.

    def _on_data(self, message: Data, sequence: int, now: float) -> bool:
        """NORM_DATA: store a symbol; everything before it in transmission order was sent."""
        if message.flags & FLAG_STREAM:
            return self._on_stream(message, sequence, now)
        if not self._join_with(message):
            return False
        key, block, symbol = message.object_id, message.block, message.symbol
        is_current = key == self.position.object_id or self._advance_to(key)
        item = self.objects.get(key) or self._object_of(message)
        fti = item.fti if item is not None else message.fti or self.session.preset
        if fti is None or not fits(message, fti) or (item is not None and item.is_stream):
            return self._ignore(message, fti, sequence, now)
        position, length = self.position, fti.partition.length(block)
        # Source symbols of a block are sent in order, and parity behind them all.
        is_parity = symbol >= length
        start = (block + 1, 0) if is_parity else (block, symbol)
        next_new = (position.block, position.symbol)
        is_new = is_current and (start > next_new if is_parity else start >= next_new)
        is_repair = bool(message.flags & FLAG_REPAIR) or not (is_new or (is_parity and start == next_new))
        tx_point = (key, block, symbol) if is_repair else None
        if is_new and start != next_new and item is not None and item.is_fragmented:
            # As if it had been lost, too.
            self.session.count("ignored")
            return False
        if not is_new:
            self._move(message, (position.object_id, *next_new), sequence, tx_point)
        else:
            if start != next_new and item is not None:
                item.skip(*next_new, *start)
                self.is_complete = False
            end = start if is_parity else (block, symbol + 1) if symbol + 1 < length else (block + 1, 0)
            self._move(message, (key, *end), sequence, tx_point)
        self.store(item, message, length, is_new)
        if tx_point is not None:
            self._rewind(tx_point, now)
        if not (is_new and next_new[1] and start[0] == next_new[0]):
            # Within a block there is nothing new to request.
            self.check((key, block, 0), now)
        return True

    def _ignore(self, message: Data, fti: Fti | None, sequence: int, now: float) -> bool:
        """Ignore a symbol that does not fit its object, or whose object only the NORM_INFO describes.

        That is requested once the block is over.
        """
        self.session.count("ignored")
        if fti is not None or not message.flags & FLAG_INFO or message.object_id not in self.objects:
            return False
        self.change_modes().awaited.add(message.object_id)
        position = self.position
        is_current = message.object_id == position.object_id
        block = max(position.block, message.block) if is_current else position.block
        symbol = position.symbol if block == position.block else 0
        self._move(message, (position.object_id, block, symbol), sequence)
        self.is_complete = False
        self.check((message.object_id, message.block, 0), now)
        return True

    def store(self, item: RxObject | None, message: Data, length: int, is_new: bool) -> None:
        """Store a symbol of an object, or count it as a duplicate; `length` is the number of the block's source symbols."""
        if item is None:
            self.duplicates += not is_new
            return
        block, symbol = message.block, message.symbol
        try:
            if symbol >= length:
                is_useful = item.fill_parity(block, symbol - length, message.payload, self.session.config.buffer)
            elif is_new:
                item.write(block, symbol, message.payload)
                is_useful = True
            else:
                is_useful = item.fill(block, symbol, message.payload)
        except OSError as error:
            self._give_up([item.object_id], f"sink: {error}")
            return
        if not is_useful:
            self.duplicates += 1
        elif not is_new or self.position.block >= item.fti.partition.blocks:
            self.finish(item)

    def _on_info(self, message: Info, sequence: int, now: float) -> bool:
        """NORM_INFO: store the object's out-of-band information; the object has begun."""
        if not self._join_with(message):
            return False
        self._advance_to(message.object_id)
        item = self._object_of(message)
        position, start = self.position, (message.object_id, 0, 0)
        is_repair = bool(message.flags & FLAG_REPAIR)
        next_new = (position.object_id, position.block, position.symbol)
        self._move(message, next_new, sequence, start if is_repair else None)
        self.store_info(item, message)
        if is_repair:
            self._rewind(start, now)
        self.check(start, now)
        return True

    def _on_flush(self, message: Flush, sequence: int, now: float) -> bool:
        """CMD(FLUSH): everything through this symbol was sent."""
        is_empty = message.is_of_empty_object
        if not self.is_joined and not self._join_new_sender(message, 0 if is_empty else message.block):
            return False
        is_current = self._advance_to(message.object_id)
        if is_empty and message.object_id in self.objects:
            # Only its NORM_INFO is missing. Asked for an empty object as a whole, libnorm1 crashes.
            self._open_empty(message.object_id, message.fec_id)
        position = self.position
        block, symbol = position.block, position.symbol
        end = (message.block + 1, 0) if is_empty else self._flushed_end(message)
        if end[1]:
            self.change_extras().flushed = (message.object_id, *end)
        if is_current and position.object_id in self.objects:
            item = self.objects.get(position.object_id)
            # The end of an empty object lies behind the NORM_INFO.
            next_new = (1, 0) if is_empty else end
            if next_new > (block, symbol):
                if item is not None and not is_empty:
                    item.skip(block, symbol, *end)
                    self.is_complete = False
                block, symbol = next_new
        self._move(message, (position.object_id, block, symbol), sequence)
        self.shorten_holdoff()
        self.check((message.object_id, *end), now)
        return True

    def _on_squelch(self, message: Squelch) -> None:
        """CMD(SQUELCH): what comes before this object will not be repaired, nor what is listed."""
        if not self.is_joined:
            return
        if ahead(message.object_id, self.position.object_id) > 0:
            self._begin_objects(message.object_id)
        invalid = frozenset(message.invalid) if self.objects else ()
        gone = [key for key in self.objects if ahead(key, message.object_id) < 0 or key in invalid]
        if self.extras.modes is not None:
            gone = self._without_assumed(gone, self.extras.modes)
        self._give_up(gone, "squelched")

    def _without_assumed(self, gone: list[int], modes: NackModes) -> list[int]:
        """Forget without an event those of the objects that may never have been; return the others."""
        for key in gone:
            if modes.was_assumed(key) and self.objects[key] is None:
                del self.objects[key]
        self._update_completeness()
        return [key for key in gone if key in self.objects]

    def _on_probe(self, message: Probe, now: float) -> None:
        """CMD(CC): note the sender's clock, and answer after a back-off."""
        if not message.cc_sequence and not self.is_joined:
            self.first_sequence = message.sequence
        if self.session.is_silent:
            return
        response = self.probe_response or NOTHING_HEARD
        if self.extras.congestion is not None:
            self.probe_response = response.noted(message, now)
            self.extras.congestion.probed(message, self._profile, now)
            return
        self.probe_response = response.probed(message, now, self._profile, self.session.ports.rng)

    def _on_acking_flush(self, message: Flush, sequence: int, now: float) -> bool:
        """CMD(FLUSH) with a list of nodes: acknowledge it if this node is listed and has everything (RFC 5740 5.5.3).

        A receiver that is listed and has not joined joins at the object.
        """
        node = self.session.node
        if not self.is_joined and node in message.acking:
            self._join(message.object_id, message.fec_id)
        has_moved = self._on_flush(message, sequence, now)
        if is_asked(message, node) and self.is_joined and self.has_all(message):
            self._confirm(message, now)
        return has_moved

    def has_all(self, flush: Flush) -> bool:
        """Return whether everything through the point that a FLUSH names is complete."""
        end = (0, 1) if flush.is_of_empty_object else self._flushed_end(flush)
        return not is_missing_before(self.objects, (flush.object_id, *end))

    def _confirm(self, message: Flush, now: float) -> None:
        """Plan the ACK of a FLUSH: at a random time within a GRTT, at once if the sender has receivers wait for nothing."""
        requests, session, profile = self._requests_of_sender(), self.session, self._profile
        if session.is_silent or not requests.may_confirm(message, session.node):
            return
        content = answer_to(message, session.ack_answerer)
        if content is None:
            return
        spread = profile.grtt * (1 if session.node in message.acking else profile.backoff)
        requests.confirm(message, content, now + session.ports.rng.uniform() * spread if profile.backoff else now)
        if requests.due <= now:
            self._send_flush_ack(requests, now)

    def _on_repair_adv(self, message: RepairAdv, now: float) -> None:
        """CMD(REPAIR_ADV): feedback that went to the sender alone suppresses this receiver's (RFC 5740 4.2.3.6)."""
        if self.probe_response is not None:
            self.probe_response = self.probe_response.overheard()
        if self.extras.congestion is not None and message.cc is not None:
            self.extras.congestion.overhear(message.cc, self._profile, now)
        self._is_suppressed_by(message, now)

    def _on_command(self, message: Application, now: float) -> None:
        """CMD(APPLICATION): notify the application, once for all copies."""
        patience = 2 * self.session.config.robust * self._profile.grtt
        if self._requests_of_sender().is_new_command(message.content, now, patience):
            self.session.ports.notify(CommandReceived(message.origin.source_id, message.content))

    def _on_stream(self, message: Data, sequence: int, now: float) -> bool:
        """NORM_DATA of a stream: a subclass receives them."""
        return False

    # -- joining ---------------------------------------------------------------------------------------------------

    @property
    def is_joined(self) -> bool:
        """Whether the receiver has joined this sender, so that missing content is requested."""
        return self.first_sequence is None

    def _join_with(self, message: Data | Info) -> bool:
        """Join at the first object whose beginning arrives (NRL's policy CURRENT), or a new sender at its first object.

        With `join` "middle" or "end", any first transmission will do; what came before it in its object is then requested.
        With "all", every message will, and the objects before are requested, too.
        """
        if self.is_joined:
            return True
        part = 0
        if isinstance(message, Data):
            part = message.block if message.fti is None else message.fti.partition.first(message.block)
        policy = self.session.config.join
        may_join = policy == "all" or (not message.flags & FLAG_REPAIR and (not part or policy != "beginning"))
        if not self._join_new_sender(message, part) and may_join:
            self._join(message.object_id, message.fec_id)
        return self.is_joined

    def _join_new_sender(self, message: Data | Info | Flush, part: int) -> bool:
        """Join at object 0 if the sender has just started; `part` symbols of the object (blocks of a FLUSH) come before.

        It has if it sent few messages since its first probe, and at least one for each object and symbol before: ids begin at
        0, NRL's too. A FLUSH of the first block of object 0 shows the same. Otherwise a receiver that was there all the time
        and lost the one INFO or DATA message it may join at would never receive a small object.
        """
        if self.first_sequence is None:
            return True
        sent = (message.sequence - self.first_sequence) & 0xFFFF
        is_only_object = isinstance(message, Flush) and not message.object_id and not part
        if is_only_object or message.object_id + part <= sent < NEW_SENDER:
            self._join(0, message.fec_id, is_new=True)
        elif isinstance(message, Flush) and self.session.config.join in ("end", "all"):
            self._join(message.object_id, message.fec_id)
        return self.is_joined

    def _join(self, object_id: int, fec_id: int, *, is_new: bool = False) -> None:
        """Begin with this object; where all are wanted of a sender that is not new, request those in the window before it.

        Requests name the code before any FTI is known.
        """
        self.first_sequence = None
        self._profile = self._profile.with_coding(fec_id, self._profile.segment, self._profile.parity)
        self.is_complete = False
        if self.extras.modes is not None and self.session.config.join == "all" and not is_new:
            self.extras.modes.joined_at, window = object_id, self.session.config.window
            for key in range(object_id - window + 1, object_id):
                self.objects[key & 0xFFFF] = None
        self.objects[object_id] = None
        self._set_next_new(object_id)

    # -- position --------------------------------------------------------------------------------------------------

    def _count_losses(self, sequence: int) -> int:
        """Count the messages lost before this one; return the sequence number that comes next."""
        expected = self.position.sequence
        gap = (sequence - expected) & 0xFFFF
        if gap < 0x8000:
            self.lost += gap
            return expected + gap + 1
        # It is late, and had been counted as lost.
        self.lost -= self.lost > 0
        return expected

    def _move(self, message: SenderMessage, next_new: Point, sequence: int, tx_point: Point | None = None) -> None:
        """Set the position after `message`; `tx_point` None: the sender transmits at the next new symbol."""
        del message
        object_id, block, symbol = next_new
        self.position = TransmitPosition(object_id, block, symbol, sequence, tx_point or next_new)

    # -- NACKs -----------------------------------------------------------------------------------------------------

    def boundary(self) -> Point:
        """Return the point before which a NACK requests: the transmit point, but not within a block that has parity.

        Parity repairs such a block when it is over. But the sender may send no more of it before its FLUSH is acknowledged.
        """
        point = self.position.tx_point
        modes = self.extras.modes
        object_id, block, symbol = point if modes is None else self._reach(point, modes)
        objects = self.objects
        item = objects.item if objects.key == object_id else objects.get(object_id)
        is_behind = item is not None and item.fti.usable and not item.is_stream and self.extras.flushed != point
        return (object_id, block, 0 if is_behind else symbol)

    def requested(self) -> SmallDict[RxObject | None]:
        """Return the incomplete objects as far as they are requested."""
        modes = self.extras.modes
        return self.objects if modes is None else modes.requested(self.objects, self._profile.fec_id)

    def _reach(self, point: Point, modes: NackModes) -> Point:
        """Return the point before which losses are looked for: not within an object under way if its end is the boundary."""
        if modes.boundary == "block" or self.extras.silent_periods or point[0] != self.position.object_id:
            return point
        item = self.objects.get(point[0])
        is_over = item is None or item.is_stream or self.position.block >= item.fti.partition.blocks
        return point if is_over else (point[0], 0, 0)

    def check(self, point: Point, now: float) -> bool:
        """Begin or resume a NACK process if anything is missing before `point`; return whether that changes the deadline."""
        if self.is_complete:
            return False
        process, objects = self.nack_process, self.objects
        if self.extras.modes is not None:
            objects, point = self.requested(), self._reach(point, self.extras.modes)
        if process is None:
            if not is_missing_before(objects, point) or self.session.is_silent:
                return False
            process = self.nack_process = self.process_type()
            decision = BEGIN
        else:
            decision = process.check(point, objects, now)
            if decision is NOTHING:
                return False
        if decision is BEGIN:
            self._begin_backoff(process, now)
        else:
            self.session.nacks_suppressed -= 1
            self.session.trace("nack_resumed", "until", process.backoff_end)
        return True

    def _begin_backoff(self, process: NackProcess, now: float) -> None:
        held_off_to, session = process.holdoff_end, self.session
        is_waiting = process.begin(now, self.position.tx_point, self._profile, session.ports.rng)
        if session.ports.trace is not None:
            if held_off_to != NEVER:
                session.trace("holdoff_over", "since", held_off_to)
            session.trace("nack_backoff", "until", process.backoff_end)
        if not is_waiting:
            self._expire(process, now)

    def _expire(self, process: NackProcess, now: float) -> None:
        """End a back-off: request what is missing, unless others did."""
        tx_point, boundary = self.position.tx_point, self.boundary()
        decision, missing = process.expire(now, tx_point, boundary, self.requested(), self._profile)
        if decision is Decision.REQUEST:
            self.session.trace("nack_due", "silent_until", process.holdoff_end)
            self._send_nack(missing, now)
            self.session.trace("holdoff", "until", process.holdoff_end)
        elif decision is SUPPRESS:
            self.note_suppression(process)
        else:
            self.session.trace("nack_needless")

    def note_suppression(self, process: NackProcess) -> None:
        """Count a NACK that is not sent because others requested the same."""
        self.session.nacks_suppressed += 1
        if self.session.ports.trace is not None:
            self.session.trace("nack_suppressed", "due", process.backoff_end)

    def _rewind(self, point: Point, now: float) -> None:
        """Note that the sender repairs at `point`."""
        if self.nack_process is not None:
            self.nack_process.rewind(point, now)

    def _send_nack(self, missing: list[MissingRange], now: float) -> None:
        """Request what is missing, with the echo of the last probe."""
        origin, session, echo = self.origin, self.session, (0, 0)
        assert origin is not None
        wanted = missing if session.stream_acceptor is None else self.as_sent(missing)
        response = self.probe_response
        if response is not None:
            echo, self.probe_response = response.echo(now), response.answered(now, self._profile)
        cc = None if self.extras.congestion is None else self.extras.congestion.feedback(self._profile, now)
        for requests in contents_for(wanted, nack_size(self._profile.segment)):
            session.count("nacks_sent")
            session.say(Nack(session.node, 0, origin.source_id, origin.instance_id, *echo, requests, cc), self.extras.source)

    def as_sent(self, missing: list[MissingRange]) -> list[MissingRange]:
        """Return what is missing with blocks as they are numbered on the wire."""
        return missing

    def _send_ack(self, now: float, kind: int = ACK_CC, flushed: Item | None = None, content: bytes = b"") -> None:
        """Answer the last probe, or a FLUSH, which answers the last probe, too."""
        origin, session, response, echo = self.origin, self.session, self.probe_response, (0, 0)
        assert origin is not None
        if response is not None:
            echo, self.probe_response = response.echo(now), response.answered(now, self._profile)
        session.count("acks_sent")
        cc = None if self.extras.congestion is None else self.extras.congestion.feedback(self._profile, now)
        answer = Ack(session.node, 0, origin.source_id, origin.instance_id, kind, 0, *echo, cc=cc)
        if flushed is not None:
            answer.flushed, answer.extensions = flushed, app_ack(content)
        session.say(answer, self.extras.source)

    def _send_flush_ack(self, requests: SenderRequests, now: float) -> None:
        """Acknowledge a FLUSH."""
        self._send_ack(now, ACK_FLUSH, requests.flushed, requests.content)
        requests.confirmed()

    def feedback_state(self) -> FeedbackState | None:
        """Return the state of congestion control for the sender; None without it."""
        return None if self.extras.congestion is None else self.extras.congestion.state(self._profile)

    # -- the sender's timing and activity --------------------------------------------------------------------------

    def _update_origin(self, message: SenderMessage) -> None:
        """Take over the sender's timing, and begin anew with another instance of it."""
        known, origin = self.origin, message.origin
        if known is None or known.instance_id != origin.instance_id:
            if known is not None:
                self._reset(known.source_id)
            # Sequence numbers count from the first message received; what an earlier instance sent stays counted.
            sequence = self._ordinal(message)
            self._base += sequence - self.position.sequence
            self.position = TransmitPosition(0, 0, 0, sequence, (0, 0, 0))
        self.origin = origin
        self._profile = self._profile.with_timing(origin)

    def _ordinal(self, message: SenderMessage) -> int:
        """Return the number from which the messages of an instance are counted; only its low 16 bits matter."""
        return message.sequence

    def _reset(self, node: int) -> None:
        """Forget an earlier instance of the sender."""
        self._give_up(list(self.objects), "the sender restarted")
        self.session.ports.notify(SenderReset(node))
        self.first_sequence = 0
        self.nack_process = self.probe_response = None
        if self.extras.requests is not None:
            self.extras.requests = None
        self._begin_congestion()
        if self.extras.modes is not None:
            self.extras.modes.forget_objects()

    def _begin_congestion(self) -> None:
        """Begin to observe the congestion on the way from an instance of the sender, if the session has congestion control."""
        congestion = congestion_of(self.session)
        if congestion is not None:
            self.change_extras().congestion = congestion

    def activity_period(self) -> float:
        """Return the seconds of an activity period."""
        return max(1.0, 2 * self.session.config.robust * self._profile.grtt)

    def is_silent_at(self, now: float) -> bool:
        """Return whether the activity period that follows the last message is over."""
        return self.last_heard + self.activity_period() <= now

    def _check_activity(self, now: float) -> None:
        """End an activity period: if the sender was silent, request what is missing; after `rx_robust` of them report it."""
        if self.extras.ages is not None:
            self._expire_objects(self.extras.ages, now)
        period = self.activity_period()
        if not self.is_silent_at(now):
            if self.extras.silent_periods:
                self.extras.silent_periods = 0
            self.idle_at = later(self.last_heard, period)
            return
        position = self.position
        # A message may have arrived at the very moment of the last check.
        extras = self.change_extras()
        extras.silent_periods = 1 if self.last_heard >= self.idle_at - period else extras.silent_periods + 1
        next_new = (position.object_id, position.block, position.symbol)
        if extras.silent_periods < self.session.config.rx_robust:
            self.idle_at = later(now, period)
            self.check(next_new, now)
            return
        assert self.origin is not None
        self.idle_at = inf
        self._set_next_new(*next_new)
        if self.session.is_silent or self.extras.ages is not None:
            missing = [key for key, item in self.objects.items() if item is None or not item.has_no_gaps]
            self._give_up(missing, "missing, and not requested")
        self.session.ports.notify(SenderSilent(self.origin.source_id))
