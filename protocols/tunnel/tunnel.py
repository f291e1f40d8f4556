"""The tunnel between sites: a machine that carries the packets of a multicast group by unicast (FJM2D; thesis, 3.6).

What it hears from the group in its site goes into a ring and from there to every peer; what a peer sends it multicasts in its
site, byte for byte. So senders and receivers of different sites hear each other as if they were in one, without knowing of
tunnels: source ids, NACKs, suppression and repair are those of NORM.

Loops are cut three ways: a datagram of the own site or without hops left, a multicast of another tunnel of the site, and a
packet that was carried already are not carried. Feedback repeats itself byte by byte, so it is remembered for a GRTT only.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from protocols.admin.node import Node
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.norm.quantise import rtt_seconds
from protocols.snapshot import Snapshot, buffers
from protocols.tunnel.config import TunnelOptions
from protocols.tunnel.duty import Duty
from protocols.tunnel.memory import Memory
from protocols.tunnel.messages import Brake, Carried, Presence, Report
from protocols.tunnel.parcel import Parcel, read_parcel
from protocols.tunnel.peers import Peer, Peers
from protocols.tunnel.signals import Signals
from protocols.tunnel.wire import HEADER, LARGEST, MAC_SIZE, group_bytes, size_of

__all__ = ["COUNTERS", "Tunnel"]

CONTENT_MEMORY: Final = 2.0
"""Seconds for which messages of senders are remembered, which never repeat themselves."""
FIRST_GRTT: Final = 0.1
"""Seconds for which feedback is remembered before a sender has advertised its GRTT."""
MOST_REMEMBERED: Final = 65_536
COUNTERS: Final = (
    *("packets_carried", "packets_returned", "datagrams_sent", "datagrams_received", "bytes_out", "bytes_in"),
    *("ring_dropped", "loops_cut_site", "loops_cut_tunnels", "loops_cut_memory", "packets_left", "packets_oversized"),
    *("datagrams_refused", "datagrams_lost", "brakes_sent"),
)


class _Waiting(NamedTuple):
    """A packet in the ring. `site` and `hops` are those of the datagrams to be sent; `without` is the peer it came from."""

    parcel: Parcel
    site: int
    hops: int
    without: Peer | None


class Tunnel(Machine):
    """Carries the packets of `group` between its site and its peers, which `update_peers` names.

    `node` is its 32-bit id. `known_as` is the name of the group between sites, if it has different ones in them.
    `is_authenticated`: messages of NORM have an EXT_AUTH.
    """

    __slots__ = (
        "_clear",
        "_content",
        "_counts",
        "_duty",
        "_feedback",
        "_free_at",
        "_group",
        "_group_bytes",
        "_grtt",
        "_home",
        "_is_authenticated",
        "_is_full",
        "_mac",
        "_options",
        "_peers",
        "_ring",
        "_sequence",
        "_signals",
    )

    def __init__(
        self,
        ports: Ports,
        node: int,
        group: Group,
        options: TunnelOptions,
        *,
        known_as: str = "",
        is_authenticated: bool = False,
    ) -> None:
        super().__init__(ports)
        self._group, self._options, self._is_authenticated = group, options, is_authenticated
        self._group_bytes = group_bytes(known_as or group.name)
        self._mac = MAC_SIZE if options.key_file else 0
        self._peers = Peers()
        self._duty = Duty(node, options.site, options.hello)
        self._signals = Signals(self._peers, options.ring, options.brake)
        self._ring: deque[_Waiting] = deque()
        self._home: deque[Parcel] = deque()
        self._content, self._feedback = Memory(MOST_REMEMBERED), Memory(MOST_REMEMBERED)
        self._grtt = FIRST_GRTT
        self._sequence = 0
        # When the pace allows the next packet, and when the processor is free.
        self._clear = self._free_at = -inf
        self._is_full = False
        self._counts = dict.fromkeys(COUNTERS, 0)

    def update_peers(self, nodes: Sequence[Node]) -> None:
        """Carry to and from these tunnels from now on, but for those that are paused."""
        self._peers.update(nodes)

    # Inputs

    def start(self, now: float) -> None:
        """Join the group, and announce this tunnel in the site."""
        self.ports.join(self._group)
        self._duty.begin(round((self.ports.epoch + now) * 1e6), now)
        if self._options.brake:
            self._signals.due = now
        self._schedule(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Carry a packet of the group or of a peer."""
        if isinstance(to, Group):
            if isinstance(message, Presence):
                self._duty.hear(message, source, now)
            elif not isinstance(message, Brake):
                self._on_multicast(message, source, now)
        else:
            peer = self._peers.at(source)
            if peer is not None and isinstance(message, Carried):
                self._on_datagram(message, peer, now)
            elif peer is not None and isinstance(message, Report):
                self._signals.reported(peer, message, now)
            else:
                self._counts["datagrams_refused"] += 1
        if self._options.work:
            # What waits for the processor comes first, so that it fills the ring.
            self._schedule(now)
        else:
            self._serve(now)

    def wake(self, now: float) -> None:
        """Send what is due."""
        if self._duty.due <= now:
            self._tell(self._duty.next(now))
        if self._signals.due <= now:
            for peer, report in self._signals.reports(self._duty.site):
                self.ports.send(Packet(report, size_of(report) + self._mac, peer.endpoint))
            brake = self._signals.brake(self._duty.site, now)
            if brake is not None and not self._duty.is_quiet(now):
                self._tell(brake)
                self._counts["brakes_sent"] += 1
        self._serve(now)

    def resume(self, now: float) -> None:
        """Send again, after the network took no more."""
        self._is_full = False
        self._serve(now)

    def _tell(self, message: Presence | Brake) -> None:
        """Multicast a message of the tunnel's own in its site."""
        self.ports.send(Packet(message, size_of(message) + self._mac, self._group))

    # What is carried

    def _on_multicast(self, message: Message, source: Address, now: float) -> None:
        """Put a packet of the site into the ring."""
        counts, without = self._counts, self._options.without
        if without != "tunnels" and self._duty.is_tunnel(source, now):
            counts["loops_cut_tunnels"] += 1
            return
        parcel = read_parcel(message, self._is_authenticated)
        if parcel is None:
            counts["datagrams_refused"] += 1
        elif self._duty.is_quiet(now):
            counts["packets_left"] += 1
        elif not self._is_new(parcel, now) and without != "memory":
            counts["loops_cut_memory"] += 1
        elif HEADER + self._mac + parcel.size > LARGEST:
            counts["packets_oversized"] += 1
        else:
            if parcel.sender is not None:
                self._signals.heard(parcel.sender, parcel.sequence)
            self._enqueue(_Waiting(parcel, self._duty.site, self._options.hops, None))

    def _on_datagram(self, carried: Carried, peer: Peer, now: float) -> None:
        """Take a datagram of a peer: multicast what it carries, and pass it on if it has hops left."""
        counts, without = self._counts, self._options.without
        self._signals.came(peer, carried.sequence, carried.requests_reports, now)
        parcel = read_parcel(carried.message, self._is_authenticated)
        counts["datagrams_received"] += 1
        counts["bytes_in"] += 0 if parcel is None else HEADER + self._mac + parcel.size
        if parcel is None or carried.group != self._group_bytes:
            counts["datagrams_refused"] += 1
        elif (carried.site == self._duty.site or carried.hops < 1) and without != "site":
            counts["loops_cut_site"] += 1
        elif self._duty.is_quiet(now):
            counts["packets_left"] += 1
        elif not self._is_new(parcel, now) and without != "memory":
            counts["loops_cut_memory"] += 1
        else:
            if len(self._home) < self._options.ring:
                self._home.append(parcel)
            else:
                counts["ring_dropped"] += 1
            if carried.hops > 1:
                self._enqueue(_Waiting(parcel, carried.site, carried.hops - 1, peer))

    def _is_new(self, parcel: Parcel, now: float) -> bool:
        """Remember a packet; return whether it was not carried before."""
        if parcel.sender is None:
            return self._feedback.add(parcel.key, now, self._grtt)
        self._grtt = rtt_seconds(parcel.grtt)
        return self._content.add(parcel.key, now, CONTENT_MEMORY)

    def _enqueue(self, waiting: _Waiting) -> None:
        if len(self._ring) < self._options.ring:
            self._ring.append(waiting)
            self._signals.waiting(len(self._ring))
        else:
            self._counts["ring_dropped"] += 1
            self._signals.waiting(self._options.ring)

    # What is sent

    def _serve(self, now: float) -> None:
        """Send what waits, as processor and pace allow; packets for this site first, since no pace limits them."""
        while now >= self._free_at:
            if self._home:
                self._multicast(self._home.popleft(), now)
            elif self._ring and not self._is_full and now >= self._clear:
                self._send(self._ring.popleft(), now)
            else:
                break
        self._schedule(now)

    def _multicast(self, parcel: Parcel, now: float) -> None:
        self._work(now)
        self._counts["packets_returned"] += 1
        self.ports.send(Packet(parcel.message, parcel.size, self._group))

    def _send(self, waiting: _Waiting, now: float) -> None:
        """Send a packet to every peer but the one it came from."""
        parcel, counts = waiting.parcel, self._counts
        size = HEADER + self._mac + parcel.size
        self._work(now)
        counts["packets_carried"] += 1
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        carried = Carried(*(waiting.site, self._sequence, waiting.hops, self._group_bytes, parcel.message), self._options.brake)
        for peer in self._peers:
            if peer is not waiting.without:
                counts["datagrams_sent"] += 1
                peer.backlog.sent += 1
                counts["bytes_out"] += size
                self._is_full |= bool(self.ports.send(Packet(carried, size, peer.endpoint)))
        if self._options.pace:
            self._clear = max(self._clear, now) + size / self._options.pace

    def _work(self, now: float) -> None:
        """Spend the processor time of a packet; it is sent afterwards."""
        if self._options.work:
            self.ports.work(self._options.work)
            self._free_at = now + self._options.work

    def _schedule(self, now: float) -> None:
        """Set the deadline."""
        due = min(self._duty.due, self._signals.due)
        if self._home:
            due = min(due, max(now, self._free_at))
        elif self._ring and not self._is_full:
            due = min(due, max(now, self._free_at, self._clear))
        self._due(due)

    # Statistics

    def counts(self) -> dict[str, int]:
        """Return what was carried and returned, and what was not, by reason."""
        lost = sum(peer.meter.lost for peer in self._peers)
        return {**self._counts, "datagrams_lost": lost}

    def counters(self) -> Mapping[str, float]:
        """Return the counters for a registry: the ring, packets both ways, packets dropped, bytes both ways."""
        counts = self._counts
        dropped = counts["ring_dropped"] + counts["packets_oversized"]
        return {
            "ring_used": len(self._ring),
            "ring_size": self._options.ring,
            "carried": counts["packets_carried"],
            "received": counts["packets_returned"],
            "dropped": dropped,
            "bytes_out": counts["bytes_out"],
            "bytes_in": counts["bytes_in"],
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the packets that wait, and those remembered."""
        return {
            "packets in the ring": (len(self._ring), self._options.ring),
            "packets for the site": (len(self._home), self._options.ring),
            "remembered packets": (len(self._content) + len(self._feedback), 2 * MOST_REMEMBERED),
        }

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the tunnel, of its ring, and of each peer."""
        labels = {"role": "tunnel", "state": "quiet" if self._duty.is_quiet(now) else "serving"}
        peers = [Snapshot("peer", peer.node.name, {"datagrams_lost": peer.meter.lost}) for peer in self._peers]
        return Snapshot("session", "", self.counts(), labels, (*peers, *buffers(self.held())))
