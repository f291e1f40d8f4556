"""Measure what a container costs from a pool of FJM2, and what new memory costs in its place.

    python -m benchmarks.pools [--sizes 64 1024 ...] [--rounds 5] [--json]

Processor time to take a container for a message, fill it and give it back, in nanoseconds. `steady`: the oldest of 1,000
containers goes back when one is taken, as at a publisher that keeps its last messages for repairs. `burst`: 16 MB of messages
go back all at once, and the allocator of the C library returns their memory to the kernel, so that it has to be mapped again.
"""

import argparse
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf

from protocols.fjm2.allocation import containers
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.pool import Container, Pool

__all__ = ["main", "measure"]

SIZES = (64, 256, 1024, 4096, 16384, 65536)
KEPT = 1000
BURST = 16_000_000
"""Bytes, of 2,000 messages at the most."""
MOST = 2000
STEADY = 10_000_000
"""Bytes of messages in a round beside those kept, in 2,000 to 20,000 messages."""

Times = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Nanoseconds by size in bytes, pattern (`steady`, `burst`), and way (`pool`, `new`)."""


def measure(sizes: Sequence[int], rounds: int) -> Times:
    """Return the least times of so many rounds."""
    return {str(size): {"steady": _least(_steady, size, rounds), "burst": _least(_burst, size, rounds)} for size in sizes}


def _least(pattern: Callable[[Pool[Container], int], float], size: int, rounds: int) -> dict[str, float]:
    """Return the least nanoseconds for a message with each way; the ways alternate."""
    found = {"pool": inf, "new": inf}
    pools = {way: _containers(size, pooling=way == "pool") for way in found}
    for _ in range(rounds):
        for way, pool in pools.items():
            found[way] = min(found[way], 1e9 * pattern(pool, size))
    return {way: round(value) for way, value in found.items()}


def _containers(size: int, *, pooling: bool) -> Pool[Container]:
    room = (KEPT + MOST) * Pool.octets_for(size)
    return containers(Fjm2Config(pool=room, pooling=pooling), Container)


def _take(pool: Pool[Container], data: bytes) -> Container:
    container = pool.take(len(data))
    assert container is not None, "the pool has room for all"
    container.memory[: len(data)] = data
    return container


def _steady(pool: Pool[Container], size: int) -> float:
    """Return the seconds of a message while the oldest container goes back for each that is taken."""
    data, kept = bytes(size), deque[Container]()
    for _ in range(KEPT):
        kept.append(_take(pool, data))
    count = max(MOST, min(10 * MOST, STEADY // size))
    began = time.process_time()
    for _ in range(count):
        kept.append(_take(pool, data))
        pool.give_back(kept.popleft())
    seconds = (time.process_time() - began) / count
    while kept:
        pool.give_back(kept.popleft())
    return seconds


def _burst(pool: Pool[Container], size: int) -> float:
    """Return the seconds of a message when many go back at once."""
    data, count = bytes(size), min(MOST, BURST // size)
    began = time.process_time()
    taken = [_take(pool, data) for _ in range(count)]
    while taken:
        pool.give_back(taken.pop())
    return (time.process_time() - began) / count


def _table(found: Times) -> str:
    lines = ["  bytes   steady: pool    new   burst: pool    new   [ns a message]"]
    for size, times in found.items():
        steady, burst = times["steady"], times["burst"]
        lines.append(f"{size:>7} {steady['pool']:14.0f} {steady['new']:6.0f} {burst['pool']:13.0f} {burst['new']:6.0f}")
    return "\n".join(lines)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Measure containers from pools and new ones.")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes of a message")
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.sizes, options.rounds)
    print(json.dumps(found) if options.json else _table(found))


if __name__ == "__main__":
    main()
