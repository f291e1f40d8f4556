"""Select the senders and receivers of a capture to analyse in detail."""

from collections import Counter

__all__ = ["NodeTally"]

_SENDERS_KEPT, _RECEIVERS_KEPT = 1000, 10_000
_SENDER_TYPES, _FEEDBACK_TYPES = (1, 2, 3), (4, 5)
_LEAST = 10


class NodeTally:
    """Bytes per sender instance and per receiver, counted from undecoded NORM messages."""

    def __init__(self) -> None:
        self._senders: Counter[bytes] = Counter()
        self._receivers: Counter[bytes] = Counter()

    def add(self, payload: bytes, size: int) -> None:
        """Count a NORM message of `size` bytes."""
        if len(payload) < _LEAST:
            return
        kind = payload[0] & 15
        if kind in _SENDER_TYPES:
            self._senders[payload[4:10]] += size
        elif kind in _FEEDBACK_TYPES:
            self._receivers[payload[4:8]] += size

    @property
    def senders(self) -> frozenset[tuple[int, int]] | None:
        """The thousand senders with the most bytes as (node id, instance); None if there are no more than that."""
        if len(self._senders) <= _SENDERS_KEPT:
            return None
        names = (name for name, _ in self._senders.most_common(_SENDERS_KEPT))
        return frozenset((int.from_bytes(name[:4]), int.from_bytes(name[4:])) for name in names)

    @property
    def receivers(self) -> frozenset[int] | None:
        """Node ids of the ten thousand receivers with the most bytes of feedback; None if there are no more than that."""
        if len(self._receivers) <= _RECEIVERS_KEPT:
            return None
        return frozenset(int.from_bytes(name) for name, _ in self._receivers.most_common(_RECEIVERS_KEPT))
