"""Schedule the faults of a simulated run, check its invariants and count storms."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from experiments.running.invariants import Invariants
from experiments.running.messaging_participants import Party
from experiments.running.program import ReceiverProgram, SenderProgram
from experiments.running.quiescence import run_to_rest
from experiments.running.result import Result
from experiments.running.storms import StormCounters
from experiments.scenario.fault_schedule import CrashableProgram, DecisionWatcher, plan
from experiments.scenario.scenario import Scenario
from experiments.workload.ledger import Ledger
from sim.network import Network
from sim.watch import WatchedNetwork

__all__ = ["Instruments"]


class Instruments:
    """Schedules the faults of one run, checks its invariants and counts storms. Make it before the programs start.

    `programs` are by host, `programs_by_row` the senders and receivers in them by the name of their row in the result,
    `parties` the machines with other roles.
    """

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        programs: Mapping[str, CrashableProgram],
        programs_by_row: Mapping[str, SenderProgram | ReceiverProgram],
        parties: Sequence[Party] = (),
        decisions: DecisionWatcher | None = None,
    ) -> None:
        self._programs = programs_by_row
        self._parties = parties
        self._quiet = not scenario.traffic
        self._network = network
        self._invariants = Invariants(scenario.protocol.spec.ordered)
        self._periodic = scenario.protocol.spec.periodic
        self.storm = StormCounters(map(network.topology.index, scenario.senders))
        """Counts the packets of the run."""
        network.observers.append(self.storm)
        for name, program in programs_by_row.items():
            program.check_with(name, self._invariants)
        faults = scenario.all_faults
        self.failed: dict[str, str] = {}
        """Hosts that ended by what their own machines did, with the reason."""
        limits = {host: network.topology.node(network.topology.member(host).node).memory for host in programs}
        fails = scenario.protocol.spec.can_fail or any(limits.values())
        self._faults = plan(faults, network, programs, decisions) if faults or fails else None
        if fails:
            network.fabric.failures.memory = {host: limit for host, limit in limits.items() if limit is not None}
            network.fabric.failures.on_failure = partial(self._fail, programs)

    def _fail(self, programs: Mapping[str, CrashableProgram], host: str, reason: str) -> None:
        """Crash a host for good, at the end of the present input of its machine."""
        faults, network = self._faults, self._network
        if host in self.failed or faults is None:
            return
        self.failed[host] = f"{reason}, at {network.now:.3f} s"
        faults.halt(host)

        def crash() -> None:
            programs[host].crash()
            faults.crash(host)

        network.later(network.now, crash)

    def metrics(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the metrics of faults and storms at the end of the run; `results` are those of the programs, by row."""
        faults = self._faults
        dropped = faults.dropped if faults is not None else 0
        lost = sum(link.lost + link.dropped + link.corrupt for link in self._network.links())
        counts = [row.get("counts", {}) for row in results.values()]
        duplicates = [row["duplicates"] for row in counts if "duplicates" in row]
        return {
            "faults": {host: {"error": reason} for host, reason in self.failed.items()},
            "injected": {**faults.counts, "dropped": dropped} if faults is not None else {},
            "storm": self.storm.plain(losses=lost + dropped, duplicates=sum(duplicates) if duplicates else None),
        }

    def conclude(
        self,
        result: Result,
        results: Mapping[str, Mapping[str, Any]],
        ledger: Ledger | None,
        finished: bool,
        ledger_at: Callable[[float], Ledger | None],
    ) -> Result:
        """Check the invariants at the end of the run and add the violations to the result.

        `ledger` is that of the messages, None in a run without any; `ledger_at` makes it again later. `finished`: whether the
        senders finished before the time limit; if so, the network runs on to check quiescence, and notifications of losses.
        """
        for name, program in self._programs.items():
            self._invariants.inspect(name, program.machine, results[name], self._network.env.now)
        for party in self._parties:
            self._invariants.inspect(party.name, party.program.machine, {}, self._network.env.now)
        if ledger is not None:
            self._invariants.add_ledger(ledger)
        is_at_end = finished and self._quiet
        # Missing messages may still arrive, or be reported lost, until the network is at rest.
        waits = is_at_end and ledger is not None and bool(ledger.untold)
        quiet = self._invariants if result.completed else None
        is_watched = isinstance(self._network, WatchedNetwork) and bool(self._network.watchers)
        observed = is_at_end and (result.completed or waits or is_watched)
        observed = observed and run_to_rest(self._network, self._faults, quiet, self._periodic)
        if is_at_end and ledger is not None and (observed or not waits):
            self._invariants.add_untold(ledger_at(self._network.env.now) if waits else ledger)
        result.metrics["invariants"] = self._invariants.plain(observed and result.completed)
        return result
