"""Read a record of losses from a capture of NORM traffic, or from a text of 0 and 1."""

from dataclasses import dataclass
from pathlib import Path

from experiments.captures.datagrams import is_capture, read_capture
from experiments.output.counted import counted
from protocols.errors import ConfigError, UsageError
from topologies.input_file import read_bytes

__all__ = ["LossRecord", "read_record"]

# NORM_INFO, NORM_DATA, NORM_CMD share one sequence; feedback has none to rely on.
_SENDER_KINDS = (1, 2, 3)
_VERSION = 1
_SHORTEST = 12
_LARGEST = 4_000_000_000
_MOST_PACKETS = 100_000_000


@dataclass(frozen=True, slots=True)
class LossRecord:
    """Fates of packets in order, true for lost ones, and the description of their source."""

    fates: list[bool]
    origin: str


def read_record(path: Path, source: int | None = None) -> LossRecord:
    """Read the record in a file; of several NORM senders the one with most packets, or the one with id `source`.

    In a capture, packets between the first and the last received one are counted by sequence number; late and duplicate packets
    count as received. A text has 0 for received and 1 for lost; white space and comments from # are ignored. Raises UsageError
    or ConfigError for an unreadable or invalid file.
    """
    try:
        data = read_bytes(path, _LARGEST)
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from error
    record = _captured(path, source) if is_capture(data) else _written(path, data, source)
    if len(record.fates) < 2:
        raise ConfigError(f"{path}: has {counted(len(record.fates), 'packet')}, too few for an estimate")
    return record


def _written(path: Path, data: bytes, source: int | None) -> LossRecord:
    if source is not None:
        raise UsageError(f"--source: {path} is a text without senders")
    fates: list[bool] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        digits = "".join(line.partition("#")[0].split())
        wrong = digits.strip("01")
        if wrong:
            raise ConfigError(
                f"{path}: line {number}: {wrong[0]!r} is not allowed; a trace is 0 (received) and 1 (lost), or a capture"
            )
        fates.extend(digit == "1" for digit in digits)
    return LossRecord(fates, f"trace {path.name}")


class _Stream:
    """Sequence numbers of one instance of one sender."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.packets = 0
        self._first = self._latest = 0

    def add(self, sequence: int) -> int:
        """Record a received sequence number; return how many numbers it adds to the stream."""
        known = len(self.received)
        self.packets += 1
        if not self.received:
            self._first = self._latest = sequence
            self.received.append(1)
            return 1
        ahead = (sequence - self._latest) & 0xFFFF
        place = len(self.received) - 1 + (ahead if ahead < 0x8000 else ahead - 0x10000)
        if ahead < 0x8000:
            self.received.extend(bytes(ahead))
            self._latest = sequence
        if place >= 0:
            self.received[place] = 1
        return len(self.received) - known


def _captured(path: Path, source: int | None) -> LossRecord:
    streams: dict[tuple[int, int, str], _Stream] = {}
    total = 0
    for datagram in read_capture(path):
        data = datagram.payload
        if len(data) < _SHORTEST or data[0] >> 4 != _VERSION or data[0] & 15 not in _SENDER_KINDS:
            continue
        key = int.from_bytes(data[4:8]), int.from_bytes(data[8:10]), datagram.source
        total += streams.setdefault(key, _Stream()).add(int.from_bytes(data[2:4]))
        if total > _MOST_PACKETS:
            raise ConfigError(f"{path}: its sequence numbers span more than {_MOST_PACKETS:,} packets, which is the limit")
    found = {key: stream for key, stream in streams.items() if source in (None, key[0])}
    if not found:
        known = ", ".join(dict.fromkeys(str(node) for node, _, _ in streams)) or "none"
        raise ConfigError(f"{path}: holds no NORM packets of {'any sender' if source is None else source}; senders: {known}")
    node, instance, address = max(found, key=lambda key: found[key].packets)
    fates = [not received for received in found[node, instance, address].received]
    return LossRecord(fates, f"capture {path.name}, sender {node} at {address}, instance {instance}")
