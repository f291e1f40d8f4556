"""The trace of a run: one JSON object per line for every packet, decision and event, in order of time and node.

The first line describes the run. Every other has `time` (seconds), `node`, `name` and `data`, as qlog's events do. Names are
`packet_sent`, `packet_received`, `packet_dropped` (`data` has the packet's number, kind, and what `Message.brief` says), those
of the protocol's decisions, and of application events: the names of their classes in snake case.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, is_dataclass
from math import inf
from typing import Any, TextIO

from protocols.events import Event
from protocols.machine import Group, Message, Packet
from sim.addresses import name_and_port
from sim.timeline import Timeline
from sim.watch import Fate, Passage, Watcher
from topologies.spec import Topology

__all__ = ["FORMAT", "Tracer"]

FORMAT = "mcastlab trace 1"
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Tracer(Watcher):
    """Writes a trace into an open text file.

    `nodes` limits it to packets, decisions and events of these hosts, and losses on links to switches; None means all hosts.
    `about` is written into the first line.
    """

    def __init__(
        self, topology: Topology, file: TextIO, about: Mapping[str, Any], nodes: Collection[str] | None = None
    ) -> None:
        self._file = file
        hosts = [name for name in topology.hosts if nodes is None or name in nodes]
        self._places = {name: place for place, name in enumerate([*hosts, *topology.switches])}
        self._hosts = frozenset(hosts)
        self._timeline: Timeline[tuple[str, str, dict[str, Any]]] = Timeline(self._write)
        self._line({"format": FORMAT, **about, "hosts": hosts})

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Write a packet that a machine sends."""
        if host in self._hosts:
            to = packet.to.name if isinstance(packet.to, Group) else name_and_port(packet.to)[0]
            asks = {"asks": list(packet.message.asks)} if packet.message.asks else {}
            self._add(now, now, host, "packet_sent", {**_shown(packet.message, number), **asks, "size": packet.size, "to": to})

    def passed(self, passage: Passage) -> None:
        """Write when a packet arrives at each end of a link, and where it is lost."""
        now, shown = passage.now, _in_flight(passage)
        for fate in passage.fates:
            if fate.node not in self._places:
                continue
            if fate.reason:
                link = {"link": f"{passage.near}-{fate.node}", "to": fate.node, "reason": fate.reason}
                self._add(now, now, fate.node, "packet_dropped", {**shown, **link})
            elif fate.when < inf and fate.node in self._hosts:
                self._add(now, fate.when, fate.node, "packet_received", shown)

    def arrived(self, now: float, passage: Passage, fate: Fate) -> None:
        """Write the arrival of a packet that a link kept."""
        if fate.node in self._hosts:
            self._add(now, fate.when, fate.node, "packet_received", _in_flight(passage))

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """Write a decision of a machine."""
        if host in self._hosts:
            self._add(now, now, host, name, detail if isinstance(detail, dict) else {"detail": detail})

    def notified(self, now: float, host: str, event: Event) -> None:
        """Write an event of an application."""
        if host in self._hosts:
            assert is_dataclass(event)
            self._add(now, now, host, _CAPITALS.sub("_", type(event).__name__).lower(), asdict(event))

    def end(self, now: float) -> None:
        """Write the remaining lines, and the time at which the run ended."""
        self._timeline.end(now)
        self._line({"time": now, "node": None, "name": "end", "data": {}})

    def _add(self, now: float, when: float, node: str, name: str, data: dict[str, Any]) -> None:
        self._timeline.add(now, when, self._places[node], (node, name, data))

    def _write(self, when: float, item: tuple[str, str, dict[str, Any]]) -> None:
        node, name, data = item
        self._line({"time": when, "node": node, "name": name, "data": data})

    def _line(self, content: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(content, separators=(",", ":"), default=_plain) + "\n")


def _plain(value: object) -> str:
    """Convert what JSON does not have: the information of an object is bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value)


def _shown(message: Message, number: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"packet": number, "kind": message.kind}
    if message.brief:
        shown["brief"] = message.brief
    if message.repair:
        shown["repair"] = True
    return shown


def _in_flight(passage: Passage) -> dict[str, Any]:
    return {**_shown(passage.flight.message, passage.number), "from": name_and_port(passage.flight.source)[0]}
