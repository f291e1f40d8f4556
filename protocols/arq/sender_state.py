"""One sender as a receiver sees it: which objects come, which units are missing, and when to ask for them."""

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from protocols.arq.messages import Data, End, Nack
from protocols.arq.rx_object import RxObject
from protocols.events import ObjectAborted, ObjectOpened, ObjectReceived, SenderReset, SenderSilent
from protocols.machine import Offer

if TYPE_CHECKING:
    from protocols.arq.receiver import ArqReceiver

__all__ = ["Key", "SenderState", "Want"]

Key = tuple[int, int]
"""A unit: (object id, unit)."""
JUMP = 32_768
"""Objects a sender can serve at one time; a message that speaks of more makes no sense."""


class Want:
    """A missing unit: waiting to ask for it, or (`asked`) for the repair somebody asked for."""

    __slots__ = ("asked", "due", "tries")

    def __init__(self) -> None:
        self.asked = False
        self.due = inf
        self.tries = 0


class SenderState:
    """`at` is the unit that comes next. An object up to `at` that is not in `open` is done with, well or not."""

    __slots__ = ("_heap", "_object", "_quiet_at", "_receiver", "_unit", "heard", "instance", "node", "open", "wants")

    def __init__(self, receiver: "ArqReceiver", node: int, instance: int, first: int) -> None:
        self._receiver = receiver
        self.node = node
        self.instance = instance
        self.heard = -inf
        self.open: dict[int, RxObject | None] = {}
        """Objects not complete; None while nothing of them came."""
        self.wants: dict[Key, Want] = {}
        self._object, self._unit = first - 1, 0
        self._heap: list[tuple[float, Key]] = []
        self._quiet_at = inf

    # -- inputs ----------------------------------------------------------------------------------------------------

    def hear(self, message: Data | End, now: float) -> None:
        """Content, or the news that everything was sent."""
        self.heard = now
        object_id = message.object_id
        if object_id == self._object and type(message) is Data and message.unit == self._unit and message.unit:
            item = self.open.get(object_id)
            if item is not None and item.fits(message):
                self._unit += 1
                self._take(item, message)
                return
        if not 0 <= object_id - message.first < JUMP:
            self._receiver.ignored += 1
            return
        self._forget_before(message.first)
        if object_id > self._object:
            self._open_through(object_id, now)
        if isinstance(message, End):
            self._on_end(message, now)
        else:
            self._on_data(message, now)

    def overhear(self, nack: Nack, now: float) -> None:
        """Another receiver asked for a unit: whoever lacks it too waits for the repair."""
        key = (nack.object_id, nack.unit)
        item = self.open.get(nack.object_id)
        if nack.object_id == self._object and item is not None and self._unit <= nack.unit < item.units:
            self._advance(item, nack.unit + 1, now)
        want = self.wants.get(key)
        if want is not None:
            self._receiver.on_request(self, key, want, now)

    def wake(self, now: float) -> None:
        """Ask for what is due, and see whether the sender is still there."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, key = heappop(heap)
            want = self.wants.get(key)
            if want is None or want.due != due:
                continue
            if want.tries > self._receiver.config.robust:
                self._give_up(key[0], "not repaired")
            else:
                self._receiver.on_due(self, key, want, now)
        if self._quiet_at <= now:
            self._check_silence(now)

    def due(self) -> float:
        """When `wake` is wanted."""
        heap = self._heap
        while heap:
            want = self.wants.get(heap[0][1])
            if want is not None and want.due == heap[0][0]:
                return min(heap[0][0], self._quiet_at)
            heappop(heap)
        return self._quiet_at

    def plan(self, key: Key, want: Want, when: float) -> None:
        """Look at this missing unit again at `when`."""
        want.due = when
        heappush(self._heap, (when, key))

    def reset(self) -> None:
        """The sender restarted: what is unfinished will not come any more."""
        for object_id in list(self.open):
            self._give_up(object_id, "the sender restarted")
        self._receiver.ports.notify(SenderReset(self.node))

    # -- what came -------------------------------------------------------------------------------------------------

    def _on_end(self, message: End, now: float) -> None:
        if message.object_id != self._object or message.object_id not in self.open:
            return
        item = self.open[message.object_id]
        if item is None:
            self._unit = max(self._unit, message.units)
            self._lack((message.object_id, 0), now)
        else:
            self._advance(item, item.units, now)

    def _on_data(self, message: Data, now: float) -> None:
        object_id, unit = message.object_id, message.unit
        if object_id not in self.open:
            self._receiver.duplicates += 1
            return
        item = self.open[object_id] or self._offer(message, now)
        if item is None:
            return
        if not item.fits(message):
            self._receiver.ignored += 1
            return
        if object_id == self._object and unit >= self._unit:
            self._advance(item, unit, now)
            self._unit = unit + 1
        if item.holds(unit):
            self._receiver.duplicates += 1
        else:
            self._take(item, message)

    def _offer(self, message: Data, now: float) -> RxObject | None:
        """The object begins here; everything of it that was sent before is missing."""
        object_id, ports = message.object_id, self._receiver.ports
        self.wants.pop((object_id, 0), None)
        ports.notify(ObjectOpened(self.node, object_id, message.size))
        sink = ports.accept(Offer(self.node, object_id, message.size, message.is_file))
        if sink is None:
            self._close(object_id)
            return None
        item = self.open[object_id] = RxObject(message, sink)
        sent = min(self._unit, item.units) if object_id == self._object else item.units
        for unit in range(sent):
            if unit != message.unit:
                self._lack((object_id, unit), now)
        return item

    def _take(self, item: RxObject, message: Data) -> None:
        key = (message.object_id, message.unit)
        if self.wants:
            self.wants.pop(key, None)
        receiver = self._receiver
        try:
            complete = item.take(message)
            if complete:
                item.sink.commit(item.info)
        except OSError as error:
            self._give_up(message.object_id, f"sink: {error}")
            return
        receiver.on_unit(message)
        if complete:
            self._close(message.object_id)
            receiver.objects_received += 1
            receiver.ports.notify(ObjectReceived(self.node, message.object_id, item.size, item.info))

    # -- what is missing -------------------------------------------------------------------------------------------

    def _open_through(self, object_id: int, now: float) -> None:
        """The sender has come to this object: all before it were sent."""
        item = self.open.get(self._object)
        if item is not None:
            self._advance(item, item.units, now)
        elif self._object in self.open:
            self._lack((self._object, 0), now)
        for number in range(self._object + 1, object_id + 1):
            self.open[number] = None
            if number < object_id:
                self._lack((number, 0), now)
        self._object, self._unit = object_id, 0
        if self._quiet_at == inf:
            self._quiet_at = now + self._patience()

    def _advance(self, item: RxObject, unit: int, now: float) -> None:
        """Everything of the current object before `unit` was sent."""
        for missing in range(self._unit, unit):
            if not item.holds(missing):
                self._lack((self._object, missing), now)
        self._unit = max(self._unit, unit)

    def _lack(self, key: Key, now: float) -> None:
        if key not in self.wants:
            self._receiver.data_lost += 1
            want = self._receiver.want(self, key, now)
            if want is not None:
                self.wants[key] = want

    def _forget_before(self, first: int) -> None:
        """Objects before `first` are not served any more."""
        if self.open and next(iter(self.open)) < first:
            for object_id in [number for number in self.open if number < first]:
                self._give_up(object_id, "not served any more")
        if self._object < first - 1:
            for object_id in range(max(self._object + 1, first - JUMP), first):
                self._receiver.ports.notify(ObjectAborted(self.node, object_id, "not served any more"))
                self._receiver.objects_aborted += 1
            self._object, self._unit = first - 1, 0

    # -- ends ------------------------------------------------------------------------------------------------------

    def _close(self, object_id: int) -> None:
        """The object is done with."""
        del self.open[object_id]
        if self.wants:
            for key in [key for key in self.wants if key[0] == object_id]:
                del self.wants[key]
        if not self.open:
            self._quiet_at = inf

    def _give_up(self, object_id: int, reason: str) -> None:
        item = self.open[object_id]
        if item is not None:
            try:
                item.sink.abort()
            except OSError as error:
                reason = f"{reason}; sink: {error}"
        self._close(object_id)
        self._receiver.objects_aborted += 1
        self._receiver.ports.notify(ObjectAborted(self.node, object_id, reason))

    def _patience(self) -> float:
        config = self._receiver.config
        return 3.0 * config.robust * config.timeout

    def _check_silence(self, now: float) -> None:
        """Nothing came for long while something is missing: it will not come any more."""
        if self.heard + self._patience() > now:
            self._quiet_at = self.heard + self._patience()
            return
        self._receiver.ports.notify(SenderSilent(self.node))
        for object_id in list(self.open):
            self._give_up(object_id, "the sender is silent")
