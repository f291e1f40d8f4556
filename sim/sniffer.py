"""Captures of a simulated run as pcapng, at a link or a node, with comments that tell which packets are lost later."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any, BinaryIO

from protocols.errors import UsageError
from protocols.machine import Codec
from sim.addresses import name_and_port
from sim.flight import Flight, dscp_of
from sim.framer import Framer
from sim.host_ports import HostPorts
from sim.noise import Noise
from sim.tcp.segment import Segment
from sim.tcp.wire import encode
from sim.timeline import Timeline
from sim.watch import Fate, Passage, WatchedNetwork, Watcher, number_of
from topologies.pcapng import INBOUND, OUTBOUND, PcapngWriter
from topologies.spec import Topology

__all__ = ["Encoder", "Sniffer", "check_point"]

_NAMED = 6
_RECENT = 256


def check_point(topology: Topology, point: str) -> tuple[str, ...]:
    """Return the node, or the two ends of the link, that a capture point names; UsageError when there is none.

    A node is a host or a switch ("r1", "s1"), a link the two joined by a dash ("s1-r1").
    """
    if _is_node(topology, point):
        return (point,)
    for near, far in _halves(point):
        if _is_node(topology, near) and _is_node(topology, far):
            ends = (_graph_node(topology, near), _graph_node(topology, far))
            if topology.graph.has_edge(*ends):
                return near, far
    first = topology.links[0][:2]
    near, far = (name if _is_node(topology, name) else topology.member_name(name, 0) for name in first)
    raise UsageError(f"{point!r} is no host, switch or link here; a link is two neighbours with a dash, like {near}-{far}")


def _halves(point: str) -> Iterator[tuple[str, str]]:
    """Split at each dash: names may contain dashes themselves."""
    for at, letter in enumerate(point):
        if letter == "-":
            yield point[:at], point[at + 1 :]


def _is_node(topology: Topology, name: str) -> bool:
    if name in topology.switches:
        return True
    try:
        topology.member(name)
    except UsageError:
        return False
    return True


def _graph_node(topology: Topology, name: str) -> str:
    return name if name in topology.switches else topology.member(name).node


class Encoder:
    """The frames of packets in flight, each encoded once for all capture points.

    Content without bytes is written as zeros, and so is noise.
    """

    def __init__(self, topology: Topology, codec: Codec) -> None:
        self._framer = Framer(topology)
        self._codec = codec
        self.ports = HostPorts()
        """Those of the network, for the codecs of hosts with several machines."""
        self._recent: OrderedDict[int, bytes] = OrderedDict()

    def frame(self, flight: Flight) -> bytes:
        """Return the Ethernet frame of a packet."""
        number = number_of(flight)
        found = self._recent.get(number)
        if found is None:
            found = self._recent[number] = self._build(flight, number)
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return found

    def _build(self, flight: Flight, number: int) -> bytes:
        if isinstance(flight.message, Segment):
            return self._framer.tcp_frame(flight.source, flight.route.to, encode(flight.message), number)
        codec = self.ports.codec(flight.place, name_and_port(flight.source)[1], self._codec)
        payload = _payload(codec, flight.message, flight.size)
        return self._framer.frame(flight.source, flight.route.to, payload, number, dscp_of(flight))


def _payload(codec: Codec, message: Any, size: int) -> bytes:
    """Return the UDP payload of a message, which has `size` bytes."""
    if type(message) is Noise:
        return bytes(size)
    if getattr(message, "payload", b"") is None:
        content = size - len(codec.encode(replace(message, payload=b"")))
        message = replace(message, payload=bytes(content))
    return codec.encode(message)


class Sniffer(Watcher):
    """Writes one capture point into an open binary file.

    At a node it shows what a capture on its devices would: what leaves the node, and what arrives. At a link it shows what is
    offered to the link at either end, and comments say what the link lost. A switch's links to a counted group of hosts are
    one interface, with each packet once.
    """

    def __init__(self, topology: Topology, point: str, file: BinaryIO, encoder: Encoder) -> None:
        self._names = check_point(topology, point)
        self._encoder = encoder
        self._writer = PcapngWriter(file)
        self._interfaces: dict[str, int] = {}
        self._timeline: Timeline[tuple[str, Flight, int, str]] = Timeline(self._write)

    def begin(self, network: WatchedNetwork) -> None:
        """Read packets by the codecs of the network's ports."""
        self._encoder.ports = network.fabric.ports

    def passed(self, passage: Passage) -> None:
        """Keep the packet if it passes this point."""
        if len(self._names) == 2:
            self._on_link(passage)
            return
        (node,) = self._names
        if passage.near == node:
            interface = f"{node}-{passage.ends[1]}"
            self._keep(passage, passage.now, interface, OUTBOUND, _comment(passage, _missed(passage.fates)))
            return
        for fate in passage.fates:
            if fate.node == node and fate.when < inf:
                self._inbound(passage, passage.now, fate.when)

    def arrived(self, now: float, passage: Passage, fate: Fate) -> None:
        """Keep a packet that a link had kept, if it arrives at this point."""
        if self._names == (fate.node,):
            self._inbound(passage, now, fate.when)

    def _inbound(self, passage: Passage, now: float, when: float) -> None:
        interface = f"{self._names[0]}-{passage.ends[0]}"
        self._keep(passage, when, interface, INBOUND, _comment(passage, ""), now)

    def _on_link(self, passage: Passage) -> None:
        near, far = self._names
        if passage.near not in self._names:
            return
        other = far if passage.near == near else near
        fates = [fate for fate in passage.fates if fate.node == other]
        if fates:
            copies = f"{len(fates)} copies" if len(fates) > 1 else ""
            comment = _comment(passage, copies or fates[0].reason)
            self._keep(passage, passage.now, f"{near}-{far}", OUTBOUND if other == far else INBOUND, comment)

    def _keep(
        self, passage: Passage, when: float, interface: str, direction: int, comment: str, now: float | None = None
    ) -> None:
        item = (interface, passage.flight, direction, comment)
        self._timeline.add(passage.now if now is None else now, when, direction, item)

    def _write(self, when: float, item: tuple[str, Flight, int, str]) -> None:
        interface, flight, direction, comment = item
        number = self._interfaces.get(interface)
        if number is None:
            number = self._interfaces[interface] = self._writer.interface(interface, "simulated by mcastlab")
        self._writer.packet(number, when, self._encoder.frame(flight), direction, comment)

    def end(self, now: float) -> None:
        """Write the packets that are still kept."""
        self._timeline.end(now)


def _comment(passage: Passage, more: str) -> str:
    return "; ".join(part for part in ("repair" if passage.flight.message.repair else "", more) if part)


def _missed(fates: list[Fate]) -> str:
    """Why a packet that leaves a node does not arrive at the other end, and of a group, at which members."""
    missed = [fate for fate in fates if fate.reason]
    if not missed:
        return ""
    if len(fates) == 1:
        return missed[0].reason
    names = ", ".join(fate.node for fate in missed[:_NAMED])
    rest = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return f"{missed[0].reason} for {names}{rest}"
