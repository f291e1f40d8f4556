"""Estimate the time and the memory of a simulated run from short runs of the same scenario."""

import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any

from experiments.output.clock import clock
from experiments.running.available_memory import available_memory
from experiments.running.child_process import ChildProcess
from experiments.running.run_size import RunSize, shrunk, size_of
from experiments.running.simulate import simulate
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError
from topologies.units import format_size

__all__ = ["NO_ESTIMATE", "RunCost", "Trial", "admit", "begins_at_once", "estimate_cost", "extrapolate", "try_run"]

SMALL_DELIVERIES, SMALL_HOSTS, SECONDS_PER_DELIVERY = 4_000_000, 40_000, 1e-4
"""A run up to this size takes a minute and a few hundred megabytes at most, and no estimate. The seconds are an upper bound."""
TRIED = ((2000, 200_000), (200, 20_000), (20, 2000))
"""Hosts and deliveries of the largest run tried; the next ones where that takes too long."""
FEWEST_PACKETS = 16
LIMIT = 10.0
"""Seconds a run that is tried may take."""
NO_ESTIMATE = "no estimate, since short runs of it fail or take too long"
NOTEWORTHY = 4096
"""Bytes per host by which memory grows with the content before the growth is extrapolated."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """Estimated CPU time in seconds and additional memory in bytes of a run."""

    seconds: float
    memory: int

    def __str__(self) -> str:
        return f"about {_told(self.seconds)} of CPU time and {format_size(_rounded(self.memory))} of memory"


@dataclass(frozen=True, slots=True)
class Trial:
    """A short run: its size, CPU seconds, the growth of memory in bytes, and the simulated seconds it lasted."""

    size: RunSize
    seconds: float
    memory: int
    end: float = 0.0


def begins_at_once(scenario: Scenario, time_limit: float) -> bool:
    """Return whether a run is so small that it needs no estimate, and stays below `time_limit` seconds in any case."""
    size = size_of(scenario)
    small = size.deliveries <= SMALL_DELIVERIES and size.hosts <= SMALL_HOSTS
    return small and size.deliveries * SECONDS_PER_DELIVERY <= time_limit


def admit(scenario: Scenario, time_limit: float = inf) -> RunCost | None:
    """Estimate a run unless it is small; UsageError if it takes more memory than there is, or longer than `time_limit` seconds.

    None for a small run, and for one of which no short run could be made; with a `time_limit` the latter raises UsageError.
    """
    if begins_at_once(scenario, time_limit):
        return None
    cost = estimate_cost(scenario)
    if cost is None:
        if time_limit < inf:
            raise UsageError(f"{scenario.name}: {NO_ESTIMATE}, and there is a --time-limit; --yes to run it all the same")
        return None
    there = available_memory()
    if cost.memory > there:
        raise UsageError(
            f"{scenario.name}: needs {cost}, and {format_size(_rounded(there))} are available; "
            "fewer receivers, or --yes to run it all the same"
        )
    if cost.seconds > time_limit:
        raise UsageError(
            f"{scenario.name}: needs {cost}, and --time-limit is {_told(time_limit)}; "
            "less content or fewer receivers, or --yes to run it all the same"
        )
    return cost


def estimate_cost(scenario: Scenario) -> RunCost | None:
    """Estimate a run from up to three short ones in child processes; None if they fail or take too long.

    Time is a part per host and a part per delivery, from two runs that differ in content; memory grows with the hosts.
    """
    size = size_of(scenario)
    for most, deliveries in TRIED:
        hosts = min(size.hosts, most)
        traffic = min(1.0, deliveries / size.deliveries)
        packets = min(size.packets, max(FEWEST_PACKETS, deliveries // hosts))
        wanted = [(hosts, max(packets // 4, 1), traffic / 4), (hosts, packets, traffic)]
        if hosts < size.hosts:
            wanted.append((hosts // 4, packets, traffic))
        scenarios = [shrunk(scenario, *few) for few in wanted]
        trials = list(takewhile(lambda trial: trial is not None, map(try_run, scenarios)))
        if len(trials) == len(wanted):
            return extrapolate(size_of(scenario, _end(scenario, scenarios[1], trials)), *filter(None, trials))
    return None


def _end(scenario: Scenario, shortened: Scenario, trials: Sequence[Trial | None]) -> float:
    """Return the simulated time at which a run ends at the latest, from a run with less content and the `shortened` one.

    That is its time limit where the cross traffic of the shortened run was over before its content was through.
    """
    short, long = filter(None, trials[:2])
    if any(flow.end is not None and flow.end <= long.end for flow in shortened.traffic):
        return scenario.duration
    packets = long.size.packets - short.size.packets
    rest = (size_of(scenario).packets - long.size.packets) / packets if packets else 0.0
    return long.end + rest * max(0.0, long.end - short.end)


def extrapolate(size: RunSize, short: Trial, long: Trial, fewer: Trial | None = None) -> RunCost:
    """Return the cost of a run of this size from a short run, one with more content, and one as long with `fewer` hosts."""
    fewer = fewer or long
    deliveries = long.size.deliveries - short.size.deliveries
    each = max(0.0, long.seconds - short.seconds) / deliveries if deliveries > 0 else 0.0
    per_host = max(0.0, long.seconds - each * long.size.deliveries) / long.size.hosts
    memory = float(long.memory)
    hosts = long.size.hosts - fewer.size.hosts
    if hosts > 0:
        memory += (long.memory - fewer.memory) / hosts * (size.hosts - long.size.hosts)
    growth = long.memory - short.memory
    if growth > NOTEWORTHY * long.size.hosts and deliveries > 0:
        tried = size.hosts * long.size.packets + long.size.traffic
        memory += growth / deliveries * (size.deliveries - tried)
    return RunCost(per_host * size.hosts + each * size.deliveries, round(max(memory, 0.0)))


def try_run(scenario: Scenario) -> Trial | None:
    """Run a scenario in a child process of its own; None if it fails or takes too long."""
    with ChildProcess(partial(_perform, scenario), LIMIT, memory=available_memory()) as child:
        outcome = child.run({})
    if outcome.result is None:
        return None
    end = outcome.result["end"]
    return Trial(size_of(scenario, end), outcome.cpu, outcome.result["memory"], end)


def _perform(scenario: Scenario, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a scenario; return by how many bytes the memory of this process grew at most."""
    del job
    before = _resident()
    result = simulate(scenario)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"memory": max(0, peak - before), "end": result.metrics["duration"]}


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _told(seconds: float) -> str:
    return clock(seconds) if seconds >= 60 else f"{seconds:.2g} s"


def _rounded(octets: int) -> int:
    """Round to two digits, so that an estimate is not read as exact."""
    return int(float(f"{octets:.2g}"))
