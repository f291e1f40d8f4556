"""Whole emulations: Mininet hosts, bridges, rates, losses, one process for each host, results."""

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
from emu.plan import plan_emulation
from protocols.errors import UsageError
from protocols.hosting import Host, Program
from tests.emu.number_protocol import PORT, NumberCodec, QuiescentReceiver, ReceivingProgram, SendingProgram
from tests.emu.unprivileged import NOBODY, run_unprivileged
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
    """Return a star; attributes are as in a scenario."""
    return Star.model_validate({"receivers": receivers, **attributes}).build()


def numbers(report: NodeReport) -> list[int]:
    """Return the numbers a receiver recorded."""
    assert report.error is None, report.error
    assert report.result is not None
    received: list[int] = report.result["numbers"]
    return received


def test_every_host_receives_the_group_and_results_are_returned() -> None:
    programs: dict[str, Program] = {"sender": SendingProgram(300, 2000), "r1": ReceivingProgram(), "r3": ReceivingProgram()}
    began = time.monotonic()
    run = play(star(3), programs)
    assert time.monotonic() - began < 10
    assert run.over
    assert set(run.nodes) == {"sender", "r1", "r3"}
    assert numbers(run.nodes["r1"]) == numbers(run.nodes["r3"]) == list(range(300))
    sender = run.nodes["sender"]
    assert sender.result == {"sent": 300, "fulls": 0, "received": 0}
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
def test_several_switches_forward_the_group_to_every_host(topology: Topology) -> None:
    programs: dict[str, Program] = {name: ReceivingProgram() for name in topology.hosts if name != "sender"}
    run = play(topology, programs | {"sender": SendingProgram(50, 2000)})
    for name in programs:
        assert numbers(run.nodes[name]) == list(range(50))


@pytest.fixture(scope="module")
def lossy() -> Emulation:
    """Send 20,000 packets in batches of 40 over links that lose 10 %."""
    topology = Star.model_validate({"receivers": 3, "link": {"down": {"loss": "10%"}}}).build()
    programs: dict[str, Program] = {
        "sender": SendingProgram(20_000, 20_000, burst=40),
        **{f"r{i}": QuiescentReceiver() for i in (1, 2, 3)},
    }
    return play(topology, programs, until=programs)


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_the_measured_loss_is_the_configured_loss(lossy: Emulation, name: str) -> None:
    total, p = 20_000, 0.1
    lost = total - len(numbers(lossy.nodes[name]))
    # Binomial: the standard error is 42 packets, 0.2 % of all.
    assert abs(lost - total * p) < 4 * sqrt(total * p * (1 - p))


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_packets_of_a_batch_are_lost_independently(lossy: Emulation, name: str) -> None:
    total, p = 20_000, 0.1
    received = [-1, *numbers(lossy.nodes[name]), total]
    runs = [after - before - 1 for before, after in pairwise(received) if after - before > 1]
    # Lengths of runs of independent losses are geometric: mean 1 / (1 - p), standard error 0.008 for about 1800 runs. If
    # batches were lost as a whole, the mean would be 40.
    mean, error = 1 / (1 - p), sqrt(p) / (1 - p) / sqrt(len(runs))
    assert abs(sum(runs) / len(runs) - mean) < 4 * error


def test_links_lose_independently_of_each_other(lossy: Emulation) -> None:
    total, p = 20_000, 0.1
    lost = [set(range(total)) - set(numbers(lossy.nodes[name])) for name in ("r1", "r2")]
    # Both lose a packet with probability p * p: 200 of 20,000, standard error 14.
    assert abs(len(lost[0] & lost[1]) - total * p * p) < 4 * sqrt(total * p * p * (1 - p * p))


def test_the_result_says_what_impaired_each_link(lossy: Emulation) -> None:
    assert [item["link"] for item in lossy.impairments] == ["s1-r1", "s1-r2", "s1-r3"]
    for item in lossy.impairments:
        assert item["loss"] == pytest.approx(0.1, abs=1e-9)
        assert item["loss_by"] == "cbpf"


@pytest.mark.timed
def test_a_link_keeps_its_rate_and_its_queue_drops_the_excess() -> None:
    rate, queue, total = 20e6 / 8, 50, 2000
    topology = star(1, trunk={"rate": "20Mbit", "queue": queue})
    run = play(topology, {"sender": SendingProgram(total, 2500), "r1": ReceivingProgram()}, duration=3)
    received = numbers(run.nodes["r1"])
    result = run.nodes["r1"].result
    assert result is not None
    # 2500 packets per second offered, 1442 bytes each on the link: 1733.7 per second go through.
    # At most 7 packets more, the burst of the bucket, and those that pass if a busy machine reads the first packet 10 ms
    # late; fewer when its timers are late.
    passed = result["seconds"] * rate / 1442
    assert 0.9 * passed <= len(received) <= passed + 1 + 7 + 0.01 * rate / 1442
    # Drop-tail: the queue fills before the first packet is lost, in (queue + 1) / (2500 - 1734) s; with half or twice the queue
    # it would be half or twice as long. A busy machine sends late, and then faster.
    first_lost = next(number for number, got in enumerate(received) if number != got)
    assert first_lost == pytest.approx((queue + 1) * 2500 / (2500 - rate / 1442), rel=0.45)
    assert run.impairments == [
        {"link": "sender-s1", "rate": rate, "queue": queue, "rate_by": "tbf + pfifo"},
        {"link": "s1-sender", "rate": rate, "queue": queue, "rate_by": "tbf + pfifo"},
    ]


@pytest.mark.timed
def test_a_run_ends_at_its_duration() -> None:
    run = play(star(1), {"sender": SendingProgram(10_000, 100), "r1": ReceivingProgram()}, duration=0.3)
    assert not run.over
    assert 0.3 <= run.elapsed < 2
    assert 20 <= len(numbers(run.nodes["r1"])) <= 35


class FailingProgram(ReceivingProgram):
    """A program that fails at its start or 20 ms later."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self._how = how

    def start(self, host: Host) -> None:
        """Schedule the failure."""
        super().start(host)
        if self._how == "at once":
            raise UsageError("never began")
        host.later(0.02, self._end)

    def _end(self) -> None:
        if self._how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ZeroDivisionError("by accident")


def test_a_node_that_dies_is_reported_and_the_others_finish() -> None:
    programs: dict[str, Program] = {f"r{i}": FailingProgram(how) for i, how in enumerate(("killed", "raises", "at once"), 1)}
    run = play(star(4), programs | {"sender": SendingProgram(200, 2000), "r4": ReceivingProgram()})
    assert run.over
    assert run.nodes["r1"].error == "died by signal 9"
    assert "ZeroDivisionError: by accident" in (run.nodes["r2"].error or "")
    assert run.nodes["r3"].error == "never began"
    assert numbers(run.nodes["r4"]) == list(range(200))


def test_concurrent_emulations_are_independent() -> None:
    runs: dict[int, Emulation] = {}

    def one(seed: int) -> None:
        runs[seed] = play(
            star(2), {"sender": SendingProgram(500 * seed, 2000), "r1": ReceivingProgram(), "r2": ReceivingProgram()}, seed=seed
        )

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
def test_attributes_the_kernel_can_not_emulate_are_named_with_their_link(attributes: dict[str, Any], words: str) -> None:
    plan = plan_emulation(star(2, **attributes))
    assert plan.unsupported_by_kernel == words
    in_user_space = [cable for cable in plan.cables if cable.down.user is not None]
    # Both directions of such a link, and no other link.
    assert len(in_user_space) == (0 if not words else 1 if "trunk" in attributes else 2)
    assert all(cable.up.user is not None for cable in in_user_space)


def test_keyed_losses_are_never_the_kernels() -> None:
    topology = star(2, trunk={"rate": "1Mbit"}, link={"down": {"loss": "1%"}})
    plan = plan_emulation(topology, seed=7, keyed=True)
    assert plan.unsupported_by_kernel == "link s1-r1: keyed losses"
    assert [shape.user is None for shape in plan.shapes] == [True, True, False, False, False, False]
    assert not any(shape.threshold for shape in plan.shapes)


def test_exact_rates_are_never_the_kernels() -> None:
    topology = star(2, trunk={"rate": "1Mbit"}, link={"down": {"loss": "1%"}})
    plan = plan_emulation(topology, exact=True, netem="unseeded")
    assert plan.unsupported_by_kernel == "link sender-s1: exact rate"
    assert [shape.user is not None for shape in plan.shapes] == [True, True, False, False, False, False]


def test_programs_need_existing_hosts() -> None:
    with pytest.raises(UsageError, match="'r9' is no host"):
        play(star(2), {"r9": ReceivingProgram()})
    with pytest.raises(UsageError, match="at least one"):
        play(star(2), {})


@pytest.mark.timed
def test_an_emulation_needs_no_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("all other tests run without root already")
    topology = star(2, link={"rate": "50Mbit", "down": {"loss": "20%"}})

    def work() -> list[Any]:
        # Without root a socket keeps about 90 packets, 0.2 s, while its program waits for a processor.
        run = play(topology, {"sender": SendingProgram(1000, 500), "r1": ReceivingProgram(), "r2": ReceivingProgram()})
        return [os.getuid(), len(numbers(run.nodes["r1"])), run.impairments]

    uid, received, impairments = run_unprivileged(work)
    assert uid == NOBODY
    assert len(impairments) == 4
    # 1000 packets with 20 % loss: standard error 13.
    assert abs(received - 800) < 4 * 13
