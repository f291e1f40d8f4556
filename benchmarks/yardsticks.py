"""Measurement for benchmarks of the simulator: CPU time per delivery, and a bare Python loop to compare with."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from experiments.running.garbage import frozen
from protocols.fast.contract import fan_out
from protocols.machine import Group
from protocols.norm.messages import Eot, Origin
from sim.idle import Idle

__all__ = ["GROUP", "Measure", "bare_loop", "best", "timed"]

GROUP = Group("239.0.0.1:6003")


@dataclass
class Measure:
    """CPU seconds, deliveries to machines, SimPy events, packets sent."""

    cpu: float
    deliveries: int
    events: int = 0
    packets: int = 1

    @property
    def each(self) -> float:
        """Seconds per delivery."""
        return self.cpu / self.deliveries


def timed(run: Callable[[], object]) -> float:
    """Return the CPU seconds of `run()`; objects that exist before are excluded from garbage collection."""
    gc.collect()
    with frozen():
        begin = time.process_time()
        run()
        return time.process_time() - begin


def bare_loop(receivers: int, packets: int) -> Measure:
    """Measure a Python loop that calls an empty method for each delivery."""
    machines = [Idle() for _ in range(receivers)]
    message = Eot(Origin(1, 1, 0, 0, 0), 0)

    def run() -> None:
        for _ in range(packets):
            fan_out(machines, message, "sender", GROUP, 0.0)

    return Measure(timed(run), receivers * packets)


def best(measure: Callable[[int, int], Measure], receivers: int, packets: int, times: int = 3) -> Measure:
    """Return the fastest of a few runs, which is the least disturbed by other load."""
    return min((measure(receivers, packets) for _ in range(times)), key=lambda known: known.each)
