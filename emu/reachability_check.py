"""Check before each run that every group reaches the hosts that it must, no others, and that each host can answer by unicast.

Every host that takes part in a group sends it a packet from its own namespace, before any impairment is set.
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
_PORT_BYTES = _PORT.to_bytes(2)
_TIMEOUT, _RETRY, _GRACE = 1.0, 0.1, 0.005
"""Seconds to wait for a packet beyond the delay of all links, between two packets, and for packets that must not arrive."""
_UNRESOLVED = "-1"
_SPARE_FILES = 256
_SERIAL = struct.Struct("!I")
_IPV4 = 0x0800
_KIND_AT, _PORT_AT, _PAYLOAD_AT = 23, 36, 42
"""Offsets in a frame: IP protocol, UDP destination port, UDP payload."""


@dataclass(slots=True)
class _Attempt:
    """One source and group: hosts that received the packet, hosts whose device it passed, hosts whose answer came back."""

    expected: MulticastReach
    received: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    @property
    def done(self) -> bool:
        """Whether all required hosts received the packet and their answers came back."""
        return self.expected.required <= self.received and self.expected.required <= self.answered


def check_reachability(plan: EmulationPlan, pid: Callable[[str], int]) -> None:
    """Send a packet from every host to each of its groups; raise UnsupportedError naming the link where one ends.

    `pid` returns a process in a host's network namespace. To be called before losses are set.
    """
    if plan.groups:
        with ExitStack() as stack:
            _ReachabilityCheck(plan, pid, stack).run()


class _ReachabilityCheck:
    """The sockets of one check: on each host a UDP socket that receives, and a packet socket for all that passes the device."""

    def __init__(self, plan: EmulationPlan, pid: Callable[[str], int], stack: ExitStack) -> None:
        self._plan = plan
        self._pid = pid
        self._topology = plan.topology
        self._attempts: list[_Attempt] = []
        self._poll = select.poll()
        self._receivers: dict[str, socket.socket] = {}
        self._sniffers: dict[int, socket.socket] = {}
        self._host_of_socket: dict[int, str] = {}
        self._host_of = {address: host for host, address in plan.addresses.items()}
        self._timeout = _TIMEOUT + sum(spec.delay for _, _, spec in self._topology.links)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * len(self._host_of) + _SPARE_FILES)), hard))
        for host, address in plan.addresses.items():
            if host in plan.machines:
                continue
            with in_network_namespace(pid(host)):
                receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sniffer = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IPV4)))
            self._prepare(receiver, host, address)
            sniffer.setblocking(False)
            self._poll.register(sniffer, select.POLLIN)
            self._sniffers[sniffer.fileno()] = sniffer
            self._host_of_socket[sniffer.fileno()] = host

    def _prepare(self, receiver: socket.socket, host: str, address: str) -> None:
        receiver.setblocking(False)
        receiver.bind(("", _PORT))
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._plan.ttl(host))
        self._poll.register(receiver, select.POLLIN)
        self._receivers[host] = receiver
        self._host_of_socket[receiver.fileno()] = host

    def run(self) -> None:
        """Check every group; raise UnsupportedError at the first failure."""
        for group, everybody in self._plan.groups.items():
            # Machines of routers have no device of their own on which a packet could be seen.
            hosts = [host for host in everybody if host not in self._plan.machines]
            # A socket can be a member of few groups (igmp_max_memberships), so they are checked one by one.
            self._membership(socket.IP_ADD_MEMBERSHIP, group)
            for source in hosts:
                self._attempt(expected_reach(self._topology, source, group, hosts, self._plan.ttl(source)))
            self._receive_until(time.monotonic() + _GRACE, lambda: False)
            self._membership(socket.IP_DROP_MEMBERSHIP, group)
        for attempt in self._attempts:
            for host in sorted(attempt.passed - attempt.expected.allowed):
                self._fail(attempt, host, "arrives at {host}, which is not in the group's tree", self._last_link(host))

    def _membership(self, change: int, group: str) -> None:
        """Join or leave the group on all hosts that take part."""
        for host in (host for host in self._plan.groups[group] if host not in self._plan.machines):
            request = socket.inet_aton(group) + socket.inet_aton(self._plan.addresses[host])
            self._receivers[host].setsockopt(socket.IPPROTO_IP, change, request)

    def _attempt(self, expected: MulticastReach) -> None:
        attempt = _Attempt(expected)
        self._attempts.append(attempt)
        serial = _SERIAL.pack(len(self._attempts) - 1)
        end = time.monotonic() + self._timeout
        while not attempt.done and time.monotonic() < end:
            self._receivers[expected.source].sendto(serial, (expected.group, _PORT))
            self._receive_until(min(end, time.monotonic() + _RETRY), lambda: attempt.done)
        for host in sorted(expected.required - attempt.received):
            reached = {node for node in self._plan.routing.routers if self._reached(expected, node)}
            self._fail(
                attempt, host, "does not arrive at {host}", self._failed_link(expected.source, host, attempt.received, reached)
            )
        for host in sorted(expected.required - attempt.answered):
            link = self._failed_link(expected.source, host, attempt.answered, set())
            self._fail(attempt, host, "arrives at {host}, but its answer does not come back", link)

    def _receive_until(self, until: float, done: Callable[[], bool]) -> None:
        while not done() and (left := until - time.monotonic()) > 0:
            # Rounded up: a poll of 0 ms would not wait at all.
            for number, _ in self._poll.poll(int(left * 1000) + 1):
                if number in self._sniffers:
                    self._on_frame(self._host_of_socket[number], self._sniffers[number])
                else:
                    self._on_datagram(self._host_of_socket[number])

    def _on_frame(self, host: str, sniffer: socket.socket) -> None:
        """Record that a packet passed the host's device, whether the host is a member or not."""
        frame, (_, _, kind, *_) = sniffer.recvfrom(128)
        if (
            kind == socket.PACKET_MULTICAST
            and frame[_KIND_AT] == socket.IPPROTO_UDP
            and frame[_PORT_AT : _PORT_AT + 2] == _PORT_BYTES
        ):
            self._attempts[_SERIAL.unpack_from(frame, _PAYLOAD_AT)[0]].passed.add(host)

    def _on_datagram(self, host: str) -> None:
        data, (address, _) = self._receivers[host].recvfrom(64)
        attempt = self._attempts[_SERIAL.unpack(data)[0]]
        if host == attempt.expected.source:
            attempt.answered.add(self._host_of[address])
        else:
            attempt.received.add(host)
            self._receivers[host].sendto(data, (address, _PORT))

    def _failed_link(self, source: str, host: str, confirmed: Collection[str], reached: Collection[str]) -> str:
        """Return the first link on the path to `host` that no packet passed, given hosts `confirmed` and routers `reached`."""
        passed = {node for other in confirmed for node in self._path(source, other)} | {source, *reached}
        path = list(self._path(source, host))
        last = max(place for place, node in enumerate(path) if node in passed)
        return f"{path[last]}-{path[last + 1]}"

    def _reached(self, expected: MulticastReach, router: str) -> bool:
        """Return whether the packet reached the router: it has an unresolved or a used entry in its /proc/net/ip_mr_cache."""
        addresses = (expected.group, self._plan.addresses[expected.source])
        names = [f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}" for address in addresses]
        lines = Path(f"/proc/{self._pid(router)}/net/ip_mr_cache").read_text().splitlines()
        rows = [line.split() for line in lines if line.split()[:2] == names]
        return any(row[2] == _UNRESOLVED or int(row[3]) for row in rows)

    def _path(self, source: str, host: str) -> Iterator[str]:
        near, far = self._topology.member(source).node, self._topology.member(host).node
        (root,) = self._topology.graph.successors(near)
        yield source
        yield from nx.shortest_path(self._topology.graph, root, far)[:-1]
        yield host

    def _last_link(self, host: str) -> str:
        (near,) = self._topology.graph.successors(self._topology.member(host).node)
        return f"{near}-{host}"

    def _fail(self, attempt: _Attempt, host: str, description: str, link: str) -> None:
        source, group = attempt.expected.source, attempt.expected.group
        outcome = description.format(host=host)
        raise UnsupportedError(f"link {link}: a packet of {source} to {group} {outcome}; the kernel does not route as planned")
