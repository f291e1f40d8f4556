"""Whole emulations with links in user space: delays, realised losses of every method, and what is refused."""

import os
from itertools import pairwise
from math import sqrt
from statistics import median
from typing import Any

import networkx as nx
import pytest

from emu.launch import Emulation, emulate
from protocols.errors import UnsupportedError
from tests.emu.nobody import as_nobody
from tests.emu.plain import PORT, NumberCodec, Patient, Speaking
from topologies.channels import Bernoulli, GilbertElliott
from topologies.generators import Star
from topologies.spec import LinkSpec, NodeSpec, Topology

pytestmark = pytest.mark.emu


def play(topology: Topology, total: int, rate: float, *, burst: int = 1, size: int = 1400, keyed: bool = False) -> Emulation:
    """The sender counts, everybody else listens."""
    listeners = {name: Patient() for name in topology.hosts if name != "sender"}
    run = emulate(
        topology,
        {"sender": Speaking(total, rate, burst=burst, size=size), **listeners},
        codec=NumberCodec,
        port=PORT,
        duration=60,
        over=lambda finished: len(finished) == len(topology.hosts),
        seed=1,
        keyed=keyed,
    )
    assert all(node.error is None for node in run.nodes.values())
    return run


def result_of(run: Emulation, name: str) -> dict[str, Any]:
    """What a host reported."""
    result = run.nodes[name].result
    assert result is not None
    return result


@pytest.mark.serial
def test_packets_come_after_the_delay_of_their_way() -> None:
    topology = Star.model_validate({"receivers": 2, "trunk": {"delay": "20ms"}, "link": {"delay": "5ms"}}).build()
    run = play(topology, 200, 400)
    for name in ("r1", "r2"):
        result = result_of(run, name)
        assert result["numbers"] == list(range(200))
        # The sender begins at time 0, and its own timers may be late, never early.
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
    """100,000 packets of a sender that hands the kernel 40 at a time: lost by the kernel, in user space, in bursts."""
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
    return play(Topology(graph), TOTAL, 20_000, burst=40, size=100)


def lost(run: Emulation, name: str) -> int:
    """Packets that the link to this host lost; what the host itself was too slow for is not the link's."""
    return TOTAL - len(result_of(run, name)["numbers"]) - run.nodes[name].faults["receive_drops"]


def crowded(run: Emulation) -> int:
    """Packets that a busy machine may have lost besides, nobody knows on which link."""
    return int(run.health["kernel_drops"] + run.health["overflow"])


@pytest.mark.parametrize("name", ["kernel", "user"])
def test_a_loss_below_a_percent_is_realised_by_every_method(lossy: Emulation, name: str) -> None:
    p = LOSSES[name]
    # 500 of 100,000; the standard error is 22.
    assert abs(lost(lossy, name) - TOTAL * p) < 4 * sqrt(TOTAL * p * (1 - p)) + crowded(lossy)


def test_losses_in_bursts_are_realised(lossy: Emulation) -> None:
    p, mean = LOSSES["bursts"], 4
    # Bursts of mean length 4 make the number of losses scatter by sqrt(2 * 4 - 1) more than independent ones do.
    assert abs(lost(lossy, "bursts") - TOTAL * p) < 4 * sqrt(TOTAL * p * (2 * mean - 1)) + crowded(lossy)


@pytest.mark.parametrize("name", ["kernel", "user"])
def test_independent_losses_stay_so_behind_a_sender_of_batches(lossy: Emulation, name: str) -> None:
    numbers = [-1, *result_of(lossy, name)["numbers"], TOTAL]
    runs = [after - before - 1 for before, after in pairwise(numbers) if after - before > 1]
    p = LOSSES[name]
    # Of a batch lost as a whole there would be 40 in a run. 0.2: where the receiver was too slow it lost a few in a row itself.
    assert sum(runs) / len(runs) < 1 / (1 - p) + 0.2


def test_results_tell_what_does_the_losing_and_how_much_it_did(lossy: Emulation) -> None:
    rows = {row["link"]: row for row in lossy.impairments}
    assert rows["s1-kernel"]["loss_by"] == "cbpf"
    assert rows["s1-user"]["loss_by"] == rows["s1-bursts"]["loss_by"] == "user-space link"
    assert TOTAL - crowded(lossy) <= rows["s1-user"]["offered"] <= TOTAL
    assert abs(rows["s1-user"]["lost"] - lost(lossy, "user")) <= crowded(lossy)


def test_without_rights_links_in_user_space_are_refused_by_link_and_reason() -> None:
    if os.geteuid() != 0 or os.stat("/dev/net/tun").st_mode & 0o006:
        pytest.skip("needs a user who may not open /dev/net/tun, and root to become one")

    def refused() -> str:
        try:
            play(Star.model_validate({"receivers": 1, "link": {"delay": "5ms"}}).build(), 1, 1)
        except UnsupportedError as error:
            return str(error)
        return "nothing was refused"

    wanted = "link s1-r1: delay 5ms: links in user space need TAP devices, and /dev/net/tun refuses (Permission denied)"
    assert as_nobody(refused).startswith(wanted)


def test_a_link_that_can_not_keep_up_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    # So few frames wait in front of it that a batch of 40 is too many.
    monkeypatch.setattr("emu.tap_link.QUEUE", 3)
    run = play(Star.model_validate({"receivers": 1, "trunk": {"delay": "1ms"}}).build(), 2000, 10_000, burst=40)
    heard = len(result_of(run, "r1")["numbers"])
    assert heard < 2000
    assert run.health["overflow"] > 0
    assert not run.health["healthy"]
    assert run.health["reasons"][0].startswith(f"{run.health['overflow']} packets dropped in front of links in user space")
