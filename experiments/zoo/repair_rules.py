"""Check what nodes request and what is retransmitted in a simulated run.

The rules, which hold in every run of a protocol whose messages can be read (`ProtocolSpec.repairs`):

* `needed`: no node requests what it has received.
* `suppressed`: a node that has detected a loss, and hears the request of another node for it, does not make its own
  first request for as long as its protocol waits for an answer.
* `merged`: nothing is retransmitted twice without a request for it in between.
* `answered`: what is requested of a node that sent it is retransmitted, or said to be gone. A node that is still repairing when
  the run ends may do so until the network is at rest, which is why a run that reached its time limit is not checked.
* `stops`: no node requests on and on for longer than its protocol allows.

A protocol may say that some do not hold (`Repairs.unchecked`). Streams that cannot be told apart in messages are not checked.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from experiments.running.invariants import Violation
from protocols.machine import Message, Packet
from protocols.repairs import Repairs, Span, Unit
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
NEVER = -inf, -inf
KEPT = 100
"""Violations that are recorded."""


@dataclass(slots=True)
class _Request:
    """What a node requests at one instant, in one or more messages."""

    at: float
    first: Unit
    is_repeated: bool = True
    """Whether all of it is what others have requested, and the node for the first time."""


@dataclass(slots=True)
class _Node:
    """Units that a node received, overheard requests for, and requested; times are in seconds."""

    received: set[Unit] = field(default_factory=set)
    latest: dict[Hashable, int] = field(default_factory=dict)
    """The number of each stream before which everything was sent, as far as the node has heard."""
    heard_at: dict[Unit, float] = field(default_factory=dict)
    """When it heard another node request what it knew to be missing."""
    requested: set[Unit] = field(default_factory=set)
    sent: set[Unit] = field(default_factory=set)
    unanswered: dict[Unit, tuple[float, float]] = field(default_factory=dict)
    """Units that others requested of it, with the times of the first and the last request, until it sends or withdraws them."""
    outstanding: set[Unit] = field(default_factory=set)
    """Requested units that were unanswered at the end of the run, until they are retransmitted, or withdrawn in time."""
    is_behind: bool = False
    """Whether the node retransmitted an outstanding unit after the end of the run; then it may still withdraw the others."""
    gathers: tuple[float, float] = (inf, -inf)
    """Begin and end of the time in which it gathers requests before it repairs (NORM: repair aggregation), in seconds."""
    requests: list[float] = field(default_factory=list)
    """Times of requests that followed each other within the window of the limit."""
    latest_request: _Request | None = None
    """Its latest request while that is not judged."""
    relies: bool = True
    """Whether the requests of others stand for its own."""
    discards: bool = False
    """Whether it discarded a segment that arrived, so that it may request what is not missing by the trace."""


class RepairRules(Watcher):
    """Checks one run in the strict engine, in which all that arrives at a host reaches its machine; `conclude` follows it.

    `config` is that of the protocol, `restarts` are the times (seconds) at which hosts crash or start again, without any state.
    What `excluded` hosts send is not checked: packets of other nodes, or of several machines that they do not tell apart.
    """

    watches_rest = True

    def __init__(
        self, repairs: Repairs, config: Any, restarts: Sequence[tuple[float, str]] = (), excluded: Collection[str] = ()
    ) -> None:
        self._repairs = repairs
        self._restarts, self._excluded = restarts, frozenset(excluded)
        self._suppression = repairs.suppression(config)
        self._limit = repairs.limit(config)
        self._unchecked = frozenset(repairs.unchecked(config))
        self._nodes: dict[str, _Node] = {}
        self._numbers: dict[Hashable, list[int]] = {}
        """The numbers of the units of each stream that were sent, in order; none of one that is not checked."""
        self._ambiguous: set[Hashable] = set()
        """Streams in which different units have the same number."""
        self.violations: list[Violation] = []
        self._network: WatchedNetwork | None = None
        self._ended_at = 0.0

    def begin(self, network: WatchedNetwork) -> None:
        """Take deliveries from the network, too."""
        assert network.strict, "deliveries come in the order of time in the strict engine only"
        network.fabric.on_delivery = self.delivered
        self._network = network
        for at, host in self._restarts:
            network.later(at, partial(self._forget, host))

    def _node(self, host: str) -> _Node:
        return self._nodes.setdefault(host, _Node())

    def _forget(self, host: str) -> None:
        self._nodes.pop(host, None)

    def _units(self, spans: Sequence[Span]) -> list[Unit]:
        """Return the units in spans that were sent."""
        found = []
        for stream, first, last in spans:
            numbers = self._numbers.get(stream, ())
            found += [Unit(stream, number) for number in numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]]
        return found

    # What is sent

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Check a packet that a host sends."""
        if host in self._excluded:
            return
        message, node = packet.message, self._node(host)
        unit = self._repairs.carried(message)
        if unit is not None:
            self._check_transmission(now, host, node, unit, message.repair)
        for gone in self._units(self._repairs.refused(message)) if node.unanswered else ():
            node.unanswered.pop(gone, None)
            if node.is_behind or now <= self._ended_at + self._suppression.quiet:
                node.outstanding.discard(gone)
        wanted = self._units(self._repairs.requested(message))
        for unit in wanted:
            self._check_request(now, host, node, unit)
        if wanted and self._limit.window:
            self._check_limit(now, host, node)

    def _check_transmission(self, now: float, host: str, node: _Node, unit: Unit, repair: bool) -> None:
        if repair and unit not in node.unanswered and unit.stream not in self._ambiguous:
            self._break(now, host, "merged", f"{_name(unit)} is retransmitted, and nobody has requested it since the last time")
        if not repair:
            self._note_unit(unit)
        begin, until = node.gathers
        if now >= until or node.unanswered.get(unit, NEVER)[1] < begin:
            node.unanswered.pop(unit, None)
        if unit in node.outstanding:
            node.outstanding.remove(unit)
            node.is_behind = True
        node.sent.add(unit)

    def _note_unit(self, unit: Unit) -> None:
        """Note a unit that is sent for the first time; if another one had its number, its stream is not checked."""
        if unit.stream in self._ambiguous:
            return
        numbers = self._numbers.setdefault(unit.stream, [])
        if numbers and unit.number <= numbers[-1] and numbers[bisect_left(numbers, unit.number)] == unit.number:
            self._ambiguous.add(unit.stream)
            del self._numbers[unit.stream]
        else:
            insort(numbers, unit.number)

    def _check_request(self, now: float, host: str, node: _Node, unit: Unit) -> None:
        if unit in node.received and not node.discards:
            self._break(now, host, "needed", f"{_name(unit)} is requested, and was received before")
        heard = node.heard_at.get(unit)
        latest = node.latest_request
        if latest is None or latest.at < now or not self._suppression.whole:
            self._judge(host, node)
            latest = node.latest_request = _Request(now, unit)
        is_heard = heard is not None and heard < now < heard + self._suppression.quiet
        latest.is_repeated &= is_heard and unit not in node.requested and node.relies and not node.discards
        node.requested.add(unit)

    def _judge(self, host: str, node: _Node) -> None:
        """Check the latest request of a node, of which all messages are known."""
        latest, node.latest_request = node.latest_request, None
        if latest is not None and latest.is_repeated:
            others = latest.at - node.heard_at[latest.first]
            what = f"{_name(latest.first)} is requested, as another node did {others:.3g} s before"
            self._break(latest.at, host, "suppressed", what)

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

    # What arrives, and what is decided

    def delivered(self, now: float, host: str, message: Message) -> None:
        """Note a message that reaches a host."""
        node = self._node(host)
        self._judge(host, node)
        unit = self._repairs.carried(message)
        if unit is not None:
            node.received.add(unit)
            node.latest[unit.stream] = max(unit.number, node.latest.get(unit.stream, unit.number))
        last = self._repairs.announced(message)
        if last is not None:
            node.latest[last.stream] = max(last.number + 1, node.latest.get(last.stream, 0))
        wanted = self._units(self._repairs.requested(message))
        if not wanted:
            return
        for each in wanted:
            if each in node.sent:
                node.unanswered[each] = node.unanswered.get(each, (now, now))[0], now
        suppression = self._suppression
        if suppression.begins:
            node.heard_at |= dict.fromkeys(wanted, now)
        elif suppression.whole:
            self._note_whole(node, wanted, now)
        else:
            for each in wanted:
                if self._is_missing(node, each):
                    # It waits from the first one on; further ones need not prolong that, and later waits may be longer.
                    node.heard_at.setdefault(each, now)

    def _is_missing(self, node: _Node, unit: Unit) -> bool:
        return unit not in node.received and unit.number < node.latest.get(unit.stream, unit.number)

    def _note_whole(self, node: _Node, wanted: Sequence[Unit], now: float) -> None:
        """Note a request that has all that the node misses of a stream."""
        stream = wanted[0].stream
        before = self._units([Span(stream, 0, node.latest.get(stream, 0) - 1)])
        missing = [unit for unit in before if unit not in node.received]
        if missing and set(missing) <= set(wanted):
            node.heard_at |= dict.fromkeys(missing, now)

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """Note when a node relies on the requests of others or ceases to, gathers requests, or keeps nothing of a packet."""
        suppression, gathers = self._suppression, self._repairs.gathers
        if name not in (suppression.begins, suppression.resumes, self._repairs.discards, gathers):
            return
        node = self._node(host)
        if name == gathers:
            assert isinstance(detail, Mapping)
            node.gathers = now, detail["until"]
        elif name == suppression.begins:
            self._judge(host, node)
            node.heard_at.clear()
            node.relies = True
        elif name == suppression.resumes:
            node.relies = False
        else:
            node.discards = True

    # The end

    def end(self, now: float) -> None:
        """Note what was requested early enough, and is not answered at the end of the run."""
        self._ended_at = now
        for node in self._nodes.values():
            node.outstanding = {unit for unit, (at, _) in node.unanswered.items() if at < now - self._suppression.quiet}

    def conclude(self) -> None:
        """Check the latest requests, and that all were answered if the network has come to rest since the end of the run."""
        assert self._network is not None
        is_at_rest = self._network.env.now > self._ended_at
        for host, node in self._nodes.items():
            self._judge(host, node)
            for unit in sorted(node.outstanding, key=_name) if is_at_rest else ():
                if unit.stream in self._numbers:
                    self._break(self._ended_at, host, "answered", f"{_name(unit)} is requested, and there is no answer")

    def _break(self, now: float, host: str, rule: str, what: str) -> None:
        if len(self.violations) < KEPT and rule not in self._unchecked:
            self.violations.append(Violation(now, host, rule, what))


def _name(unit: Unit) -> str:
    return f"unit {unit.number} of {unit.stream}"
