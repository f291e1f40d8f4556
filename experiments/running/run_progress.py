"""The progress of a simulated run: a line of text that another thread may request at any time."""

import time

from experiments.output.clock import clock
from experiments.running.run_size import size_of
from experiments.running.storms import StormCounters
from experiments.scenario.scenario import Scenario
from sim.network import Network

__all__ = ["RunProgress"]


class RunProgress:
    """The progress of one run: packets sent, simulated time, and an estimate of the time that is left.

    It reads counters of the run and changes nothing. They lag behind while the simulator computes ahead. The time left is
    extrapolated from the content sent for the first time, or from simulated time where a run will reach its time limit.
    """

    def __init__(self, scenario: Scenario, title: str = "") -> None:
        self._name = title or scenario.name
        self._content = size_of(scenario).packets
        self._duration = scenario.duration
        self._run: tuple[Network, StormCounters, float] | None = None

    def begin(self, network: Network, counters: StormCounters) -> None:
        """Take the run that begins now; `counters` count its packets."""
        self._run = network, counters, time.monotonic()

    def line(self) -> str:
        """Return the line; only the name before the hosts are made."""
        if self._run is None:
            return self._name
        network, counters, began = self._run
        now, packets = float(network.env.now), sum(list(network.fabric.packets.values()))
        done = min(1.0, max(counters.content / self._content, now / self._duration))
        spent = time.monotonic() - began
        if not done:
            rest = ""
        elif done < 1:
            rest = f", about {clock(spent * (1 - done) / done)} to go"
        else:
            rest = ", all content sent once"
        return f"{self._name}: {packets:,} packets, {now:.3f} s simulated in {clock(spent)}{rest}"
