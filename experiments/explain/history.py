"""What is known of one receiver and one object: packets with their fate, decisions, and where the record ends.

It comes from the trace of a simulated run, or from the captures of a run in Mininet or in the simulator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from shlex import quote
from typing import Any

from experiments.captures.trace_file import Trace, TracedPacket, TraceEvent, TraceRow, open_trace
from experiments.explain.content import carried_by
from experiments.explain.outages import Outages
from experiments.explain.packet_numbers import frames_of_trace
from experiments.explain.requests import parts_asked
from experiments.report.run_report_captures import CapturedRun
from experiments.report.run_report_folder import RunFolder
from experiments.report.run_report_routes import Routes
from experiments.scenario.scenario import USUAL_SEGMENT
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError
from topologies.addressing import node_id
from topologies.names import first_names

__all__ = ["Fate", "History", "read_history"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a packet on its way to a host: when it reached its machine, or why not (`cause`, `text`, and where).

    `cause` is empty for a packet that arrived, and `unknown` where it was not recorded.
    """

    when: float = inf
    cause: str = ""
    text: str = ""
    at: float = inf
    """When it was lost, in seconds."""


@dataclass(slots=True)
class History:
    """The record of a run as far as it concerns one object, one receiver and their sender."""

    kind: str
    """Kind of its source: "trace", "captures" (of several hosts of a run) or "capture" (a single file)."""
    protocol: str
    sender: str
    receiver: str
    object_id: int
    packets: dict[int, TracedPacket]
    decisions: list[TraceEvent]
    end: float
    begin: float | None = None
    """When the application submitted the object, if that is known."""
    rate: float = inf
    """The protocol's rate in bytes per second, if it is known."""
    bottleneck: float = inf
    """The rate in bytes per second of the slowest link on the way."""
    octets: int = 0
    """The bytes of the object; 0 if they are not known."""
    segments: int = 0
    """The packets that carry it once; 0 if that is not known."""
    frames: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The number of each packet in the capture files, by the names of these."""
    outages: Outages | None = None
    is_simulated: bool = True
    attendance: tuple[float, float] = (0.0, inf)
    longest_backoff: float = 0.0
    """Seconds for which a receiver may wait before it requests; what comes later belongs to another round."""
    requests: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The parts of the object that a request names, by its packet; "*" stands for all. Other requests are not fully known."""
    sender_id: int | None = None
    """The node id of the sender, if events name it."""
    squelches: frozenset[int] = frozenset()
    """The SQUELCH messages that name the object, by number, where messages are decoded as a whole."""
    unknown: list[str] = field(default_factory=list)
    """Facts that the record does not contain."""
    hides_losses: bool = False
    """Whether the kernel of the receiver can drop packets after its capture has recorded them."""
    completed_at: float | None = None
    """When the receiver had the object, in seconds, if the result of the run has it of this object alone."""
    path: tuple[str, ...] = ()
    """The nodes from the sender to the receiver, if the network is known."""
    routes: Routes | None = None

    @property
    def knows_decisions(self) -> bool:
        """Whether the decisions of the receiver are on record."""
        return self.kind == "trace" and self.protocol == "norm"

    def fate(self, packet: TracedPacket, host: str) -> Fate:
        """Return what became of a packet on its way to a host."""
        when, outages = packet.received.get(host), self.outages
        joins, leaves = self.attendance if host == self.receiver else (0.0, inf)
        if when is not None:
            # In Mininet what is captured at a host has passed all faults.
            outage = outages.at_reception(packet.node, host, when) if outages is not None and self.is_simulated else None
            if outage is not None and outage.parks:
                return Fate(outage.until) if outage.until < self.end else Fate(inf, outage.cause, outage.text, when)
            if outage is not None:
                return Fate(inf, outage.cause, outage.text, when)
            return Fate(when)
        if not joins <= packet.time < leaves:
            text = f"{host} joined at {joins:g} s" if packet.time < joins else f"{host} left at {leaves:g} s"
            return Fate(inf, "absent", text, packet.time)
        outage = outages.on_way(packet.node, host, packet.time) if outages is not None else None
        if outage is None and outages is not None and not self.is_simulated:
            outage = outages.at_reception(packet.node, host, packet.time)
        for copy in packet.missed:
            if copy.node == host or copy.node in self._way(packet.node, host):
                if outage is not None and copy.reason in ("did not arrive", "not in the capture"):
                    return Fate(inf, outage.cause, outage.text, copy.time)
                return Fate(inf, "drop", f"{copy.reason}, {copy.link}", copy.time)
        if outage is not None:
            return Fate(inf, outage.cause, outage.text, packet.time)
        if packet.time + self.transit(packet.node, host) >= self.end:
            return Fate(inf, "end", "on its way when the record ends", packet.time)
        return Fate(inf, "unknown", "did not arrive, the record does not say where it was lost", packet.time)

    def transit(self, source: str, host: str) -> float:
        """Return the shortest time that a packet from a host took to another; 0 if none arrived."""
        came = [packet for packet in self.packets.values() if packet.node == source and host in packet.received]
        times = [packet.received[host] - packet.time for packet in came]
        return min(times, default=0.0)

    def _way(self, source: str, host: str) -> Sequence[str]:
        """Return the nodes from one host to another; none if the network is not known."""
        return () if self.routes is None else self.routes.path(source, host)


def read_history(folder: RunFolder, object_id: int | None, receiver: str | None, sender: str | None) -> History:
    """Read what a run recorded of an object at a receiver. UsageError for an unknown host, and a run without a record.

    None stands for the only sender, for its only object, and for the receiver that is not complete or was complete last.
    """
    sender = _sender(folder, sender)
    object_id = _only_object(folder.scenario, sender) if object_id is None else object_id
    receiver = _last(folder, sender) if receiver is None else receiver
    if receiver not in folder.topology.hosts:
        raise UsageError(f"--receiver: value {receiver!r} is not allowed; {one_of(receiver, sorted(folder.receivers))}")
    if receiver == sender:
        raise UsageError(f"--receiver: value {receiver!r} is not allowed; it sends the object")
    if folder.trace is not None:
        return _of_trace(folder, object_id, receiver, sender)
    if folder.captures:
        return _of_captures(folder, object_id, receiver, sender)
    again = f"mcastlab run SCENARIO.yaml --out {quote(str(folder.path))} --set trace=true, or --capture hosts"
    raise UsageError(f"{folder.path}: has neither a trace nor captures, which tell what happened; run it again: {again}")


def _sender(folder: RunFolder, wanted: str | None) -> str:
    if wanted is None and len(folder.senders) == 1:
        return folder.senders[0]
    if wanted is None or wanted not in folder.senders:
        given = "is needed" if wanted is None else f"value {wanted!r} is not allowed"
        raise UsageError(f"--sender: {given}; the senders of this run are {', '.join(folder.senders)}")
    return wanted


def _only_object(scenario: Mapping[str, Any], sender: str) -> int:
    works = scenario["workload"]
    count = sum([int(work["count"]) for work in works if work["kind"] == "file" and work["from"] == sender])
    if count != 1 or any(work["kind"] == "publish" for work in works):
        raise UsageError(f"--object: is needed; {sender} sends {f'the objects 0 to {count - 1}' if count > 1 else 'messages'}")
    return 0


def _last(folder: RunFolder, sender: str) -> str:
    rows = [row for row in folder.result.receivers if row.name != sender]
    if not rows:
        raise UsageError("--receiver: is needed; the run has no receivers of files")
    return min(rows, key=lambda row: (row.equal, -(row.completed_at or 0.0))).name


def _of_trace(folder: RunFolder, object_id: int, receiver: str, sender: str) -> History:
    # Receptions by others are read too: they tell who heard a request.
    with open_trace(folder.path, {receiver, *folder.senders}) as (about, rows):
        trace = Trace(dict(about))
        asks = _fill(trace, rows, (receiver, sender))
    for name, option in ((receiver, "--receiver"), (sender, "--sender")):
        if name not in trace.hosts:
            raise UsageError(f"{option}: value {name!r} is not allowed; the trace has only {', '.join(trace.hosts[:8])}")
    history = _history(folder, "trace", object_id, receiver, sender, trace)
    history.requests = {number: parts_asked(entries, object_id) for number, entries in asks.items()}
    history.frames = frames_of_trace(folder, history.packets)
    return history


def _of_captures(folder: RunFolder, object_id: int, receiver: str, sender: str) -> History:
    captured = CapturedRun(folder, Routes(folder.topology))
    for name, option in ((receiver, "--receiver"), (sender, "--sender")):
        if name not in captured.hosts:
            known = ", ".join(captured.hosts[:8]) or "none of a host"
            raise UsageError(f"{option}: value {name!r} has no capture; a run with --capture hosts has all, this one {known}")
    trace = Trace(captured.about)
    rows = list(captured.rows())
    _fill(trace, rows, ())
    trace.end = max([trace.end, folder.duration])
    history = _history(folder, "captures", object_id, receiver, sender, trace)
    sent = {row[3]["packet"]: row[3] for row in rows if row[2] == "packet_sent"}
    history.frames = {number: data["frames"] for number, data in sent.items()}
    asks = {number: data["message"].asks for number, data in sent.items() if "message" in data}
    history.requests = {number: parts_asked(entries, object_id) for number, entries in asks.items() if entries}
    named = {number: getattr(data.get("message"), "invalid", ()) for number, data in sent.items()}
    history.squelches = frozenset(number for number, invalid in named.items() if object_id in invalid)
    history.unknown += [
        "when the receiver began a back-off: captures have packets and no decisions",
        "whether a request was suppressed: it is inferred from one that the receiver heard, and none of its own in that time",
    ]
    if receiver in captured.hidden:
        history.hides_losses = True
        only = [row.completed_at for row in folder.result.receivers if row.name == receiver and row.objects == 1]
        history.completed_at = only[0] if only else None
        history.unknown += [f"what the kernel lost behind the capture of {receiver}; emu.losses=keyed loses before it"]
    if captured.read_until is not None:
        history.unknown += [f"what happened after {captured.read_until:g} s, up to which the captures were read"]
    return history


def _fill(trace: Trace, rows: Iterable[TraceRow], nodes: tuple[str, ...]) -> dict[int, list[str]]:
    """Add rows to a trace, of decisions only those of the named nodes; return what requests name, by packet."""
    asks: dict[int, list[str]] = {}
    for row in rows:
        if row[2] == "packet_sent" and "asks" in row[3]:
            asks[row[3]["packet"]] = list(map(str, row[3]["asks"]))
        if row[2].startswith("packet_") or row[2] == "end" or row[1] in nodes:
            trace.add(row)
        trace.end = row[0]
    return asks


def _history(folder: RunFolder, kind: str, object_id: int, receiver: str, sender: str, trace: Trace) -> History:
    scenario, routes = folder.scenario, Routes(folder.topology)
    begins = _crashes(scenario["faults"], trace)
    history = History(
        kind=kind,
        protocol=str(scenario["protocol"].get("name", "")),
        sender=sender,
        receiver=receiver,
        object_id=object_id,
        packets=trace.packets,
        decisions=trace.decisions,
        end=trace.end,
        rate=float(scenario["protocol"].get("rate", inf)),
        outages=Outages(scenario["faults"], folder.topology, begins),
        is_simulated=folder.result.backend == "sim",
        attendance=folder.attendance.get(receiver, (0.0, inf)),
        path=tuple(routes.path(sender, receiver)),
        routes=routes,
        sender_id=node_id(folder.topology, sender),
    )
    history.longest_backoff = float(scenario["protocol"].get("backoff", 0)) * float(scenario["protocol"].get("grtt", 0.0))
    history.begin, history.octets = _submission(scenario, sender, object_id)
    history.segments = -(-history.octets // int(scenario["protocol"].get("segment", USUAL_SEGMENT)))
    history.bottleneck = _bottleneck(folder, history.path)
    if not any(carried is not None and carried.object_id == object_id for carried in map(carried_by, history.packets.values())):
        _check_known(history)
    if len(folder.senders) > 1 and kind == "trace":
        history.unknown.append("which sender a back-off is for: the receiver hears several, and its decisions do not name them")
    return history


def _check_known(history: History) -> None:
    """UsageError if the object was never sent and is not one that was submitted."""
    known = sorted({found.object_id for found in map(carried_by, history.packets.values()) if found is not None})
    if history.begin is None:
        some = first_names(known)
        raise UsageError(
            f"--object: value {history.object_id} is not allowed; {history.sender} sent the objects {some or 'none'}"
        )


def _crashes(faults: Iterable[Mapping[str, Any]], trace: Trace) -> dict[str, float]:
    """Return when hosts crashed whose crash is at a decision."""
    found = {}
    for fault in faults:
        when = fault.get("when")
        if when:
            (host,) = fault["crash"]
            times = [event.time for event in trace.decisions if event.node == host and event.name == when["decision"]]
            if len(times) >= when["count"]:
                found[host] = times[when["count"] - 1]
    return found


def _submission(scenario: Mapping[str, Any], sender: str, object_id: int) -> tuple[float | None, int]:
    """Return when an object was submitted, and its bytes: objects are numbered as their workloads are submitted."""
    works = [work for work in scenario["workload"] if work["kind"] == "file" and work["from"] == sender]
    first = 0
    for work in sorted(works, key=lambda work: float(work["at"])):
        if first <= object_id < first + int(work["count"]):
            return float(work["at"]), int(work["size"])
        first += int(work["count"])
    return None, 0


def _bottleneck(folder: RunFolder, path: tuple[str, ...]) -> float:
    topology = folder.topology
    ends = [name if name in topology.graph else topology.member(name).node for name in path]
    links = [pair for pair in pairwise(ends) if topology.graph.has_edge(*pair)]
    return min((topology.link(*pair).rate for pair in links), default=inf)
