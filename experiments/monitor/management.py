"""The processes of a Distributor domain, Java programs included: what the management group says of them."""

import asyncio
import resource
import secrets
import socket
from collections.abc import Sequence
from typing import Final

from emu.addresses import SocketAddress, address_of, at_port
from emu.host import UdpHost
from experiments.monitor.domain import ANSWERING, SILENT, Connection, Reading
from experiments.session.guarded_loop import GuardedLoop
from protocols.distributor.management import GROUP, ManagementCodec, ManagementFraming, ManagementObserver
from protocols.distributor.management.messages import Announcement, ConnectionView, DirectionView, RateView
from protocols.distributor.management.observer import Key, ObservedProcess
from protocols.errors import UsageError
from protocols.machine import Address, Group
from protocols.rate_history import Flow, Rate
from protocols.rng import Rng

__all__ = ["ManagementSource", "connection_of", "reading_of"]

RESCAN: Final = 10
"""Readings after which new interfaces are looked for."""
SPARED: Final = 200
"""Descriptors that are left for other things than connections with processes."""
NEVER: Final = "00:00:00.000"
MOST_TOPICS: Final = 50
UNITS: Final = ("bytes", "packets", "messages")


class ManagementSource:
    """Observes a management group on some interfaces of this machine; none: on all of them, also on those that come later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, group: str = GROUP, ifaces: Sequence[str] = ()) -> None:
        self._loop = loop
        self._group = Group(group)
        self._ifaces = tuple(ifaces)
        self._owners: dict[Key, object] = {}
        self._hosts: dict[str, tuple[UdpHost, ManagementObserver, GuardedLoop]] = {}
        self._readings = 0
        self._known: dict[tuple[Key, int], tuple[ConnectionView, Connection]] = {}
        for iface in ifaces:
            self._open(iface)

    def _open(self, iface: str) -> None:
        """Observe on an interface. UsageError where that is impossible."""
        address = address_of(iface)
        if address in self._hosts:
            return
        guarded = GuardedLoop(self._loop, lambda error: self._close(address))
        rng = Rng(secrets.randbits(64))
        host = UdpHost(guarded, ManagementCodec(), interface=address, port=0, rng=rng, framing=ManagementFraming)
        most = max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARED)
        observer = ManagementObserver(host, self._group, _reach, most=most, owners=self._owners)
        self._hosts[address] = (host, observer, guarded)
        host.run(observer, lambda event: None)

    def _scan(self) -> None:
        """Observe on the interfaces that are there now; one without an address, or without multicast, is left."""
        for _, name in socket.if_nameindex():
            try:
                self._open(name)
            except (UsageError, OSError):
                continue

    def readings(self) -> dict[str, Reading]:
        """Return what is known of all processes, by a key for each."""
        if not self._ifaces and self._readings % RESCAN == 0:
            self._scan()
        self._readings += 1
        found, known = dict[str, Reading](), self._known
        self._known = {}
        for host, observer, _ in list(self._hosts.values()):
            for key, process in observer.processes.items():
                (address, number), connections = key, []
                assert isinstance(address, tuple)
                for each, view in process.connections.items():
                    if view is not None:
                        # The codec gives the same object for an answer of the same bytes.
                        before = known.get((key, each))
                        same = before if before is not None and before[0] is view else (view, connection_of(view))
                        self._known[key, each] = same
                        connections.append(same[1])
                state = SILENT if process.is_silent(host.now) else ANSWERING
                name = f"process/{address[0]}:{address[1]}/{number}"
                found[name] = reading_of(process, self._group.name, connections, state)
        return found

    def process_ids(self) -> set[int]:
        """Return the ids of the processes that are observed."""
        return {number for _, observer, _ in self._hosts.values() for _, number in observer.processes}

    def _close(self, address: str) -> None:
        host, observer, guarded = self._hosts.pop(address)
        guarded.close()
        for key in observer.processes:
            self._owners.pop(key, None)
        host.stop()
        host.close()

    def close(self) -> None:
        """Observe no more."""
        for address in list(self._hosts):
            self._close(address)


def _reach(source: Address, announcement: Announcement) -> SocketAddress:
    """Return where the sender of an announcement answers."""
    assert isinstance(source, tuple)
    return at_port(source, announcement.port)


def reading_of(process: ObservedProcess, domain: str, connections: Sequence[Connection], state: str) -> Reading:
    """Return what is known of an observed process."""
    told = process.announcement
    host = told.host_name or "-"
    return Reading(
        domain=domain,
        name=told.application or "-",
        place=host if told.address in (None, "", host) else f"{host} {told.address}",
        connections=connections,
        started=told.started_at or "",
        state=state,
    )


def connection_of(view: ConnectionView) -> Connection:
    """Return what a process reports of a connection, with the rates it computed."""
    requests = view.retransmissions
    hosts = [f"requests by {name}" for name in requests.received_from or ()]
    hosts += [f"requests to {name}" for name in requests.sent_to or ()]
    return Connection(
        id=str(view.connection_id),
        name=f"{view.group or '-'}:{view.port}",
        role=" and ".join(word for word, count in (("publisher", view.publishers), ("subscriber", view.subscribers)) if count),
        flows=_flows("sent", view.traffic.sent) | _flows("received", view.traffic.received),
        requests={"requests_in": requests.received, "requests_out": requests.sent, "requests_seen": requests.seen},
        publishers=view.publishers,
        subscribers=view.subscribers,
        subscriptions=view.subscriptions,
        queue=view.queue.size,
        queue_peak=view.queue.peak,
        members=[text or "" for text in (view.topics or ())[:MOST_TOPICS]] + hosts,
    )


def _flows(word: str, direction: DirectionView) -> dict[str, Flow]:
    totals = (direction.octets, direction.segments, direction.updates)
    return {
        f"{unit}_{word}": Flow(total, tuple(map(_rate, direction.rates[place::3])))
        for place, (unit, total) in enumerate(zip(UNITS, totals, strict=True))
    }


def _rate(view: RateView) -> Rate:
    return Rate(view.current, view.peak, None if view.peak_at in (None, NEVER) else view.peak_at)
