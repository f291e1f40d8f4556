"""Positive acknowledgement at the sender (RFC 5740 5.5.3): who is asked, how often, and who has answered."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

from protocols.acknowledgement import AckRequest
from protocols.errors import UsageError
from protocols.events import AcksCompleted, Event, NodeAcknowledged, NodeUnacknowledged
from protocols.norm.messages import ACK_FLUSH, ANY_NODE, Ack, Nack
from protocols.norm.sender_requests import content_of
from protocols.norm.tx_object import TxObject
from protocols.norm.tx_stream import TxStream
from protocols.norm.window import Window
from protocols.serial import ahead

__all__ = ["AckCollector", "Watermark", "check_request"]

LONGEST: Final = 960
"""Bytes of application data in a FLUSH or an ACK: the length of a header has 8 bits and counts words."""
MOST_HEARD: Final = 1 << 16
"""Receivers that are remembered."""


def check_request(request: AckRequest) -> None:
    """Raise UsageError for a request that no FLUSH can carry."""
    wrong = [node for node in request.nodes if not 0 < node < ANY_NODE]
    if wrong:
        raise UsageError(f"node {wrong[0]} can't acknowledge; node ids are from 1 to {ANY_NODE - 1}")
    if len(request.content) > LONGEST:
        raise UsageError(f"{len(request.content)} bytes of content in a request for ACKs; at most {LONGEST}")


class Watermark:
    """A point in the order of transmission through which receivers are asked to confirm; `symbol` is the last one asked for.

    `asked` counts, by node that has not answered, how often it was asked.
    """

    __slots__ = ("acknowledged", "asked", "block", "is_reached", "item", "object_id", "request", "symbol")

    def __init__(self, item: TxObject, request: AckRequest) -> None:
        self.item = item
        self.object_id = item.object_id
        self.block, self.symbol = item.written_end if isinstance(item, TxStream) else item.end
        self.request = request
        self.asked = dict.fromkeys(request.nodes, 0)
        if request.everybody:
            self.asked[ANY_NODE] = 0
        self.acknowledged: dict[int, None] = {}
        self.is_reached = False
        """Whether everything through the point was sent."""

    @property
    def wire_point(self) -> tuple[int, int]:
        """Block and symbol as they are on the wire."""
        return self.block & self.item.block_mask if self.item.partition.blocks else self.block, self.symbol

    @property
    def is_end(self) -> bool:
        """Whether nothing follows the point in its object."""
        item = self.item
        return not isinstance(item, TxStream) or (not item.is_open and item.written_end == (self.block, self.symbol))

    @property
    def is_answered(self) -> bool:
        """Whether all that have to confirm have done so."""
        expected = self.request.expected
        return not self.asked or (0 < expected <= len(self.acknowledged) and set(self.asked) <= {ANY_NODE})


class AckCollector:
    """Serves the watermarks of a sender one after the other.

    A node is listed in a FLUSH every two GRTT until it has answered, `robust` times at the most. The count begins anew when
    something before the watermark is repaired; while it is, no FLUSH is sent.
    """

    __slots__ = (
        "_heard",
        "_notify",
        "_room",
        "_watermarks",
        "_window",
        "due",
        "is_asking",
        "last",
        "replaced_flush",
        "robust",
    )

    def __init__(self, window: Window, notify: Callable[[Event], None], robust: int, room: int) -> None:
        self._window = window
        self._notify = notify
        self.robust = robust
        """How often a node is asked at the most."""
        # Most nodes in one FLUSH.
        self._room = room
        self._watermarks: deque[Watermark] = deque()
        # Receivers heard, in the order of their first message.
        self._heard: dict[int, None] = {}
        self.due = inf
        """When the next FLUSH is to be sent; inf for none."""
        self.is_asking = False
        """Whether a watermark is reached that is not answered."""
        self.last: Watermark | None = None
        """The watermark that was concluded last."""
        self.replaced_flush: int | None = None
        """The last object whose end needs no announcement, because it was acknowledged."""

    def require(self, item: TxObject, request: AckRequest, now: float) -> None:
        """Ask for ACKs of everything through the end of an object, or through what was written of a stream."""
        self._watermarks.append(Watermark(item, request))
        self.look(now)

    def cancel(self, object_id: int, now: float) -> None:
        """Await no more ACKs of an object."""
        for watermark in [each for each in self._watermarks if each.object_id == object_id]:
            # One that asks nobody ends with the one before it.
            if watermark in self._watermarks:
                self._conclude(watermark, now)

    @property
    def first(self) -> Watermark | None:
        """The watermark that is served now or next, None for none."""
        return self._watermarks[0] if self._watermarks else None

    @property
    def is_waiting(self) -> bool:
        """Whether the first watermark is not reached yet."""
        return bool(self._watermarks) and not self.is_asking

    def look(self, now: float) -> None:
        """Begin to ask if everything through the first watermark was sent."""
        if not self.is_waiting or not self._is_reached(self._watermarks[0]):
            return
        watermark = self._watermarks[0]
        watermark.is_reached = self.is_asking = True
        if watermark.request.everybody:
            watermark.asked = {**dict.fromkeys(self._heard, 0), **watermark.asked}
        self.due = now
        if not watermark.asked:
            self._conclude(watermark, now)

    def _is_reached(self, watermark: Watermark) -> bool:
        item = watermark.item
        if item in self._window.backlog:
            return False
        if item.object_id not in self._window.objects:
            return True
        if isinstance(item, TxStream):
            return (item.block, item.symbol) > (watermark.block, watermark.symbol)
        return not item.unsent

    def heard(self, message: Nack | Ack, now: float) -> None:
        """Take a receiver's feedback; an ACK may be the one awaited."""
        node = message.source_id
        if node not in self._heard and len(self._heard) < MOST_HEARD:
            self._heard[node] = None
        if not self.is_asking:
            return
        watermark = self._watermarks[0]
        if isinstance(message, Ack) and message.ack_type == ACK_FLUSH and self._is_of(message, watermark):
            self._acknowledge(watermark, node, content_of(message.extensions), now)
        elif watermark.request.everybody and node not in watermark.acknowledged and len(watermark.asked) < MOST_HEARD:
            watermark.asked.setdefault(node, 0)

    def _is_of(self, ack: Ack, watermark: Watermark) -> bool:
        flushed = ack.flushed
        if flushed is None or flushed.object_id != watermark.object_id:
            return False
        return (flushed.block, flushed.symbol) == watermark.wire_point

    def _acknowledge(self, watermark: Watermark, node: int, content: bytes, now: float) -> None:
        if node in watermark.acknowledged or not (node in watermark.asked or watermark.request.everybody):
            return
        watermark.asked.pop(node, None)
        watermark.acknowledged[node] = None
        self._notify(NodeAcknowledged(watermark.object_id, node, content))
        if watermark.is_answered:
            self._conclude(watermark, now)

    def rewound(self, repaired: list[TxObject]) -> None:
        """Begin to count anew, because something is repaired, if it is before the watermark."""
        if self.is_asking and any(ahead(item.object_id, self._watermarks[0].object_id) <= 0 for item in repaired):
            self._watermarks[0].asked = dict.fromkeys(self._watermarks[0].asked, 0)

    def next(self, now: float, interval: float, last_wait: float) -> tuple[Watermark, tuple[int, ...]] | None:
        """Return what the next FLUSH names and whom it asks; None when all were asked often enough.

        The one after it follows in `interval` seconds; behind the last one `last_wait` seconds remain for an answer.
        """
        watermark = self._watermarks[0]
        asked = watermark.asked
        open_ones = sorted([node for node, times in asked.items() if times < self.robust], key=lambda node: asked[node])
        if not open_ones:
            self._conclude(watermark, now)
            return None
        listed = open_ones[: self._room]
        for node in listed:
            asked[node] += 1
        is_last = all(times >= self.robust for times in asked.values())
        self.due = now + (last_wait if is_last else interval)
        return watermark, tuple(sorted(listed))

    def _conclude(self, watermark: Watermark, now: float) -> None:
        """End a watermark, whoever has answered, and go on with the next one."""
        self._watermarks.remove(watermark)
        self.last = watermark
        missing = tuple(sorted(set(watermark.asked) - {ANY_NODE}))
        for node in missing:
            self._notify(NodeUnacknowledged(watermark.object_id, node))
        self._notify(AcksCompleted(watermark.object_id, tuple(sorted(watermark.acknowledged)), missing))
        if watermark.request.replaces_flush and watermark.is_end:
            self.replaced_flush = watermark.object_id
        if watermark.is_reached:
            self.is_asking, self.due = False, inf
            self.look(now)
