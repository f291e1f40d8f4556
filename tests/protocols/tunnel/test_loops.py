"""Tunnels in any mesh: a packet reaches each site that can be reached, none comes home, and every loop ends."""

from collections import deque
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.recorder import Recorder
from protocols.admin.node import Node
from protocols.machine import Group
from protocols.tunnel import Tunnel, TunnelOptions
from protocols.tunnel.messages import Opaque

PORT = 7001
CUTS = ("nothing", "site", "tunnels", "memory")


@dataclass(frozen=True)
class Mesh:
    """Tunnels by the index of their site; `links` are pairs that know each other."""

    sites: tuple[int, ...]
    links: frozenset[tuple[int, int]]
    hops: int
    are_strangers: bool
    """Whether tunnels of one site take it for different ones, so that all of them serve."""
    without: str

    def peers(self, own: int) -> list[int]:
        """Return whom a tunnel knows."""
        return [b if a == own else a for a, b in sorted(self.links) if own in (a, b)]


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Draw a mesh of two to six tunnels."""
    sites = tuple(draw(st.lists(st.integers(0, 3), min_size=2, max_size=6)))
    pairs = [(a, b) for a in range(len(sites)) for b in range(a)]
    chosen = draw(st.sets(st.sampled_from(pairs)))
    links = frozenset((b, a) for a, b in chosen)
    return Mesh(sites, links, draw(st.integers(1, 4)), draw(st.booleans()), draw(st.sampled_from(CUTS)))


class World:
    """Tunnels whose packets arrive at once, and what each site receives from its tunnels."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.ports = [Recorder() for _ in mesh.sites]
        self.heard: dict[int, list[bytes]] = {site: [] for site in mesh.sites}
        self.tunnels = [self._tunnel(number) for number in range(len(mesh.sites))]
        self.delivered = 0
        self.settle(0.0)

    def _tunnel(self, number: int) -> Tunnel:
        mesh, site = self.mesh, self.mesh.sites[number]
        options = TunnelOptions(
            hops=mesh.hops, site=10 + number if mesh.are_strangers else 10 + site, without=mesh.without, hello=100.0
        )
        tunnel = Tunnel(self.ports[number], number + 1, Group(f"site {site}"), options, known_as="all")
        tunnel.update_peers([Node(peer, str(peer), 0, f"10.0.0.{peer}", PORT, "all") for peer in mesh.peers(number)])
        tunnel.start(0.0)
        return tunnel

    def say(self, site: int, data: bytes, now: float) -> None:
        """Multicast a packet of a host of a site."""
        for number, other in enumerate(self.mesh.sites):
            if other == site:
                self.tunnels[number].receive(Opaque(data), ("10.1.0.1", 1), Group(f"site {site}"), now)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Deliver what tunnels send until nothing is left."""
        for tunnel in self.tunnels:
            if tunnel.deadline <= now:
                tunnel.wake(now)
        queue: deque[int] = deque(range(len(self.tunnels)))
        while queue:
            number = queue.popleft()
            packets, self.ports[number].packets = self.ports[number].packets, []
            for packet in packets:
                self.delivered += 1
                assert self.delivered < 5000, "a loop does not end"
                queue.extend(self._deliver(number, packet.message, packet.to, now))

    def _deliver(self, sender: int, message: object, to: object, now: float) -> list[int]:
        source, site = (f"10.0.0.{sender}", 40_000), self.mesh.sites[sender]
        if isinstance(to, Group):
            if isinstance(message, Opaque):
                self.heard[site].append(message.data)
            near = [number for number, other in enumerate(self.mesh.sites) if other == site and number != sender]
        else:
            near = [number for number in range(len(self.mesh.sites)) if (f"10.0.0.{number}", PORT) == to]
        for number in near:
            self.tunnels[number].receive(message, source, to, now)  # type: ignore[arg-type]
        return near


@given(meshes())
@settings(max_examples=300, deadline=None)
def test_every_loop_ends_and_nothing_comes_home(mesh: Mesh) -> None:
    world = World(mesh)
    for number, site in enumerate(sorted(set(mesh.sites))):
        data = b"packet %d" % number
        world.say(site, data, 1.0 + number)
        copies = {other: heard.count(data) for other, heard in world.heard.items()}
        if mesh.without == "nothing":
            assert copies[site] == 0, "a packet came home"
            assert all(count <= mesh.sites.count(other) for other, count in copies.items())
        if not mesh.are_strangers and mesh.without == "nothing":
            assert all(count <= 1 for count in copies.values()), "a site hears a packet twice"


def test_sites_that_all_know_each_other_hear_everything_once() -> None:
    sites = (0, 1, 2, 0)
    links = frozenset((a, b) for a in range(4) for b in range(a + 1, 4))
    world = World(Mesh(sites, links, 1, are_strangers=False, without="nothing"))
    for number in range(3):
        world.say(number, b"from %d" % number, 1.0 + number)
    assert world.heard == {site: [b"from %d" % other for other in range(3) if other != site] for site in range(3)}


def test_a_packet_passes_as_many_tunnels_as_it_may() -> None:
    for hops, reached in ((1, 1), (2, 2), (3, 3)):
        world = World(Mesh((0, 1, 2, 3), frozenset({(0, 1), (1, 2), (2, 3)}), hops, are_strangers=False, without="nothing"))
        world.say(0, b"packet", 1.0)
        assert sum(map(bool, world.heard.values())) == reached
