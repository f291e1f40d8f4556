"""What is done beside every simulated run: faults happen, the invariants are checked, storms are counted."""

from collections.abc import Mapping
from typing import Any

from experiments.running.invariants import Invariants
from experiments.running.program import ReceiverProgram, SenderProgram
from experiments.running.quiescence import listen
from experiments.running.result import Result
from experiments.running.storms import StormCounters
from experiments.scenario.fault_schedule import Mortal, plan
from experiments.scenario.scenario import Scenario
from sim.network import Network

__all__ = ["RunMonitor"]


class RunMonitor:
    """Made before the programs start: those of hosts by the names of these, and within them `players` by the names of rows."""

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        programs: Mapping[str, Mortal],
        players: Mapping[str, SenderProgram | ReceiverProgram],
    ) -> None:
        self._players = players
        self._quiet = not scenario.traffic
        self._network = network
        self._invariants = Invariants(scenario.protocol.spec.ordered)
        self._storm = StormCounters(map(network.topology.index, scenario.senders))
        network.observers.append(self._storm)
        for name, program in players.items():
            program.oversee(name, self._invariants)
        self._faults = plan(scenario.faults, network, programs) if scenario.faults else None

    def metrics(self, told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """At the end of the run, from what the programs told: the faults that happened, and the counters of storms."""
        faults = self._faults
        dropped = faults.dropped if faults is not None else 0
        lost = sum(link.lost + link.dropped + link.corrupt for link in self._network.links())
        duplicates = sum(row["counts"].get("duplicates", 0) for row in told.values())
        return {
            "injected": {**faults.counts, "dropped": dropped} if faults is not None else {},
            "storm": self._storm.plain(losses=lost + dropped, duplicates=duplicates),
        }

    def conclude(self, result: Result, told: Mapping[str, Mapping[str, Any]], finished: bool) -> Result:
        """The result with what was violated. `finished`: did the run end of itself? Then the network goes on, to be heard."""
        for name, program in self._players.items():
            self._invariants.inspect(name, program.machine, told[name], self._network.env.now)
        listened = result.completed and finished and self._quiet and listen(self._network, self._faults, self._invariants)
        result.metrics["invariants"] = self._invariants.plain(listened)
        return result
