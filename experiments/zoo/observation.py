"""Run a scenario in the simulator and check every rule there is of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.fault_schedule import Fault
from experiments.scenario.protocol_faults import with_place
from experiments.scenario.scenario import Scenario
from experiments.search.plans import targets_of
from experiments.workload.publish import PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload
from experiments.zoo.repair_rules import REPAIR_RULES, RepairRules
from protocols.errors import ContractError
from protocols.roles import BOTH
from topologies.spec import Topology

__all__ = ["RAISED", "RULES", "Observation", "RuleBreak", "observe"]

RAISED = (ContractError, AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of a faulty machine; UsageError, a mistake of the user, is none of them."""
RULES: Mapping[str, str] = {
    "raises": "no machine raises, or breaks the contract of machines and hosts",
    "once": "nothing is delivered twice",
    "intact": "what is delivered is what was published",
    "sent": "only files that were sent are received",
    "order": "the files of a sender are received in order",
    "matches": "only what was published is delivered, in subscriptions that it matches",
    "fifo": "the messages of a publisher are delivered in order",
    "promised": "no accepted message is skipped, unless that is told",
    "told": "an accepted message is delivered or reported lost by the end of the run",
    "memory": "no machine keeps more than its parameters allow",
    "quiescence": "at the end nothing more is sent but heartbeats",
    **REPAIR_RULES,
}
"""The rules by name, in a line each."""


@dataclass(frozen=True, slots=True)
class RuleBreak:
    """The first break of a rule in a run, and how often it was broken (as far as breaks are recorded)."""

    rule: str
    what: str
    times: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A run and the rules that it broke, in their order in `RULES`; `result` is None if a machine raised."""

    result: Result | None
    breaks: tuple[RuleBreak, ...]


def observe(scenario: Scenario) -> Observation:
    """Run a scenario in the strict engine, and check all rules.

    The rules about requests depend on what reaches a machine and when, so they are not checked where a fault or a slow
    application keeps from it what arrives at its host, or shifts its clock.
    """
    spec = scenario.protocol.spec
    scenario = scenario.model_copy(update={"engine": "strict"})
    topology = scenario.build_topology()
    is_direct = not any(_keeps_packets(fault, topology) or _shifts_clock(fault) for fault in scenario.all_faults)
    watchers = []
    if spec.repairs is not None and is_direct:
        excluded = [*targets_of(scenario, topology).servers, *_shared_hosts(scenario, topology)]
        watchers.append(RepairRules(spec.repairs, scenario.protocol.config, list(_restarts(scenario)), excluded))
    try:
        result = simulate(scenario, watchers)
    except RAISED as error:
        return Observation(None, (RuleBreak("raises", with_place(error), 1),))
    found: dict[str, list[str]] = {}
    for row in result.violations:
        found.setdefault(row["rule"], []).append(_told(row["what"], row["host"], row["at"]))
    for watcher in watchers:
        watcher.conclude()
        for broken in watcher.violations:
            if broken.rule == "answered" and broken.host in result.metrics["faults"]:
                # It failed, and does not answer.
                continue
            found.setdefault(broken.rule, []).append(_told(broken.what, broken.host, broken.at))
    order = list(RULES)
    breaks = [RuleBreak(rule, found[rule][0], len(found[rule])) for rule in sorted(found, key=order.index)]
    return Observation(result, tuple(breaks))


def _keeps_packets(fault: Fault, topology: Topology) -> bool:
    """Return whether a fault may keep packets from a machine that arrive at its host."""
    # A link to a member of a group of equal hosts is taken down at the member.
    is_at_member = fault.flap is not None and not topology.graph.has_edge(*fault.flap)
    return bool(fault.partition or fault.hold or fault.slow or is_at_member)


def _shifts_clock(fault: Fault) -> bool:
    """Return whether a fault makes the time of a machine another one than that of the network."""
    return bool(fault.drift or fault.step)


def _told(what: str, host: str, at: float) -> str:
    return f"{what} ({host or 'network'} at {at:.6g} s)"


def _shared_hosts(scenario: Scenario, topology: Topology) -> list[str]:
    """Return the hosts with several machines that publish or subscribe."""
    machines: Counter[str] = Counter()
    works: list[PublishWorkload | SubscribeWorkload] = [*scenario.publications, *scenario.subscriptions]
    for work in works:
        for host in (host for name in work.hosts for host in topology.hosts_of(name)):
            machines[host] += work.clients
    both = {host for name, choice in scenario.nodes.items() if choice.role == BOTH for host in topology.hosts_of(name)}
    return [host for host, count in machines.items() if count > 1 and host not in both]


def _restarts(scenario: Scenario) -> Iterator[tuple[float, str]]:
    """Yield when a host crashes, leaves or starts again."""
    topology = scenario.build_topology()
    for fault in scenario.faults:
        lasts = inf if fault.lasts is None else fault.lasts
        period = fault.every if fault.every is not None else 2 * lasts
        begins = [(fault.at or 0.0) + number * period for number in range(fault.times)]
        for host in (host for name in fault.crash or fault.churn or () for host in topology.hosts_of(name)):
            yield from ((at, host) for begin in begins for at in (begin, begin + lasts) if at < inf)
