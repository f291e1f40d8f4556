"""Check what nodes request and what is retransmitted in a simulated run.

The rules, which hold in every run of a protocol whose messages can be read (`ProtocolSpec.repairs`):

* `needed`: no node requests what it has received.
* `suppressed`: a node that knows that it misses something, and hears the request of another node for it, does not make its own
  first request for as long as its protocol waits for an answer.
* `merged`: nothing is retransmitted twice without a request for it in between.
* `answered`: what is requested of a node that sent it is retransmitted, or said to be gone.
* `stops`: no node requests on and on for longer than its protocol allows.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from experiments.running.invariants import Violation
from protocols.machine import Message, Packet
from protocols.repairs import Limit, Repairs, Unit
from sim.watch import WatchedNetwork, Watcher

__all__ = ["REPAIR_RULES", "RepairRules"]

REPAIR_RULES: Mapping[str, str] = {
    "needed": "no node requests what it has received",
    "suppressed": "no node makes its first request for what it has heard another node request",
    "merged": "nothing is retransmitted twice without a request in between",
    "answered": "what is requested is retransmitted, or said to be gone",
    "stops": "no node requests for longer than its protocol allows",
}
"""The rules by name, in a line each."""
KEPT = 100
"""Violations that are recorded."""


@dataclass(slots=True)
class _Node:
    """Units that a node received, overheard requests for, and requested; times are in seconds."""

    received: set[Unit] = field(default_factory=set)
    latest: dict[Any, int] = field(default_factory=dict)
    """The highest number received of each stream."""
    heard_at: dict[Unit, float] = field(default_factory=dict)
    """When it heard another node request what it knew to be missing; further requests in the time to wait do not count."""
    requested: set[Unit] = field(default_factory=set)
    sent: set[Unit] = field(default_factory=set)
    unanswered: dict[Unit, float] = field(default_factory=dict)
    """What others requested of it and when, until it sends that or says that it is gone."""
    requests: list[float] = field(default_factory=list)
    """Times of requests that followed each other within the window of the limit."""


class RepairRules(Watcher):
    """Checks one run in the strict engine, in which all that arrives at a host reaches its machine.

    `config` is that of the protocol, `restarts` are the times (seconds) at which hosts crash or start again, and know nothing.
    """

    def __init__(self, repairs: Repairs, config: Any, restarts: Sequence[tuple[float, str]] = ()) -> None:
        self._repairs = repairs
        self._restarts = restarts
        self._quiet: float = repairs.quiet(config)
        self._limit: Limit = repairs.limit(config)
        self._nodes: dict[str, _Node] = {}
        self.violations: list[Violation] = []

    def begin(self, network: WatchedNetwork) -> None:
        """Take deliveries from the network, too."""
        assert network.strict, "deliveries come in the order of time in the strict engine only"
        network.fabric.on_delivery = self.delivered
        for at, host in self._restarts:
            network.later(at, partial(self._forget, host))

    def _node(self, host: str) -> _Node:
        return self._nodes.setdefault(host, _Node())

    def _forget(self, host: str) -> None:
        self._nodes.pop(host, None)

    # What is sent

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Check a packet that a host sends."""
        message, node = packet.message, self._node(host)
        unit = self._repairs.carried(message)
        if unit is not None:
            if message.repair and unit not in node.unanswered:
                self._break(
                    now, host, "merged", f"{_name(unit)} is retransmitted, and nobody has requested it since the last time"
                )
            node.unanswered.pop(unit, None)
            node.sent.add(unit)
        for gone in self._repairs.refused(message):
            node.unanswered.pop(gone, None)
        wanted = self._repairs.requested(message)
        for unit in wanted:
            self._check_request(now, host, node, unit)
        if wanted and self._limit.window:
            self._check_limit(now, host, node)

    def _check_request(self, now: float, host: str, node: _Node, unit: Unit) -> None:
        if unit in node.received:
            self._break(now, host, "needed", f"{_name(unit)} is requested, and was received before")
        heard = node.heard_at.get(unit)
        if unit not in node.requested and heard is not None and now < heard + self._quiet:
            self._break(now, host, "suppressed", f"{_name(unit)} is requested, as another node did {now - heard:.3g} s before")
        node.requested.add(unit)

    def _check_limit(self, now: float, host: str, node: _Node) -> None:
        """Check how long the node has requested without a pause.

        Where its windows begin is not known, nor when its count began, so it may take twice the time and three windows, every
        part of which that is as long as the time has enough requests.
        """
        limit, times = self._limit, node.requests
        if times and now - times[-1] >= limit.window:
            times.clear()
        times.append(now)
        if now - times[0] <= 2 * limit.lasting + 3 * limit.window:
            return
        ends = [bisect_right(times, at + limit.lasting) for at in times if at + limit.lasting <= now]
        if all(end - place > limit.most for place, end in enumerate(ends)):
            self._break(now, host, "stops", f"requests go on for {now - times[0]:.3g} s")
            times.clear()
        else:
            del times[0]

    # What arrives

    def delivered(self, now: float, host: str, message: Message) -> None:
        """Note a message that reaches a host."""
        node = self._node(host)
        unit = self._repairs.carried(message)
        if unit is not None:
            node.received.add(unit)
            node.latest[unit.stream] = max(unit.number, node.latest.get(unit.stream, unit.number))
        for wanted in self._repairs.requested(message):
            if wanted in node.sent:
                node.unanswered.setdefault(wanted, now)
                continue
            is_missing = wanted not in node.received and wanted.number < node.latest.get(wanted.stream, wanted.number)
            if is_missing and now >= node.heard_at.get(wanted, -inf) + self._quiet:
                node.heard_at[wanted] = now

    # The end

    def end(self, now: float) -> None:
        """Check that everything was answered that was requested early enough."""
        for host, node in self._nodes.items():
            for unit, at in node.unanswered.items():
                if at < now - self._quiet:
                    self._break(at, host, "answered", f"{_name(unit)} is requested, and there is no answer")

    def _break(self, now: float, host: str, rule: str, what: str) -> None:
        if len(self.violations) < KEPT:
            self.violations.append(Violation(now, host, rule, what))


def _name(unit: Unit) -> str:
    return f"unit {unit.number} of {unit.stream}"
