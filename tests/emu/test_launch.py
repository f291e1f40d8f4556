"""Whole emulations: Mininet hosts, bridges, rates, losses, one process per host, results."""

import os
import signal
import threading
import time
from collections.abc import Iterable
from itertools import pairwise
from math import sqrt
from typing import Any

import pytest

from emu.launch import Emulation, NodeReport, emulate
from emu.node import Program
from emu.plan import plan
from protocols.errors import UsageError
from protocols.machine import Host
from tests.emu.nobody import NOBODY, as_nobody
from tests.emu.plain import PORT, Hearing, NumberCodec, Patient, Speaking
from topologies.generators import Chain, Lan, Star, Tree
from topologies.spec import Topology

pytestmark = pytest.mark.emu


def play(
    topology: Topology, programs: dict[str, Program], *, duration: float = 20, until: Iterable[str] = ("sender",), seed: int = 1
) -> Emulation:
    """Emulate until the programs on the hosts `until` are finished."""
    return emulate(
        topology,
        programs,
        codec=NumberCodec,
        port=PORT,
        duration=duration,
        over=frozenset(until).issubset,
        seed=seed,
    )


def star(receivers: int, **attributes: Any) -> Topology:
    """A star with attributes as a user writes them."""
    return Star.model_validate({"receivers": receivers, **attributes}).build()


def numbers(report: NodeReport) -> list[int]:
    """What a listener heard."""
    assert report.error is None, report.error
    assert report.result is not None
    heard: list[int] = report.result["numbers"]
    return heard


def test_every_host_hears_the_group_and_results_come_back() -> None:
    programs: dict[str, Program] = {"sender": Speaking(300, 2000), "r1": Hearing(), "r3": Hearing()}
    began = time.monotonic()
    run = play(star(3), programs)
    assert time.monotonic() - began < 10
    assert run.over
    assert set(run.nodes) == {"sender", "r1", "r3"}
    assert numbers(run.nodes["r1"]) == numbers(run.nodes["r3"]) == list(range(300))
    sender = run.nodes["sender"]
    assert sender.result == {"sent": 300, "fulls": 0, "heard": 0}
    assert sender.packets == {"counted": 300}
    assert sender.octets == {"counted": 420_000}
    assert all(not any(report.faults.values()) for report in run.nodes.values())
    assert all(report.cpu > 0 for report in run.nodes.values())
    assert run.impairments == []
    assert 0.15 <= run.elapsed < 5


@pytest.mark.parametrize(
    "topology",
    [
        Chain.model_validate({"switches": 3, "receivers": 1}).build(),
        Tree.model_validate({"depth": 2, "fanout": 2, "receivers": 1}).build(),
        Lan.model_validate({"receivers": 2}).build(),
    ],
    ids=["chain", "tree", "lan"],
)
def test_several_switches_carry_the_group_everywhere(topology: Topology) -> None:
    programs: dict[str, Program] = {name: Hearing() for name in topology.hosts if name != "sender"}
    run = play(topology, programs | {"sender": Speaking(50, 2000)})
    for name in programs:
        assert numbers(run.nodes[name]) == list(range(50))


@pytest.fixture(scope="module")
def lossy() -> Emulation:
    """20,000 packets of a sender that hands the kernel 40 at a time, over links with different losses."""
    topology = Star.model_validate({"receivers": 3, "link": {"down": {"loss": "10%"}}}).build()
    programs: dict[str, Program] = {"sender": Speaking(20_000, 20_000, burst=40), **{f"r{i}": Patient() for i in (1, 2, 3)}}
    return play(topology, programs, until=programs)


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_the_realised_loss_is_the_loss_asked_for(lossy: Emulation, name: str) -> None:
    total, p = 20_000, 0.1
    lost = total - len(numbers(lossy.nodes[name]))
    # Binomial: the standard error of the number of losses is 42 packets, 0.2 % of all.
    assert abs(lost - total * p) < 4 * sqrt(total * p * (1 - p))


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_packets_sent_in_one_call_are_lost_one_by_one(lossy: Emulation, name: str) -> None:
    total, p = 20_000, 0.1
    heard = [-1, *numbers(lossy.nodes[name]), total]
    runs = [after - before - 1 for before, after in pairwise(heard) if after - before > 1]
    # Runs of independent losses are geometric: mean 1 / (1 - p), standard error 0.008 for about 1800 runs. Were batches lost
    # as a whole, the mean would be 40.
    mean, error = 1 / (1 - p), sqrt(p) / (1 - p) / sqrt(len(runs))
    assert abs(sum(runs) / len(runs) - mean) < 4 * error


def test_links_lose_independently_of_each_other(lossy: Emulation) -> None:
    total, p = 20_000, 0.1
    lost = [set(range(total)) - set(numbers(lossy.nodes[name])) for name in ("r1", "r2")]
    # Both lose a packet with probability p * p: 200 of 20,000, standard error 14.
    assert abs(len(lost[0] & lost[1]) - total * p * p) < 4 * sqrt(total * p * p * (1 - p * p))


def test_what_does_the_impairing_is_told(lossy: Emulation) -> None:
    assert [item["link"] for item in lossy.impairments] == ["s1-r1", "s1-r2", "s1-r3"]
    for item in lossy.impairments:
        assert item["loss"] == pytest.approx(0.1, abs=1e-9)
        assert item["loss_by"] == "cbpf"


@pytest.mark.serial
def test_the_rate_of_a_link_is_kept_and_its_queue_drops_what_is_too_much() -> None:
    rate, queue, total = 20e6 / 8, 50, 2000
    topology = star(1, trunk={"rate": "20Mbit", "queue": queue})
    run = play(topology, {"sender": Speaking(total, 2500), "r1": Hearing()}, duration=3)
    heard = numbers(run.nodes["r1"])
    result = run.nodes["r1"].result
    assert result is not None
    # 2500 packets per second offered, 1442 bytes each on the link: 1733.7 per second go through.
    # Never more than 7 packets beyond that, which the bucket may save up, and what passes while a busy machine tells the
    # first of them 10 ms late; less when its timers are late.
    passed = result["seconds"] * rate / 1442
    assert 0.9 * passed <= len(heard) <= passed + 1 + 7 + 0.01 * rate / 1442
    # Drop-tail: the queue fills before the first packet is lost, in (queue + 1) / (2500 - 1734) s.
    first_lost = next(number for number, got in enumerate(heard) if number != got)
    assert first_lost == pytest.approx((queue + 1) * 2500 / (2500 - rate / 1442), abs=25)
    assert run.impairments == [
        {"link": "sender-s1", "rate": rate, "queue": queue, "rate_by": "tbf + pfifo"},
        {"link": "s1-sender", "rate": rate, "queue": queue, "rate_by": "tbf + pfifo"},
    ]


@pytest.mark.serial
def test_a_run_ends_at_its_duration() -> None:
    run = play(star(1), {"sender": Speaking(10_000, 100), "r1": Hearing()}, duration=0.3)
    assert not run.over
    assert 0.3 <= run.elapsed < 2
    assert 20 <= len(numbers(run.nodes["r1"])) <= 35


class Fragile(Hearing):
    """A program that comes to grief a moment after the beginning."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self._how = how

    def start(self, host: Host) -> None:
        """Plan the end."""
        super().start(host)
        if self._how == "at once":
            raise UsageError("never began")
        host.later(0.02, self._end)

    def _end(self) -> None:
        if self._how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ZeroDivisionError("by accident")


def test_a_node_that_dies_is_named_and_the_others_are_reported() -> None:
    programs: dict[str, Program] = {f"r{i}": Fragile(how) for i, how in enumerate(("killed", "raises", "at once"), 1)}
    run = play(star(4), programs | {"sender": Speaking(200, 2000), "r4": Hearing()})
    assert run.over
    assert run.nodes["r1"].error == "died by signal 9"
    assert "ZeroDivisionError: by accident" in (run.nodes["r2"].error or "")
    assert run.nodes["r3"].error == "never began"
    assert numbers(run.nodes["r4"]) == list(range(200))


def test_two_emulations_at_once_do_not_disturb_each_other() -> None:
    runs: dict[int, Emulation] = {}

    def one(seed: int) -> None:
        runs[seed] = play(star(2), {"sender": Speaking(500 * seed, 2000), "r1": Hearing(), "r2": Hearing()}, seed=seed)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, run in runs.items():
        assert numbers(run.nodes["r1"]) == numbers(run.nodes["r2"]) == list(range(500 * seed))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"trunk": {"down": {"delay": "10ms"}}}, "link sender-s1: delay 10ms"),
        ({"link": {"up": {"delay": "1s"}}}, "link r1-s1: delay 1s"),
        ({"link": {"loss": 1e-12}}, "link s1-r1: loss 1e-12"),
        ({"link": {"delay": {"model": "uniform", "least": 0, "most": 1}}}, "link s1-r1: delay uniform"),
        ({"link": {"queue": {"model": "codel"}}}, "link s1-r1: queue codel"),
        ({"link": {"mtu": 1500}}, "link s1-r1: mtu 1500"),
        ({"link": {"duplicate": "1%"}}, "link s1-r1: duplicate 1%"),
        ({"link": {"corrupt": "2%"}}, "link s1-r1: corrupt 2%"),
        ({"link": {"bit_errors": 1e-4}}, "link s1-r1: bit_errors 0.01%"),
        ({"link": {"loss": {"model": "periodic", "every": 5}}}, "link s1-r1: loss periodic"),
        ({"link": {"rate": "1Mbit", "queue": 5, "loss": "1%", "overhead": "ethernet"}}, ""),
        ({"link": {"loss": 2e-9}}, ""),
    ],
)
def test_what_the_kernel_can_not_do_is_named_by_link_and_key(attributes: dict[str, Any], words: str) -> None:
    planned = plan(star(2, **attributes))
    assert planned.beyond_kernel == words
    carried = [wire for wire in planned.wires if wire.down.user is not None]
    # Both directions of such a link, and no other link.
    assert len(carried) == (0 if not words else 1 if "trunk" in attributes else 2)
    assert all(wire.up.user is not None for wire in carried)


def test_with_keyed_losses_the_kernel_loses_nothing() -> None:
    topology = star(2, trunk={"rate": "1Mbit"}, link={"down": {"loss": "1%"}})
    planned = plan(topology, seed=7, keyed=True)
    assert planned.beyond_kernel == "link s1-r1: keyed losses"
    assert [shape.user is None for shape in planned.shapes] == [True, True, False, False, False, False]
    assert not any(shape.threshold for shape in planned.shapes)


def test_programs_live_on_hosts_of_the_topology() -> None:
    with pytest.raises(UsageError, match="'r9' is no host"):
        play(star(2), {"r9": Hearing()})
    with pytest.raises(UsageError, match="at least one"):
        play(star(2), {})


def test_an_emulation_needs_no_rights() -> None:
    if os.geteuid() != 0:
        pytest.skip("all other tests here run without rights already")
    topology = star(2, link={"rate": "50Mbit", "down": {"loss": "20%"}})

    def work() -> list[Any]:
        run = play(topology, {"sender": Speaking(1000, 2000), "r1": Hearing(), "r2": Hearing()})
        return [os.getuid(), len(numbers(run.nodes["r1"])), run.impairments]

    uid, heard, impairments = as_nobody(work)
    assert uid == NOBODY
    assert len(impairments) == 4
    # 1000 packets with 20 % loss: standard error 13.
    assert abs(heard - 800) < 4 * 13
