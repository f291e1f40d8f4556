"""Receiving side of a session: the sinks of objects, the streams, and the queue of events that the program reads."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from experiments.running.folder import FileSink, Folder
from experiments.running.open_sinks import OpenSinks
from experiments.session.boundaries import Boundary
from experiments.session.events import ContentReceived, ObjectRefused, StreamOpened
from experiments.session.incoming_stream import IncomingStream
from experiments.session.memory_objects import MemoryObject, MemoryObjects
from experiments.session.waiting import Changes
from protocols.events import Event, ObjectAborted, ObjectOpened, ObjectReceived, ObjectsAborted
from protocols.machine import Offer, Sink

__all__ = ["Inbox"]

MOST_EVENTS = 4096
"""Events without content that wait for the program; of more, the oldest are dropped."""
MOST_STREAMS = 64
"""Streams that are open or wait for the program; further ones are not received."""


class Inbox:
    """Stores the objects and streams that the receiver offers, and queues its events for the program.

    Files go to `folder`, if there is one; other objects go there only without `files_only`, else to memory. `told` is called
    with every event at once. Without it events wait until the program reads them by `next`. `resume` is called with sender and
    object id of a stream that has room again, `give_up` with the offer of an object that is not stored any more, and why.
    """

    def __init__(
        self,
        folder: Folder | None,
        memory: int,
        boundary: Boundary,
        told: Callable[[Event], None] | None = None,
        *,
        files_only: bool = True,
    ) -> None:
        self.folder = folder
        self._files_only = files_only
        self._memory = MemoryObjects(memory)
        self._boundary = boundary
        self._told = told
        self._sinks: OpenSinks[MemoryObject | FileSink] = OpenSinks()
        self._streams: dict[tuple[int, int], IncomingStream] = {}
        self._later: deque[Event] = deque()
        # Complete objects, which take memory, and streams lie among events of which only the last are kept.
        self._events: deque[tuple[Event, MemoryObject | None]] = deque()
        self._plain = self._unread_streams = 0
        self.changes = Changes()
        self.resume: Callable[[int, int], None] = lambda node, object_id: None
        self.give_up: Callable[[Offer, str], None] = lambda offer, reason: None
        self.dropped = self.objects = self.octets = self.lost = 0
        """Events that were dropped; objects received, their bytes, and objects that will not be completed."""
        self.is_complete = False
        """Whether no further object is wanted."""
        self.declined = 0
        """Objects offered since."""
        self.first_at: float | None = None
        self.last_at: float | None = None
        """Seconds of the session at which the first object began and the last one was complete."""

    async def next(self) -> Event:
        """Wait for the next event. Raises the error with which the session ended."""
        await self.changes.until(lambda: self._events)
        event, sink = self._events.popleft()
        if isinstance(event, StreamOpened):
            self._unread_streams -= 1
        elif sink is None:
            self._plain -= 1
        return event if sink is None else _with_content(event, sink)

    # -- what the receiver calls -----------------------------------------------------------------------------------

    def accept(self, offer: Offer) -> Sink | None:
        """Return the sink of an offered object; None, with an event that follows, when there is no room for it."""
        if self.is_complete:
            self.declined += 1
            return None
        to_folder = self.folder is not None and (offer.is_file or not self._files_only)
        sink = self._folder_sink(offer) if to_folder else self._memory.sink(offer)
        if isinstance(sink, str):
            self._later.append(ObjectRefused(offer.sender, offer.object_id, offer.size, sink))
            return None
        self._sinks.add((offer.sender, offer.object_id), sink)
        return sink

    def accept_stream(self, offer: Offer) -> IncomingStream | None:
        """Return the application's end of an offered stream; None when there are too many."""
        self._streams = {key: stream for key, stream in self._streams.items() if not stream.is_over}
        if len(self._streams) + self._unread_streams >= MOST_STREAMS:
            return None
        stream = IncomingStream(offer.sender, offer.object_id, self._boundary, self._resume)
        self._streams[offer.sender, offer.object_id] = stream
        self._later.append(StreamOpened(offer.sender, offer.object_id, stream))
        return stream

    def on_event(self, event: Event, now: float) -> None:
        """Take an event of the machines."""
        self.settle()
        if isinstance(event, ObjectReceived):
            self.last_at = now
            self._received(event)
        else:
            if isinstance(event, ObjectOpened) and self.first_at is None:
                self.first_at = now
            if isinstance(event, (ObjectAborted, ObjectsAborted)):
                self._note_lost(event)
            self.tell(event)
        self.settle()

    def settle(self) -> None:
        """Deliver events of offers, have the machine drop what was given up, and unlock the folder; call it now and then."""
        while self._later:
            event = self._later.popleft()
            self.lost += isinstance(event, ObjectRefused)
            self.tell(event)
        while self._memory.given_up:
            self.give_up(*self._memory.given_up.popleft())
        if self.folder is not None:
            while self.folder.given_up:
                given = self.folder.given_up.popleft()
                self.give_up(given.offer, given.reason)
            self.folder.unlock()

    def tell(self, event: Event, sink: MemoryObject | None = None) -> None:
        """Give an event to the program, with the content that it takes with it."""
        if self._told is not None:
            self._told(event if sink is None else _with_content(event, sink))
            return
        self._events.append((event, sink))
        if isinstance(event, StreamOpened):
            self._unread_streams += 1
        elif sink is None:
            self._plain += 1
            if self._plain > MOST_EVENTS:
                self._drop_oldest()
        self.changes.changed()

    @property
    def unfinished(self) -> list[MemoryObject | FileSink]:
        """The objects of which a part has arrived."""
        return [*self._memory.unfinished, *(self.folder.unfinished if self.folder is not None else ())]

    def fail(self, error: Exception) -> None:
        """Raise an error in all calls that wait."""
        self.changes.fail(error)
        for stream in self._streams.values():
            stream.fail(error)

    # -- within ----------------------------------------------------------------------------------------------------

    def _folder_sink(self, offer: Offer) -> FileSink | str:
        assert self.folder is not None
        return self.folder.sink(offer) or self.folder.refused.popleft().reason

    def _resume(self, node: int, object_id: int) -> None:
        self.resume(node, object_id)

    def _received(self, event: ObjectReceived) -> None:
        sink = self._sinks.take((event.sender, event.object_id))
        self.objects, self.octets = self.objects + 1, self.octets + event.size
        path = None
        if isinstance(sink, FileSink):
            assert self.folder is not None
            assert self.folder.last is not None
            path = self.folder.path / self.folder.last.name
        is_file = sink is not None and sink.offer.is_file
        told = ContentReceived(event.sender, event.object_id, event.size, event.info, is_file, path=path)
        if isinstance(sink, MemoryObject):
            self.tell(told, sink)
        else:
            self.tell(told)

    def _note_lost(self, event: ObjectAborted | ObjectsAborted) -> None:
        if isinstance(event, ObjectAborted):
            self._sinks.discard((event.sender, event.object_id))
            self.lost += 1
        else:
            self.lost += event.count

    def _drop_oldest(self) -> None:
        """Drop the oldest event that carries neither content nor a stream."""
        for place, (event, sink) in enumerate(self._events):
            if sink is None and not isinstance(event, StreamOpened):
                del self._events[place]
                self._plain -= 1
                self.dropped += 1
                return


def _with_content(event: Event, sink: MemoryObject) -> ContentReceived:
    assert isinstance(event, ContentReceived)
    return replace(event, data=sink.taken())
