"""Sending side of a session: objects from their submission until nothing more is sent for them, and streams."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from experiments.session.arguments import refused
from experiments.session.boundaries import Boundary
from experiments.session.events import Delivery
from experiments.session.outgoing_stream import OutgoingStream
from experiments.session.transmission import State, Transmission
from experiments.session.waiting import Changes
from protocols.acknowledgement import AckRequest, AckSender, CommandSender
from protocols.errors import TransferError, UsageError
from protocols.events import (
    AcksCompleted,
    CommandSent,
    Event,
    FlushCompleted,
    NodeAcknowledged,
    ObjectAborted,
    ObjectPurged,
    ObjectSent,
)
from protocols.hosting import Host
from protocols.machine import Content, Sender
from protocols.stream import Flush, StreamSender, StreamSettings, StreamVacant

__all__ = ["MOST_UNSENT", "Outbox", "transmission_of"]

MOST_UNSENT = 32
"""Objects that were not sent once, from which on further ones wait."""


class _Question:
    """Who confirms an object: `answer` is None until it is known."""

    __slots__ = ("answer", "item")

    def __init__(self, item: Transmission) -> None:
        self.item = item
        self.answer: Delivery | None = None

    def is_over(self) -> bool:
        return self.answer is not None or self.item.state == "failed"


class Outbox:
    """Submits content to the sender that `host` runs, and follows what becomes of it by the sender's events."""

    def __init__(self, host: Host, sender: Sender, node: int) -> None:
        self._host, self._sender, self._node = host, sender, node
        self._under_way: dict[int, Transmission] = {}
        """By object id what can still be sent or repaired."""
        self._pending: dict[Transmission, None] = {}
        self._failed: list[Transmission] = []
        self._releases: dict[int, Callable[[], None]] = {}
        self._questions: list[_Question] = []
        self._contents: dict[int, dict[int, bytes]] = {}
        """By object and node the application data of ACKs, until the question is answered."""
        self._last_command = 0
        self._streams: dict[int, OutgoingStream] = {}
        self._unsent = 0
        self._early: list[Event] | None = None
        self._is_announced = True
        """Whether the end of all objects that failed was announced to receivers."""
        self.changes = Changes()

    def submit(self, content: Content, name: str, release: Callable[[], None] | None = None) -> Transmission:
        """Queue an object, without waiting; `release()` is called when its source is not read any more.

        UsageError when the protocol can't carry it.
        """
        early: list[Event] = []
        self._early = early
        try:
            object_id = self._host.call(self._sender.submit, content)
        finally:
            self._early = None
        self._unsent += 1
        item = self._begin(Transmission(object_id, name, content.source.size))
        if release is not None:
            self._releases[object_id] = release
        for event in early:
            self.on_event(event)
        return item

    def cancel(self, item: Transmission) -> bool:
        """Drop an object, which is not sent or repaired any more; return False if it was not kept any more.

        UsageError for a protocol that can't.
        """
        cancel = getattr(self._sender, "cancel", None)
        if cancel is None:
            raise UsageError("the sender of this protocol cancels nothing; that of norm does")
        if self._under_way.get(item.object_id) is not item:
            return False
        was_announced = self._is_announced and item.state == "done"
        was_kept: bool = self._host.call(cancel, item.object_id)
        # The end of an object that was done is announced only in answer to requests.
        self._is_announced = self._is_announced or was_announced
        # The program cancelled it, so that is no failure to report.
        self._failed = [other for other in self._failed if other is not item]
        return was_kept

    def requeue(self, item: Transmission) -> bool:
        """Send an object once more; return False if it is not kept any more, or not sent yet. UsageError as for `cancel`."""
        requeue = getattr(self._sender, "requeue", None)
        if requeue is None:
            raise UsageError("the sender of this protocol sends nothing again; that of norm does")
        if self._under_way.get(item.object_id) is not item or item.state not in ("sent", "done"):
            return False
        if not self._host.call(requeue, item.object_id):
            return False
        self._unsent += 1
        item.state = "queued"
        self._pending[item] = None
        return True

    async def command(self, content: bytes, copies: int) -> None:
        """Send a command and wait until its last copy was sent; a task that is cancelled withdraws the rest.

        UsageError for a protocol without commands, and for one that does not fit a packet.
        """
        sender = self._sender
        if not isinstance(sender, CommandSender):
            raise UsageError("the sender of this protocol sends no commands; that of norm does")
        number = self._host.call(sender.send_command, content, copies)
        try:
            await self.changes.until(lambda: self._last_command >= number)
        except BaseException:
            if self.changes.failure is None:
                self._host.call(sender.cancel_command, number)
            raise

    def adjust(self, settings: Mapping[str, object]) -> None:
        """Change parameters of the sender. UsageError for those that can't change, and for a protocol without any."""
        adjust = getattr(self._sender, "adjust", None)
        if adjust is None:
            raise UsageError("the parameters of this protocol can't change in a session; some of norm can")
        self._host.call(adjust, settings)

    def open_stream(self, boundary: Boundary, flush: Flush, settings: StreamSettings) -> OutgoingStream:
        """Begin a stream. UsageError for a protocol without streams, and for settings it can't use."""
        if not isinstance(self._sender, StreamSender):
            raise UsageError("the protocol of this session has no streams; norm has them")
        stream = OutgoingStream(self._host, cast(StreamSender, self._sender), boundary, flush, settings, self._drop)
        self._streams[stream.object_id] = stream
        stream.transmission = self._begin(Transmission(stream.object_id, "stream", None))
        return stream

    async def room(self) -> None:
        """Wait until another object may be submitted."""
        await self.changes.until(lambda: self._unsent < MOST_UNSENT)

    async def delivered(self, what: Transmission | OutgoingStream) -> Delivery:
        """Wait until nothing more is sent for an object or a stream. TransferError when it can't be sent."""
        item = transmission_of(what)
        if isinstance(what, OutgoingStream) and not what.is_closed:
            raise UsageError("the stream is open; close it before waiting for its delivery")
        await self.changes.until(lambda: item.is_over)
        self._check(item)
        return Delivery(item.object_id)

    async def confirmed(self, what: Sequence[Transmission | OutgoingStream], request: AckRequest) -> list[Delivery]:
        """Wait until the receivers that are asked have confirmed, or were asked as often as configured.

        TransferError for an object that can't be sent, UsageError for a protocol without acknowledgements.
        """
        for item in what:
            if isinstance(item, OutgoingStream) and not item.is_closed:
                await item.flush()
        asked: list[_Question] = []
        try:
            for item in what:
                asked.append(self._ask(transmission_of(item), request))
            for question in asked:
                await self.changes.until(question.is_over)
                self._check(question.item)
        except BaseException:
            self._cancel([question for question in asked if question.answer is None])
            raise
        return [question.answer for question in asked if question.answer is not None]

    def _check(self, item: Transmission) -> None:
        """Raise TransferError for an object that has failed, whose failure `all_delivered` then does not report again."""
        if item.state == "failed":
            if item in self._failed:
                self._failed.remove(item)
            raise TransferError(f"{item.name}: {item.reason}")

    async def all_delivered(self) -> list[Delivery]:
        """Wait for all objects and closed streams submitted so far. TransferError for failures not raised before."""
        open_streams = {key for key, stream in self._streams.items() if not stream.is_closed}
        waiting = [item for item in self._pending if item.object_id not in open_streams]
        await self.changes.until(lambda: self._is_announced and all(item.is_over for item in waiting))
        if self._failed:
            failed, self._failed = self._failed, []
            raise TransferError("; ".join(f"{item.name}: {item.reason}" for item in failed))
        return [Delivery(item.object_id) for item in waiting]

    def end_streams(self, graceful: bool) -> None:
        """Close the streams that are open."""
        for stream in list(self._streams.values()):
            stream.end(graceful)

    def fail(self, error: Exception) -> None:
        """Raise an error in all calls that wait, and release all sources."""
        self.changes.fail(error)
        for object_id in list(self._releases):
            self._release(object_id)
        for stream in self._streams.values():
            stream.fail(error)

    def on_event(self, event: Event) -> None:
        """Take an event of the machine."""
        if self._early is not None:
            # `submit` has not returned the id of this object yet.
            self._early.append(event)
        elif isinstance(event, ObjectSent):
            self._settle(event.object_id, "sent")
        elif isinstance(event, NodeAcknowledged):
            if event.content and any(asked.item.object_id == event.object_id for asked in self._questions):
                self._contents.setdefault(event.object_id, {})[event.node] = event.content
        elif isinstance(event, AcksCompleted):
            self._answer(event)
        elif isinstance(event, CommandSent):
            self._last_command = event.command_id
            self.changes.changed()
        elif isinstance(event, StreamVacant):
            self._tell_stream(event.object_id, event)
        elif isinstance(event, ObjectPurged):
            self._settle(event.object_id, "done")
            self._release(event.object_id)
            self._under_way.pop(event.object_id, None)
            self._streams.pop(event.object_id, None)
        elif isinstance(event, ObjectAborted) and event.sender == self._node:
            self._tell_stream(event.object_id, event)
            self._settle(event.object_id, "failed", event.reason.removeprefix("source: "))
            self._release(event.object_id)
            self._streams.pop(event.object_id, None)
        elif isinstance(event, FlushCompleted):
            self._is_announced = True
            self.changes.changed()
            for item in [item for item in self._pending if item.state == "sent"]:
                self._settle(item.object_id, "done")

    def _ask(self, item: Transmission, request: AckRequest) -> "_Question":
        if not isinstance(self._sender, AckSender):
            raise UsageError("the receivers of this protocol confirm nothing; those of norm do")
        question = _Question(item)
        self._questions.append(question)
        try:
            self._host.call(self._sender.require_acks, item.object_id, request)
        except BaseException:
            self._questions.remove(question)
            raise
        return question

    def _cancel(self, questions: "list[_Question]") -> None:
        """Cancel requests for ACKs that no call waits for any more."""
        for question in questions:
            if question in self._questions and self.changes.failure is None and isinstance(self._sender, AckSender):
                self._host.call(self._sender.cancel_acks, question.item.object_id)

    def _answer(self, event: AcksCompleted) -> None:
        """Answer the first question about an object: a sender serves them in order."""
        contents = self._contents.pop(event.object_id, {})
        question = next((asked for asked in self._questions if asked.item.object_id == event.object_id), None)
        if question is not None:
            self._questions.remove(question)
            question.answer = Delivery(event.object_id, event.acknowledged, event.missing, contents)
            self.changes.changed()

    def _release(self, object_id: int) -> None:
        release = self._releases.pop(object_id, None)
        if release is not None:
            release()

    def _begin(self, item: Transmission) -> Transmission:
        self._under_way[item.object_id] = item
        self._pending[item] = None
        return item

    def _drop(self, object_id: int) -> None:
        """Note that the application has ended a stream at once."""
        self._settle(object_id, "done")
        self._under_way.pop(object_id, None)

    def _tell_stream(self, object_id: int, event: Event) -> None:
        if object_id in self._streams:
            self._streams[object_id].on_event(event)

    def _settle(self, object_id: int, state: State, reason: str = "") -> None:
        """Note the next state of an object; one that was sent may still fail in a repair."""
        item = self._under_way.get(object_id)
        if item is None or item.state == "failed" or (item.state == "done" and state != "failed"):
            return
        if item.state == "queued" and item.size is not None:
            self._unsent -= 1
        item.state, item.reason = state, reason
        if state == "failed":
            self._failed.append(item)
            self._is_announced = False
            del self._under_way[object_id]
        if item.is_over:
            self._pending.pop(item, None)
            self._streams.pop(object_id, None)
        self.changes.changed()


def transmission_of(what: Transmission | OutgoingStream) -> Transmission:
    """Return what a session sends of an object or a stream. UsageError for what is neither."""
    found = what.transmission if isinstance(what, OutgoingStream) else what
    if not isinstance(found, Transmission):
        raise refused("what", what, "an object or a stream that this session sends")
    return found
