"""Packets of one publisher at a subscriber: their order, requests for those that are missing, messages."""

from math import inf
from typing import Final

from protocols.message_wire import find_message
from protocols.messaging import Publication
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Data, Nack, Origin, Status
from protocols.nacked.wire import MOST_RANGES
from protocols.norm.maps import SmallDict
from protocols.range_set import RangeSet
from protocols.rng import Rng

__all__ = ["PacketReceiver"]

PACKET_OVERHEAD = 256
"""Bytes that a packet which is kept takes beside its content."""
MOST_PARTS_BYTES = 64 << 20
"""Bytes of a message that is not complete; a longer one is given up."""
_NO_PARTS: Final[list[Data]] = []
"""An empty list of packets, shared while no message is being received; never modified."""
_NOTHING_KEPT: Final[SmallDict[Data]] = SmallDict()
_NOTHING_MISSING: Final = RangeSet()
"""Shared by the receivers that keep or miss no packets; never modified."""


class PacketReceiver:
    """The packets of one publisher on one group, from the number `first` on; earlier ones are not requested.

    A NACK is sent after a random time, and again after the hold-off; an overheard one for the same packets suppresses it.
    """

    __slots__ = (
        "_config",
        "_kept",
        "_kept_octets",
        "_next",
        "_octets",
        "_parts",
        "_rng",
        "_tries",
        "_whole",
        "highest",
        "lost",
        "missing",
        "nack_at",
        "origin",
        "skipped",
    )

    def __init__(self, origin: Origin, config: NackedConfig, rng: Rng, first: int) -> None:
        self.origin = origin
        self._config = config
        self._rng = rng
        self._next = first
        # The packets behind the next one, by sequence number.
        self._kept = _NOTHING_KEPT
        self._kept_octets = 0
        self.highest = first - 1
        """The last packet that is known to have been sent."""
        self.missing = _NOTHING_MISSING
        """Packets to be requested."""
        self._tries = 0
        self.nack_at = inf
        """When a NACK is due, in seconds."""
        self._parts = _NO_PARTS
        self._octets = 0
        self._whole = True
        """Whether no part of the present message is lost."""
        self.lost = 0
        """Packets given up."""
        self.skipped = 0
        """Messages of which parts were lost, and that were not reported yet."""

    def is_known(self, sequence: int) -> bool:
        """Return whether a packet was received or given up before."""
        return sequence < self._next or sequence in self._kept

    def take(self, packet: Data, now: float) -> list[Publication]:
        """Take a packet, and return the messages that are complete by it, in order."""
        sequence = packet.sequence
        if self.is_known(sequence):
            return []
        found: list[Publication] = []
        if sequence - self._next > self._config.ahead:
            self._give_up(sequence - self._config.ahead, found)
        if self._kept is _NOTHING_KEPT:
            self._kept = SmallDict()
        self._kept[sequence] = packet
        self._kept_octets += packet.length + PACKET_OVERHEAD
        self._expect(sequence, now)
        if self.missing.covers(sequence, sequence):
            self.missing.remove(sequence)
            self._tries = 0
        return self._deliver(found)

    def note(self, status: Status, now: float) -> list[Publication]:
        """Note which packets were sent, and which can't be repaired any more."""
        found: list[Publication] = []
        self._expect(status.last, now)
        if status.first > self._next:
            self._give_up(min(status.first, self.highest + 1), found)
        return self._deliver(found)

    def overhear(self, nack: Nack, now: float) -> None:
        """Send no NACK for now if another subscriber has requested everything that is missing."""
        asked = RangeSet()
        for first, last in nack.missing:
            asked.add(first, last)
        if self.missing.firsts and all(asked.covers(first, last) for first, last in self._ranges()):
            self.nack_at = now + self._config.holdoff

    def due(self, now: float, found: list[Publication]) -> Nack | None:
        """Return the NACK that is due, if any; append to `found` the messages that follow what is given up then."""
        if self.nack_at > now:
            return None
        self._tries += 1
        if self._tries > self._config.tries and self.missing.firsts:
            self._tries = 0
            self._give_up(self._ranges()[0][1] + 1, found)
            self._deliver(found)
        ranges = self._ranges()
        self.nack_at = now + self._config.holdoff + self._rng.uniform() * self._config.backoff if ranges else inf
        return Nack(self.origin, ranges) if ranges else None

    def _ranges(self) -> tuple[tuple[int, int], ...]:
        """Return the first ranges that are missing."""
        found = []
        for first, last in self.missing:
            found.append((first, last))
            if len(found) == MOST_RANGES:
                break
        return tuple(found)

    def _expect(self, last: int, now: float) -> None:
        """Note that all packets up to `last` were sent."""
        first = max(self.highest + 1, self._next)
        if last > self.highest:
            if last > first or last not in self._kept:
                if self.missing is _NOTHING_MISSING:
                    self.missing = RangeSet()
                self.missing.add(first, last)
                if last in self._kept and self.missing.covers(last, last):
                    self.missing.remove(last)
            self.highest = last
        if self.missing.firsts and self.nack_at == inf:
            self.nack_at = now + self._rng.uniform() * self._config.backoff

    def _give_up(self, behind: int, found: list[Publication]) -> None:
        """Give up what is missing before `behind`, and append to `found` the messages that are complete before it."""
        place = self._next
        # By the smaller number of steps: those of the numbers given up, or of the packets that are kept.
        if behind - place <= len(self._kept):
            numbers = [number for number in range(place, behind) if number in self._kept]
        else:
            numbers = sorted([number for number in self._kept if number < behind])
        for sequence in numbers:
            self._lose(sequence - place)
            self._join(self._unkeep(sequence), found)
            place = sequence + 1
        self._lose(behind - place)
        self._next = max(self._next, behind)
        self.highest = max(self.highest, self._next - 1)
        if self.missing.firsts:
            self.missing.remove_before(behind)

    def _lose(self, count: int) -> None:
        if count > 0:
            self.lost += count
            self._break()

    def _break(self) -> None:
        """Drop the other parts of a message of which one is lost."""
        self.skipped += bool(self._parts) or self._whole
        self._parts = _NO_PARTS
        self._octets = 0
        self._whole = False

    def _deliver(self, found: list[Publication]) -> list[Publication]:
        while self._next in self._kept:
            self._join(self._unkeep(self._next), found)
            self._next += 1
        if not self.missing.firsts:
            self.nack_at = inf
        return found

    def _unkeep(self, sequence: int) -> Data:
        packet = self._kept.pop(sequence)
        self._kept_octets -= packet.length + PACKET_OVERHEAD
        if not self._kept:
            self._kept = _NOTHING_KEPT
        return packet

    def _join(self, packet: Data, found: list[Publication]) -> None:
        """Join a packet to its message, and append that to `found` if it is complete."""
        if packet.part == 0:
            self._parts = _NO_PARTS
            self._octets, self._whole = 0, True
        elif not self._whole or len(self._parts) != packet.part:
            self._whole = False
            return
        if not self._parts:
            self._parts = []
        self._parts.append(packet)
        self._octets += packet.length
        if self._octets > MOST_PARTS_BYTES:
            self._break()
        elif packet.part == packet.parts - 1:
            message = packet.whole or find_message(b"".join([part.content or b"" for part in self._parts]))
            self._parts = _NO_PARTS
            self._octets = 0
            if message is not None:
                found.append(message)

    @property
    def octets(self) -> int:
        """Bytes of the packets behind a missing one, and of the message that is not complete."""
        return self._kept_octets + self._octets + len(self._parts) * PACKET_OVERHEAD

    @property
    def kept(self) -> int:
        """Packets behind a missing one."""
        return len(self._kept)
