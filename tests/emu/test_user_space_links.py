"""Emulations with user-space links: delays, realised losses of every method, refusals."""

import os
from itertools import pairwise
from math import sqrt
from statistics import median
from typing import Any

import networkx as nx
import pytest

from emu.launch import Emulation, emulate
from protocols.errors import UnsupportedError
from tests.emu.number_protocol import PORT, NumberCodec, QuiescentReceiver, SendingProgram
from tests.emu.unprivileged import run_unprivileged
from topologies.channels import Bernoulli, GilbertElliott
from topologies.generators import Star
from topologies.spec import UDP_OVERHEAD, LinkSpec, NodeSpec, Topology

pytestmark = pytest.mark.emu


def play(
    topology: Topology,
    total: int,
    rate: float,
    *,
    burst: int = 1,
    size: int = 1400,
    keyed: bool = False,
    exact: bool = False,
) -> Emulation:
    """Send numbers to all other hosts."""
    receivers = {name: QuiescentReceiver() for name in topology.hosts if name != "sender"}
    run = emulate(
        topology,
        {"sender": SendingProgram(total, rate, burst=burst, size=size), **receivers},
        codec=NumberCodec,
        port=PORT,
        duration=60,
        over=lambda finished: len(finished) == len(topology.hosts),
        seed=1,
        keyed=keyed,
        exact=exact,
    )
    assert all(node.error is None for node in run.nodes.values())
    return run


def result_of(run: Emulation, name: str) -> dict[str, Any]:
    """Return what a host reported."""
    result = run.nodes[name].result
    assert result is not None
    return result


def test_a_link_without_a_queue_carries_packets_one_at_a_time() -> None:
    topology = Star.model_validate({"receivers": 1, "link": {"rate": "10Mbit", "queue": 0}}).build()
    run = play(topology, 100, 200)
    # A packet is dropped that comes, on a busy machine, while the one before is transmitted, in 1 of 5 ms.
    assert len(result_of(run, "r1")["numbers"]) >= 80
    rows = {row["link"]: row for row in run.impairments}
    assert (rows["s1-r1"]["queue"], rows["s1-r1"]["rate_by"]) == (0, "user-space link")


@pytest.mark.serial
def test_with_exact_rates_a_packet_arrives_when_all_of_it_was_transmitted() -> None:
    topology = Star.model_validate({"receivers": 1, "link": {"rate": "2Mbit"}}).build()
    run = play(topology, 100, 100, exact=True)
    result = result_of(run, "r1")
    delays = [at - number / 100 for number, at in zip(result["numbers"], result["times"], strict=True)]
    needed = (1400 + UDP_OVERHEAD) * 8 / 2e6
    # A packet that finds the kernel's token bucket full leaves at once.
    assert min(delays) >= needed
    assert median(delays) < needed + 0.01
    rows = {row["link"]: row for row in run.impairments}
    assert (rows["s1-r1"]["rate"], rows["s1-r1"]["rate_by"]) == (250_000, "user-space link")


@pytest.mark.serial
def test_packets_arrive_after_the_delay_of_their_path() -> None:
    topology = Star.model_validate({"receivers": 2, "trunk": {"delay": "20ms"}, "link": {"delay": "5ms"}}).build()
    run = play(topology, 200, 400)
    for name in ("r1", "r2"):
        result = result_of(run, name)
        assert result["numbers"] == list(range(200))
        # The sender starts at time 0, and its timers may be late, never early.
        delays = [at - number / 400 for number, at in enumerate(result["times"])]
        assert min(delays) >= 0.025
        assert median(delays) < 0.025 + 0.01
    rows = {row["link"]: row for row in run.impairments}
    assert (rows["sender-s1"]["delay"], rows["sender-s1"]["delay_by"]) == (0.02, "user-space link")
    assert [rows[link]["offered"] for link in ("sender-s1", "s1-r1", "s1-r2")] == [200, 200, 200]
    assert run.health["released"] >= 600
    assert run.health["cpu_s"] > 0


LOSSES = {"kernel": 0.005, "user": 0.005, "bursts": 0.05}
TOTAL = 100_000


@pytest.fixture(scope="module")
def lossy() -> Emulation:
    """Send 100,000 packets in batches of 40 over links with losses by the kernel, in user space, and in bursts."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("sender", node=NodeSpec())
    graph.add_node("s1", node=NodeSpec("switch"))
    burst = GilbertElliott.model_validate({"burst": 4, "gap": 76})
    losses = {
        "sender": LinkSpec(),
        "kernel": LinkSpec(loss=Bernoulli(p=LOSSES["kernel"])),
        "user": LinkSpec(loss=Bernoulli(p=LOSSES["user"]), delay=0.001),
        "bursts": LinkSpec(loss=burst),
    }
    for name, spec in losses.items():
        graph.add_node(name, node=NodeSpec())
        graph.add_edge("s1", name, link=spec)
        graph.add_edge(name, "s1", link=LinkSpec())
    return play(Topology(graph), TOTAL, 8_000, burst=40, size=100)


def lost(run: Emulation, name: str) -> int:
    """Return the packets the link to this host lost, without those dropped by the host's full socket buffer."""
    return TOTAL - len(result_of(run, name)["numbers"]) - run.nodes[name].faults["receive_drops"]


def dropped_elsewhere(run: Emulation) -> int:
    """Return the packets that a busy machine dropped besides, on an unknown link."""
    return int(run.health["kernel_drops"] + run.health["overflow"])


@pytest.mark.parametrize("name", ["kernel", "user"])
def test_kernel_and_user_space_have_the_configured_loss_below_one_percent(lossy: Emulation, name: str) -> None:
    p = LOSSES[name]
    # 500 of 100,000; the standard error is 22.
    assert abs(lost(lossy, name) - TOTAL * p) < 4 * sqrt(TOTAL * p * (1 - p)) + dropped_elsewhere(lossy)


def test_losses_in_bursts_have_the_configured_rate(lossy: Emulation) -> None:
    p, mean = LOSSES["bursts"], 4
    # With bursts of mean length 4 the standard error is sqrt(2 * 4 - 1) times that of independent losses.
    assert abs(lost(lossy, "bursts") - TOTAL * p) < 4 * sqrt(TOTAL * p * (2 * mean - 1)) + dropped_elsewhere(lossy)


@pytest.mark.parametrize("name", ["kernel", "user"])
def test_losses_are_independent_for_a_sender_of_batches(lossy: Emulation, name: str) -> None:
    # In order: on a busy machine the kernel lets batches overtake each other now and then.
    numbers = [-1, *sorted(result_of(lossy, name)["numbers"]), TOTAL]
    runs = [after - before - 1 for before, after in pairwise(numbers) if after - before > 1]
    p = LOSSES[name]
    # A batch lost as a whole would be a run of 40, so 500 lost packets would be 12 runs.
    dropped = lossy.nodes[name].faults["receive_drops"] + dropped_elsewhere(lossy)
    assert sum(runs) < (1 / (1 - p) + 0.2) * len(runs) + dropped


def test_results_say_what_lost_packets_and_how_many(lossy: Emulation) -> None:
    rows = {row["link"]: row for row in lossy.impairments}
    assert rows["s1-kernel"]["loss_by"] == "cbpf"
    assert rows["s1-user"]["loss_by"] == rows["s1-bursts"]["loss_by"] == "user-space link"
    assert TOTAL - dropped_elsewhere(lossy) <= rows["s1-user"]["offered"] <= TOTAL
    assert abs(rows["s1-user"]["lost"] - lost(lossy, "user")) <= dropped_elsewhere(lossy)


def test_user_space_links_without_permission_are_refused_with_link_and_reason() -> None:
    if os.geteuid() != 0 or os.stat("/dev/net/tun").st_mode & 0o006:
        pytest.skip("needs a user who may not open /dev/net/tun, and root to become one")

    def refused() -> str:
        try:
            play(Star.model_validate({"receivers": 1, "link": {"delay": "5ms"}}).build(), 1, 1)
        except UnsupportedError as error:
            return str(error)
        return "nothing was refused"

    expected = "link s1-r1: delay 5ms: user-space links need TAP devices, and /dev/net/tun refuses (Permission denied)"
    assert run_unprivileged(refused).startswith(expected)


def test_a_link_that_does_not_keep_up_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # The device's queue is too short for a batch of 40.
    monkeypatch.setattr("emu.tap_link.QUEUE", 3)
    run = play(Star.model_validate({"receivers": 1, "trunk": {"delay": "1ms"}}).build(), 2000, 10_000, burst=40)
    received = len(result_of(run, "r1")["numbers"])
    assert received < 2000
    assert run.health["overflow"] > 0
    assert not run.health["healthy"]
    assert run.health["reasons"][0].startswith(f"packets dropped: {run.health['overflow']} by full queues of TAP devices")


def test_packets_dropped_while_devices_are_set_up_are_not_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emu.network.overflow", lambda pid, name: 5)
    run = play(Star.model_validate({"receivers": 1, "trunk": {"delay": "1ms"}}).build(), 20, 100)
    assert run.health["overflow"] == 0


def test_the_kernel_loses_a_datagram_in_fragments_once() -> None:
    # Three fragments on devices of 1500 bytes. Lost one by one they would be 66 % of the datagrams.
    total, p = 1000, 0.3
    run = play(Star.model_validate({"receivers": 1, "link": {"down": {"loss": p}}}).build(), total, 1000, size=4000)
    lost_here = total - len(result_of(run, "r1")["numbers"])
    assert abs(lost_here - total * p) < 5 * sqrt(total * p * (1 - p)) + run.health["kernel_drops"]
    assert [row["loss_by"] for row in run.impairments] == ["cbpf"]
