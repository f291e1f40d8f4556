"""Turn the captures of a run into the lines of a trace: what each captured host sent and received, and what it missed.

A message is recognised at several capture points by its addresses and its bytes. A captured host missed a multicast packet if
others sent it while the host was a member of its group, and the host's capture has not got it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import merge
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from experiments.captures.datagrams import Capture, CapturedDatagram
from experiments.captures.trace_file import TraceRow
from experiments.report.run_report_folder import RunFolder
from experiments.report.run_report_routes import Routes
from experiments.scenario.protocol_modules import find_protocol
from protocols.errors import WireError
from topologies.addressing import endpoint_of_group, host_address

__all__ = ["MOST_DATAGRAMS", "CapturedRun"]

MOST_DATAGRAMS = 600_000
"""Most datagrams that are read, of all captures together."""
_PATIENCE = 2.0
"""Seconds after which a packet that has not arrived is taken as lost."""
_Key: TypeAlias = tuple[str, int, str, int, int]


@dataclass(slots=True)
class _Sent:
    """A packet under way: its number, when and by whom it was sent, and the captured hosts that have not received it."""

    number: int
    time: float
    source: str
    expected: list[str]
    data: dict[str, Any]
    seen: set[str] = field(default_factory=set)


class CapturedRun:
    """The captures of a run's folder as rows of a trace; `hosts` are those with a capture of their own.

    Besides what a trace has, a packet has the decoded `message`, and in `frames` its number in each capture.
    """

    def __init__(self, folder: RunFolder, routes: Routes) -> None:
        self.folder = folder
        topology = folder.topology
        self.files = {path.stem: path for path in folder.captures}
        self.hosts = [name for name in topology.hosts if name in self.files]
        self._captured = frozenset(self.hosts)
        self.read_until: float | None = None
        """Time at which reading stopped at the limit; None if everything was read."""
        self._routes = routes
        self._names = {host_address(topology, host): host for host in topology.hosts}
        self._groups = {_endpoint(name): name for name in folder.groups}
        self._codec = _codec(folder)
        self._open: dict[_Key, _Sent] = {}
        self._waiting: deque[tuple[_Key, _Sent]] = deque()
        self._slowest: dict[str, float] = {}
        self._expected = cache(self._members)
        self._count = 0

    @property
    def about(self) -> dict[str, Any]:
        """The description of the run, as in the first line of a trace."""
        result = self.folder.result
        return {"scenario": result.scenario, "seed": result.seed, "senders": self.folder.senders, "hosts": self.hosts}

    @property
    def hidden(self) -> list[str]:
        """The captured hosts behind a kernel filter that loses packets after the capture has seen them."""
        rows = self.folder.result.metrics["impairments"]
        ends = {row["link"].rpartition("-")[2] for row in rows if row.get("loss_by") == "cbpf"}
        return [host for host in self.hosts if host in ends]

    def rows(self) -> Iterator[TraceRow]:
        """Yield the packets of all captures; losses follow when they are certain, with the time of sending."""
        points = [_sightings(point, path) for point, path in self.files.items()]
        last = 0.0
        for read, (time, point, datagram) in enumerate(merge(*points, key=lambda item: item[0])):
            if read >= MOST_DATAGRAMS:
                self.read_until = time
                break
            last = time
            yield from self._lost_before(time - _PATIENCE)
            yield from self._sighting(time, point, datagram)
        yield from self._lost_at_end(last)

    def _sighting(self, time: float, point: str, datagram: CapturedDatagram) -> Iterator[TraceRow]:
        source = self._names.get(datagram.source)
        to = self._groups.get(f"{datagram.target}:{datagram.port}") or self._names.get(datagram.target)
        if source is None or to is None:
            return
        key = (datagram.source, datagram.sport, datagram.target, datagram.port, hash(datagram.payload))
        sent = self._open.get(key)
        again = sent is not None and point in sent.seen
        # Its sender sends the same bytes again; of a sender without a capture, any host shows it.
        resent = again and (point == source or (source not in self._captured and point in self._captured))
        if sent is None or resent:
            sent = self._new(key, time, source, to, datagram)
            yield time, source, "packet_sent", sent.data
        elif again:
            # Another interface of the same point, or a copy that the network made.
            return
        sent.seen.add(point)
        sent.data["frames"][point] = datagram.number
        if point in sent.expected:
            sent.expected.remove(point)
            self._slowest[point] = max(self._slowest.get(point, 0.0), time - sent.time)
        if point in self._captured and point != source:
            yield time, point, "packet_received", sent.data

    def _new(self, key: _Key, time: float, source: str, to: str, datagram: CapturedDatagram) -> _Sent:
        self._count += 1
        data = {"packet": self._count, "to": to, "size": datagram.size, "from": source, "frames": {}, **self._shown(datagram)}
        sent = _Sent(self._count, time, source, list(self._expected(source, to)), data)
        self._open[key] = sent
        self._waiting.append((key, sent))
        return sent

    def _members(self, source: str, to: str) -> list[str]:
        """Return the captured hosts that a packet should arrive at."""
        members = self.folder.groups.get(to, frozenset([to]))
        if source not in self.folder.senders:
            # Senders listen to feedback.
            members = members.union(self.folder.senders) if to in self.folder.groups else members
        return [host for host in self.hosts if host != source and host in members]

    def _shown(self, datagram: CapturedDatagram) -> dict[str, Any]:
        if len(datagram.payload) < datagram.size:
            return {"kind": "cut"}
        try:
            message = self._codec.decode(datagram.payload)
        except WireError:
            return {"kind": "unreadable"}
        return {"kind": message.kind, "brief": message.brief, "repair": message.repair, "message": message}

    # -- losses ------------------------------------------------------------------------------------------------------------

    def _lost_before(self, until: float) -> Iterator[TraceRow]:
        while self._waiting and self._waiting[0][1].time < until:
            key, sent = self._waiting.popleft()
            if self._open.get(key) is sent:
                del self._open[key]
            yield from self._losses(sent, sent.expected)

    def _lost_at_end(self, end: float) -> Iterator[TraceRow]:
        """Yield the losses that are certain although the captures end: others took less time to arrive."""
        for _, sent in self._waiting:
            yield from self._losses(sent, [host for host in sent.expected if sent.time + self._slowest.get(host, 0.0) < end])

    def _losses(self, sent: _Sent, hosts: Sequence[str]) -> Iterator[TraceRow]:
        lost = [host for host in hosts if self.folder.is_member(host, sent.time)]
        if not lost:
            return
        expected = self._expected(sent.source, str(sent.data["to"]))
        ways = {way[-1]: way for way in (self._routes.way_to_loss(sent.source, host, lost, expected) for host in lost)}
        for far, way in ways.items():
            taken = sum(self._routes.nominal(*link) for link in pairwise(way[:-1]))
            more = {"link": f"{way[-2]}-{far}", "reason": "not in the capture"}
            yield sent.time + taken, far, "packet_dropped", {**sent.data, **more}


def _sightings(point: str, path: Path) -> Iterator[tuple[float, str, CapturedDatagram]]:
    for datagram in Capture(path):
        yield datagram.time, point, datagram


def _endpoint(group: str) -> str:
    return group if ":" in group else endpoint_of_group(group)


def _codec(folder: RunFolder) -> Any:
    protocol = folder.scenario["protocol"]
    return find_protocol(str(protocol.get("name", "")), str(protocol.get("module", ""))).spec.codec()
