"""A try before every run: does each group reach everybody it should, nobody else, and does each of them get an answer back?

Every host that takes part in a group sends it a packet, from the very network it will live in, before anything is impaired.
"""

import resource
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx

from emu.multicast_reach import MulticastReach, expected_reach
from emu.namespaces import in_network_namespace
from emu.plan import EmulationPlan
from protocols.errors import UnsupportedError

__all__ = ["check_reachability"]

_PORT = 9
_TO_US = _PORT.to_bytes(2)
_PATIENCE, _AGAIN, _GRACE = 1.0, 0.1, 0.005
"""Seconds to wait for a packet beyond the delay of all links, between two tries, and for what should not come."""
_UNRESOLVED = "-1"
_SPARE_FILES = 256
_SERIAL = struct.Struct("!I")
_IPV4 = 0x0800
_KIND_AT, _PORT_AT, _PAYLOAD_AT = 23, 36, 42
"""Where in a frame the protocol is, the port it goes to, and the payload."""


@dataclass(slots=True)
class _Attempt:
    """One source and what came of its packet: who heard it, whose device it passed, whose answer came back."""

    expected_reach: MulticastReach
    heard: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    @property
    def done(self) -> bool:
        """Everybody heard and everybody's answer came back."""
        return self.expected_reach.wanted <= self.heard and self.expected_reach.wanted <= self.answered


def check_reachability(plan: EmulationPlan, pid: Callable[[str], int]) -> None:
    """Send a packet from every host to each of its groups; UnsupportedError naming the link at which one ends.

    `pid` tells a process in a host's network namespace. To be called before losses are set.
    """
    if plan.groups:
        with ExitStack() as stack:
            _ReachabilityCheck(plan, pid, stack).run()


class _ReachabilityCheck:
    """The sockets of one try: on each host one that takes part, and one that sees what passes its device."""

    def __init__(self, plan: EmulationPlan, pid: Callable[[str], int], stack: ExitStack) -> None:
        self._planned = plan
        self._pid = pid
        self._topology = plan.topology
        self._rounds: list[_Attempt] = []
        self._poll = select.poll()
        self._open_sockets: dict[str, socket.socket] = {}
        self._eyes: dict[int, socket.socket] = {}
        self._hosts: dict[int, str] = {}
        self._named = {address: host for host, address in plan.addresses.items()}
        self._patience = _PATIENCE + sum(spec.delay for _, _, spec in self._topology.links)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * len(self._named) + _SPARE_FILES)), hard))
        for host, address in plan.addresses.items():
            with in_network_namespace(pid(host)):
                ear = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                eye = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IPV4)))
            self._prepare(ear, host, address)
            eye.setblocking(False)
            self._poll.register(eye, select.POLLIN)
            self._eyes[eye.fileno()] = eye
            self._hosts[eye.fileno()] = host

    def _prepare(self, ear: socket.socket, host: str, address: str) -> None:
        ear.setblocking(False)
        ear.bind(("", _PORT))
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._planned.ttl(host))
        self._poll.register(ear, select.POLLIN)
        self._open_sockets[host] = ear
        self._hosts[ear.fileno()] = host

    def run(self) -> None:
        """Try every group; raise what was found."""
        for group, hosts in self._planned.groups.items():
            # A socket is in few groups at most, so they are tried one after the other.
            self._membership(socket.IP_ADD_MEMBERSHIP, group)
            for source in hosts:
                self._try(expected_reach(self._topology, source, group, hosts, self._planned.ttl(source)))
            self._listen(time.monotonic() + _GRACE, lambda: False)
            self._membership(socket.IP_DROP_MEMBERSHIP, group)
        for played in self._rounds:
            for host in sorted(played.seen - played.expected_reach.passing):
                self._refuse(played, host, "comes to {host}, which is beyond the group's tree", self._last_link(host))

    def _membership(self, change: int, group: str) -> None:
        """Those who take part join, or leave."""
        for host in self._planned.groups[group]:
            request = socket.inet_aton(group) + socket.inet_aton(self._planned.addresses[host])
            self._open_sockets[host].setsockopt(socket.IPPROTO_IP, change, request)

    def _try(self, wanted: MulticastReach) -> None:
        played = _Attempt(wanted)
        self._rounds.append(played)
        serial = _SERIAL.pack(len(self._rounds) - 1)
        end = time.monotonic() + self._patience
        while not played.done and time.monotonic() < end:
            self._open_sockets[wanted.source].sendto(serial, (wanted.group, _PORT))
            self._listen(min(end, time.monotonic() + _AGAIN), lambda: played.done)
        for host in sorted(wanted.wanted - played.heard):
            met = {node for node in self._planned.routing.routers if self._met(wanted, node)}
            self._refuse(played, host, "does not come to {host}", self._broken(wanted.source, host, played.heard, met))
        for host in sorted(wanted.wanted - played.answered):
            link = self._broken(wanted.source, host, played.answered, set())
            self._refuse(played, host, "comes to {host}, its answer does not come back", link)

    def _listen(self, until: float, done: Callable[[], bool]) -> None:
        while not done() and (left := until - time.monotonic()) > 0:
            # Rounded up: a poll of 0 ms would not wait at all.
            for number, _ in self._poll.poll(int(left * 1000) + 1):
                if number in self._eyes:
                    self._see(self._hosts[number], self._eyes[number])
                else:
                    self._hear(self._hosts[number])

    def _see(self, host: str, eye: socket.socket) -> None:
        """A packet passed the host's device, whether the host wants it or not."""
        frame, (_, _, kind, *_) = eye.recvfrom(128)
        if (
            kind == socket.PACKET_MULTICAST
            and frame[_KIND_AT] == socket.IPPROTO_UDP
            and frame[_PORT_AT : _PORT_AT + 2] == _TO_US
        ):
            self._rounds[_SERIAL.unpack_from(frame, _PAYLOAD_AT)[0]].seen.add(host)

    def _hear(self, host: str) -> None:
        data, (address, _) = self._open_sockets[host].recvfrom(64)
        played = self._rounds[_SERIAL.unpack(data)[0]]
        if host == played.expected_reach.source:
            played.answered.add(self._named[address])
        else:
            played.heard.add(host)
            self._open_sockets[host].sendto(data, (address, _PORT))

    def _broken(self, source: str, host: str, fine: Collection[str], met: Collection[str]) -> str:
        """The first link on the way to `host` behind which are none of `fine`, hosts, and of `met`, routers."""
        passed = {node for other in fine for node in self._way(source, other)} | {source, *met}
        way = list(self._way(source, host))
        last = max(place for place, node in enumerate(way) if node in passed)
        return f"{way[last]}-{way[last + 1]}"

    def _met(self, wanted: MulticastReach, router: str) -> bool:
        """Did the packet come to the router? It has counted it then, or still waits to be told where it goes."""
        addresses = (wanted.group, self._planned.addresses[wanted.source])
        names = [f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}" for address in addresses]
        lines = Path(f"/proc/{self._pid(router)}/net/ip_mr_cache").read_text().splitlines()
        rows = [line.split() for line in lines if line.split()[:2] == names]
        return any(row[2] == _UNRESOLVED or int(row[3]) for row in rows)

    def _way(self, source: str, host: str) -> Iterator[str]:
        near, far = self._topology.member(source).node, self._topology.member(host).node
        (root,) = self._topology.graph.successors(near)
        yield source
        yield from nx.shortest_path(self._topology.graph, root, far)[:-1]
        yield host

    def _last_link(self, host: str) -> str:
        (near,) = self._topology.graph.successors(self._topology.member(host).node)
        return f"{near}-{host}"

    def _refuse(self, played: _Attempt, host: str, what: str, link: str) -> None:
        source, group = played.expected_reach.source, played.expected_reach.group
        said = what.format(host=host)
        raise UnsupportedError(f"link {link}: a packet of {source} to {group} {said}; the kernel routes otherwise than planned")
