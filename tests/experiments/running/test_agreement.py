"""Tunnels agree on who they are within two periods of the registry and a round trip, after one was killed or cut off."""

from functools import partial
from pathlib import Path

import pytest

from experiments.running.run import run
from experiments.running.simulate import simulate
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load
from protocols.composite import CompositeMachine
from protocols.rng import Rng, key_of
from protocols.tunnel.registered import RegisteredTunnel
from sim.fault_shim import FaultShim
from sim.network import Network
from sim.watch import WatchedNetwork, Watcher

READY = find_scenario(Path("fjm2-registry"))
TUNNELS = ("g1.host", "g2.host", "g3.host")
PERIOD, RTT, DOWN = 1.0, 0.02, 1.0
"""Seconds: the registry's period, between two sites, and for which a tunnel is down."""
STEP = 0.01


def peers_of(network: Network, host: str) -> set[object] | None:
    """Return the addresses to which a tunnel carries; None while it is down."""
    machine = network.host(host).machine
    if isinstance(machine, FaultShim):
        machine = machine.inner
    if isinstance(machine, CompositeMachine):
        (component,) = machine.components
        assert component.machine is not None
        machine = component.machine
    return {peer.endpoint for peer in machine.tunnel._peers} if isinstance(machine, RegisteredTunnel) else None


class AgreementWatcher(Watcher):
    """Notes for how long after each of `times` tunnels do not know each other; `span` is how long it looks, in seconds."""

    def __init__(self, times: list[float], span: float) -> None:
        self._times, self._span = times, span
        self.lasted: list[float] = []

    def begin(self, network: WatchedNetwork) -> None:
        """Look at the network in steps."""
        self.lasted = [0.0] * len(self._times)
        for number, at in enumerate(self._times):
            for step in range(1, round(self._span / STEP)):
                network.later(at + step * STEP, partial(self._look, network, number, step * STEP))

    def _look(self, network: Network, number: int, after: float) -> None:
        lists = [peers_of(network, name) for name in TUNNELS]
        known = [peers for peers in lists if peers is not None]
        everybody = set().union(*known)
        # Each has all but itself.
        if len(known) != len(TUNNELS) or len(everybody) != len(TUNNELS) or any(len(peers) != 2 for peers in known):
            self.lasted[number] = after


def kills(begins: list[float]) -> str:
    entries = (f"{{at: {at}s, crash: {host}, for: {DOWN}s}}" for at, host in zip(begins, TUNNELS, strict=True))
    return f"faults=[{', '.join(entries)}]"


@pytest.mark.parametrize("lease", ["1s", "10s"])
def test_sites_agree_after_each_tunnel_was_killed(lease: str) -> None:
    lasted = []
    for seed in range(1, 4):
        draw = Rng(key_of(seed, "kills"))
        begins = [round(2.5 + 5 * turn + draw.uniform(), 3) for turn in range(3)]
        watcher = AgreementWatcher([at + DOWN for at in begins], span=2.5)
        sets = (kills(begins), f"nodes.a.lease={lease}", "workload.0.until=15s", "workload.0.rate=20/s", "duration=40s")
        result = simulate(load(READY, sets, seed=seed), [watcher])
        # Messages that were under way are late, and none is lost.
        assert result.metrics["messages"]["lost"] == 0
        assert result.violations == []
        lasted += watcher.lasted
    assert max(lasted) <= 2 * PERIOD + RTT
    # They did not agree all the time, so that there was something to check.
    assert max(lasted) > 0


@pytest.mark.parametrize("lasts", [5.0, 13.5, 19.0])
def test_sites_agree_after_a_partition_that_is_longer_than_the_lease(lasts: float) -> None:
    """With longer and longer pauses of a client, as those of TCP are, it takes 2.3 s and 2.6 s after the longer partitions."""
    begins = 3.1
    watcher = AgreementWatcher([begins + lasts], span=4.0)
    faults = f"faults=[{{at: {begins}s, partition: [[g3.host], rest], for: {lasts}s}}]"
    simulate(load(READY, [faults, "nodes.a.lease=4s", "workload.0.until=3s", "duration=30s"], seed=1), [watcher])
    assert 0 < watcher.lasted[0] <= 2 * PERIOD + RTT


@pytest.mark.emu
@pytest.mark.serial
def test_sites_agree_after_each_tunnel_was_killed_in_mininet() -> None:
    """What waits longest is published as a tunnel dies; it comes when sites agree again, and its repair was asked for."""
    sets = (kills([3.0, 6.0, 9.0]), "workload.0.until=12s", "duration=30s")
    result = run(load(READY, sets), "emu")
    assert result.metrics["messages"]["lost"] == 0
    assert result.violations == []
    assert result.messages is not None
    for row in result.messages["subscriptions"]:
        assert row["latency_max"] < DOWN + 2 * PERIOD + RTT
