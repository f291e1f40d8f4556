"""Fault injection: what is received where, when, and by which clock."""

from collections.abc import Callable
from functools import partial
from math import inf

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UsageError
from sim.changing import make_changeable
from sim.faults import Faults, Undo
from sim.host import SimHost
from sim.idle import IDLE
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from topologies.generators import Chain, Star

TICKS = [round(0.1 * number, 6) for number in range(10)]


class Scene:
    """Probes on every host of a star; `talker` says its number 0 to 9 at 0, 0.1, ... 0.9 seconds."""

    def __init__(self, talker: str = "sender", delay: str = "10ms", network: Network | None = None) -> None:
        written = {"kind": "star", "receivers": 3, "link": {"delay": delay}}
        self.network = network or Network(Star.model_validate(written).build(), seed=1)
        self.faults = Faults(self.network)
        script = [(when, number, 100, GROUP, number) for number, when in enumerate(TICKS)]
        self.probes = {
            name: probe_on(self.network, name, script if name == talker else ()) for name in self.network.topology.hosts
        }

    def during(self, begin: float, end: float, verb: Callable[[], Undo | None]) -> "Scene":
        """Do something for a while."""
        undo: list[Undo | None] = []
        self.network.later(begin, lambda: undo.append(verb()))
        self.network.later(end, lambda: _all(undo))
        return self

    def heard(self, name: str) -> list[int]:
        """Return the numbers a host received."""
        self.network.run()
        return [number for _, number, _ in self.probes[name].heard]

    def times(self, name: str) -> list[float]:
        """Return when it received them."""
        self.network.run()
        return [when for when, _, _ in self.probes[name].heard]


def _all(undo: list[Undo | None]) -> None:
    for back in undo:
        if back is not None:
            back()


ALL = list(range(10))
OUTSIDE = [0, 1, 2, 6, 7, 8, 9]


# -- links that change --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["strict", "fast"])
@pytest.mark.parametrize("receivers", [1, 3])
def test_packets_that_wait_are_sent_at_the_changed_rate_of_a_link(engine: str, receivers: int) -> None:
    # A packet takes 0.1 s on the line, and 0.05 s while the rate is doubled, or 0.4 s while it is a quarter.
    link = {"down": {"rate": "91360bit", "delay": "1s"}}
    network = Network(Star.model_validate({"receivers": receivers, "link": link}).build(), seed=1, engine=engine)
    make_changeable(network, "s1", "r")
    scene = Scene("nobody", network=network)
    scene.network.later(0.0, partial(scene.probes["sender"].say_all, range(8), 1100))
    for begin, end, rate in ((0.22, 0.37, 22840), (0.47, 0.8, 2855)):
        scene.during(begin, end, partial(scene.faults.change, "s1", "r", rate=rate))
    network.run()
    for name in network.topology.hosts[1:]:
        probe = scene.probes[name]
        assert [number for _, number, _ in probe.heard] == list(range(8))
        assert [when - 1 for when, _, _ in probe.heard] == pytest.approx([0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.9, 1.0])


# -- partition and hold -------------------------------------------------------------------------------------------------


def test_a_partition_keeps_sides_apart_and_leaves_others_alone() -> None:
    scene = Scene()
    scene.during(0.25, 0.55, lambda: scene.faults.partition([["sender"], ["r1", "r2"]]))
    assert (scene.heard("r1"), scene.heard("r2"), scene.heard("r3")) == (OUTSIDE, OUTSIDE, ALL)
    assert scene.faults.dropped == 6


def test_hosts_of_one_side_reach_each_other_and_rest_is_all_others() -> None:
    scene = Scene("r1")
    scene.during(0.25, 0.55, lambda: scene.faults.partition([["r1", "r2"], "rest"]))
    assert (scene.heard("sender"), scene.heard("r2"), scene.heard("r3")) == (OUTSIDE, ALL, OUTSIDE)


@pytest.mark.parametrize(("talker", "listener", "heard"), [("r1", "r2", OUTSIDE), ("r2", "r1", ALL)])
def test_a_partition_may_be_one_way(talker: str, listener: str, heard: list[int]) -> None:
    scene = Scene(talker)
    scene.during(0.25, 0.55, lambda: scene.faults.partition([["r1"], "rest"], oneway=True))
    assert scene.heard(listener) == heard


def test_what_is_held_comes_late_all_at_once_and_in_order() -> None:
    scene = Scene()
    scene.during(0.25, 0.555, lambda: scene.faults.hold([["sender"], ["r1"]]))
    assert scene.heard("r1") == scene.heard("r2") == ALL
    assert scene.times("r1")[3:6] == [0.555] * 3
    assert scene.times("r2")[3] == pytest.approx(0.31)


def test_partitions_may_overlap_and_be_undone_twice() -> None:
    scene = Scene()
    first = scene.faults.partition([["sender"], ["r1"]])
    second = scene.faults.partition([["sender"], ["r1", "r2"]])
    for when, undo in ((0.25, first), (0.26, first), (0.55, second)):
        scene.network.later(when, undo)
    assert (scene.heard("r1"), scene.heard("r2")) == ([6, 7, 8, 9], [6, 7, 8, 9])


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ([["r1"], ["r1"]], "'r1' is named twice"),
        ([["r1"]], "two sides"),
        (["rest", "rest"], "two sides"),
        ([["r9"], "rest"], "'r9' is no host"),
    ],
)
def test_sides_without_sense_are_refused(sides: list[str | list[str]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Scene().faults.partition(sides)


# -- links ---------------------------------------------------------------------------------------------------------------


def test_a_link_that_is_down_carries_nothing() -> None:
    scene = Scene(network=Network(Chain.model_validate({"kind": "chain", "switches": 2}).build(), seed=1))
    scene.during(0.25, 0.55, lambda: scene.faults.cut("s1", "s2"))
    assert (scene.heard("r1_1"), scene.heard("r2_1")) == (ALL, OUTSIDE)
    assert scene.faults.dropped == 3


@pytest.mark.parametrize(("end", "unreached"), [("r1", ["r1"]), ("r", ["r1", "r2", "r3"])])
def test_the_link_of_a_host_or_of_every_member_of_a_group_can_be_down(end: str, unreached: list[str]) -> None:
    scene = Scene()
    scene.during(0.25, 0.55, lambda: scene.faults.cut("s1", end))
    assert [name for name in ("r1", "r2", "r3") if scene.heard(name) == OUTSIDE] == unreached


def test_nodes_without_a_link_can_not_lose_it() -> None:
    with pytest.raises(UsageError, match="no link"):
        Scene(network=Network(Chain.model_validate({"kind": "chain", "switches": 3}).build(), seed=1)).faults.cut("s1", "s3")


# -- hosts ---------------------------------------------------------------------------------------------------------------


def test_a_crashed_host_receives_and_sends_nothing_and_restarts_as_new() -> None:
    scene = Scene()
    fresh: list[Probe] = []

    def start(host: SimHost) -> None:
        fresh.append(probe_on(scene.network, "r1"))

    scene.network.later(0.25, lambda: scene.faults.crash("r1"))
    scene.network.later(0.55, lambda: scene.faults.restart("r1", start))
    assert scene.heard("r1") == [0, 1, 2]
    assert [number for _, number, _ in fresh[0].heard] == [6, 7, 8, 9]
    assert scene.faults.counts == {"crash": 1, "restart": 1}


def test_a_host_that_restarts_gets_nothing_of_a_group_before_its_new_machine_joins() -> None:
    scene = Scene()
    fresh: list[Probe] = []

    def start(host: SimHost) -> None:
        fresh.append(probe_on(scene.network, "r1", listen=False))
        scene.network.later(0.75, lambda: host.join(GROUP))

    scene.network.later(0.25, lambda: scene.faults.crash("r1"))
    scene.network.later(0.35, lambda: scene.faults.restart("r1", start))
    assert scene.heard("r1") == [0, 1, 2]
    assert [number for _, number, _ in fresh[0].heard] == [8, 9]


def test_a_crashed_sender_is_silent() -> None:
    scene = Scene()
    scene.network.later(0.25, lambda: scene.faults.crash("sender"))
    assert scene.heard("r1") == [0, 1, 2]
    assert scene.network.host("sender").machine is IDLE


def test_a_slow_reader_lags_and_then_loses() -> None:
    scene = Scene(delay="0ms")
    scene.during(0.0, inf, lambda: scene.faults.slow("r1", 0.34, 2))
    # Two may wait, the one being read included: 2 and 3 come before 0.34, 5 and 6 before 0.68, 8 and 9 before 1.02.
    assert scene.times("r1") == pytest.approx([0.34, 0.68, 1.02, 1.36])
    assert (scene.heard("r1"), scene.heard("r2")) == ([0, 1, 4, 7], ALL)
    assert scene.faults.dropped == 6


def test_a_reader_that_gets_fast_again_reads_what_waits() -> None:
    scene = Scene(delay="0ms")
    scene.during(0.0, 0.5, lambda: scene.faults.slow("r1", 10.0, 64))
    assert scene.heard("r1") == ALL
    assert scene.times("r1")[:4] == [0.5] * 4


# -- clocks --------------------------------------------------------------------------------------------------------------


def test_a_fast_clock_makes_a_sender_hurry_and_the_machine_sees_its_own_time() -> None:
    scene = Scene(delay="0ms")
    scene.faults.drift("sender", 2.0)
    assert scene.times("r1") == pytest.approx([when / 2 for when in TICKS])
    assert scene.probes["sender"].woken == pytest.approx(TICKS)


def test_a_step_makes_what_is_overdue_happen_at_once() -> None:
    scene = Scene(delay="0ms")
    scene.network.later(0.25, lambda: scene.faults.step("sender", 0.3))
    assert scene.times("r1") == pytest.approx([0.0, 0.1, 0.2, 0.25, 0.25, 0.25, 0.3, 0.4, 0.5, 0.6])


def test_a_verb_of_the_application_sees_the_clock_of_its_host() -> None:
    scene = Scene()
    scene.faults.step("r1", 5.0)
    seen: list[float] = []
    scene.network.later(1.0, lambda: scene.network.host("r1").call(seen.append))
    scene.network.run()
    assert seen == [6.0]
    assert scene.network.host("r1").now == 1.0


# -- noise ---------------------------------------------------------------------------------------------------------------


def test_noise_fills_links_and_no_machine_receives_it() -> None:
    written = {"kind": "star", "receivers": 3, "link": {"rate": "80kbit", "queue": 2, "up": {"rate": "8Mbit"}}}
    scene = Scene(network=Network(Star.model_validate(written).build(), seed=1))
    scene.during(0.25, 0.55, lambda: scene.faults.storm("r3", 80_000.0, 500))
    assert set(OUTSIDE[:3]) <= set(scene.heard("r1")) < set(ALL)
    assert scene.network.traffic.packets["noise"] == 48
    assert scene.heard("r3") == ALL


def test_a_host_without_faults_is_what_it_was() -> None:
    scene = Scene()
    scene.faults.step("r1", 1.0)
    assert list(scene.network.fabric.fault_shims) == [scene.network.host("r1").place]
    assert scene.network.host("r1").machine is scene.network.fabric.fault_shims[scene.network.host("r1").place]


@pytest.mark.parametrize("protocol", ["n2", "norm", "srm"])
def test_a_host_that_starts_again_during_a_hold_gets_nothing_from_when_it_was_down(protocol: str) -> None:
    scenario = {
        "name": "hold",
        "topology": {"kind": "star", "receivers": 5, "link": {"rate": "10Mbit", "delay": "1ms"}},
        "protocol": {"name": protocol, "rate": "1Mbit"},
        "workload": {"kind": "file", "size": "30kB", "at": "500ms"},
        "faults": [
            {"at": "690ms", "crash": "r3", "for": "380ms"},
            {"at": "836ms", "hold": [["sender"], "rest"], "oneway": True, "for": "348ms"},
        ],
        "duration": "20s",
    }
    strict, fast = (run(parse({**scenario, "engine": engine}, "hold")) for engine in ("strict", "fast"))
    assert strict.fingerprint == fast.fingerprint
