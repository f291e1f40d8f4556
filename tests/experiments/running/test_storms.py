"""The counters of NACK implosion and repair storms, and the ready scenarios that show them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.running.storms import StormCounters
from experiments.scenario.scenario import load, parse
from sim.host import SimHost
from sim.network import Network
from tests.sim.probes import Note, Probe, probe_on
from topologies.generators import Star

READY = Path(__file__).parents[3] / "experiments" / "scenarios"


def storm(name: str, *sets: str) -> dict[str, Any]:
    """Run a ready scenario and return its metrics."""
    result = run(load(READY / f"{name}.yaml", sets))
    assert result.ok, name
    return result.metrics


def send(host: SimHost, identity: int | None) -> None:
    """Send a message from a probe now."""
    assert isinstance(host.machine, Probe)
    host.machine.say(0, identity=identity)


def test_counters_agree_with_the_messages_sent() -> None:
    network = Network(Star.model_validate({"kind": "star", "receivers": 2}).build(), seed=1)
    counters = StormCounters([0])
    network.observers.append(counters)
    for name in network.topology.hosts:
        probe_on(network, name)
    sender, receiver = (network.host(name) for name in ("sender", "r1"))
    # Identities 0 to 3, identity 1 twice more and 2 once more; a receiver sends a message in between.
    for when, identity in enumerate([0, 1, 2, None, 1, 3, 1, 2]):
        host = receiver if identity is None else sender
        network.later(when, partial(send, host, identity))
    network.later(8, partial(send, sender, None))
    network.run()
    plain = counters.plain(losses=2, duplicates=7)
    assert (plain["repairs"], plain["repair_multiplicity"], plain["duplicates"]) == (3, 1.5, 7)
    load = plain["load"]
    assert {kind: sum(load[kind]) for kind in ("content", "repairs", "feedback")} == {
        "content": 400,
        "repairs": 300,
        "feedback": 100,
    }
    assert load["bin"] == 0.125
    assert load["repairs"][int(6 / 0.125)] == 100
    assert Note.kind == "note"


def test_bins_double_in_width_and_keep_their_sums() -> None:
    counters = StormCounters([])
    host = Network(Star.model_validate({"kind": "star", "receivers": 1}).build(), seed=1).host("r1")
    for second in range(1000):
        counters.sent(float(second), host, Note(0), 10)
    load = counters.plain(losses=0, duplicates=0)["load"]
    assert load["bin"] == 16.0
    assert load["feedback"] == [160] * 62 + [80]


STAR: dict[str, Any] = {"kind": "star", "receivers": 40, "link": {"rate": "50Mbit", "delay": "3ms", "down": {"loss": "2%"}}}


@pytest.mark.parametrize(
    "chosen",
    [{"name": "norm"}, {"name": "norm", "parity": 0}, {"name": "a"}, {"name": "n1"}, {"name": "n2"}, {"name": "srm"}],
    ids=str,
)
def test_packets_that_the_fast_engine_tells_together_count_as_told_one_by_one(chosen: dict[str, Any]) -> None:
    size = 8_000 if chosen["name"] == "srm" else 300_000
    written = {"seed": 5, "protocol": chosen, "topology": STAR, "workload": {"from": "sender", "size": size}, "duration": "60s"}
    fast, strict = [run(parse(written | {"name": "s", "engine": engine}, "test")) for engine in ("fast", "strict")]
    assert fast.metrics["storm"] == strict.metrics["storm"]
    assert sum(fast.metrics["storm"]["load"]["content"]) >= size


@pytest.mark.parametrize("loss", ["0%", "2%"])
def test_acknowledgements_of_a_run_are_one_event_for_each_instant_and_link(loss: str) -> None:
    topology = {**STAR, "link": {**STAR["link"], "up": {"loss": loss}}}
    written = {"seed": 5, "protocol": {"name": "a"}, "topology": topology, "workload": {"from": "sender", "size": 300_000}}
    result = run(parse(written | {"name": "s", "duration": "60s"}, "test"))
    # Without losses there would be one event for each of 300 packets and the link behind, and those of timers.
    assert result.metrics["events"] < result.metrics["packets"]["ack"] / 2 > 5000


@pytest.mark.parametrize("receivers", [10, 1000])
def test_a_fitting_back_off_limits_the_nacks_of_a_shared_loss(receivers: int) -> None:
    metrics = storm("large/storm-shared-loss", f"topology.receivers={receivers}", f"protocol.gsize={10 * receivers}")
    # The number is independent of the group size; RFC 5401 expects a handful.
    assert 1 <= metrics["storm"]["requests"] <= 15
    assert (metrics["storm"]["losses"], metrics["storm"]["repairs"]) == (1, 1)
    assert metrics["nacks_suppressed"] == 10 * receivers - metrics["storm"]["requests"]


def test_a_back_off_set_too_short_makes_nearly_all_receivers_send_nacks() -> None:
    metrics = storm("storm-ill-set")
    assert metrics["storm"]["requests_per_loss"] > 180
    assert metrics["storm"]["repairs"] == 1


def test_unicast_nacks_are_never_suppressed_and_overflow_the_senders_link() -> None:
    metrics = storm("storm-unicast-nacks")
    assert metrics["storm"]["requests_per_loss"] == metrics["storm"]["requests"] == 500
    # One packet in service and a hundred in the queue; the only other lost packet is the original loss.
    assert metrics["nacks_received"] == 101
    assert metrics["storm"]["losses"] == 1 + 500 - 101


def test_a_slow_receiver_costs_the_whole_group() -> None:
    slow, alone = storm("storm-slow-receiver"), storm("storm-slow-receiver", "faults=[]")
    assert slow["storm"]["duplicates"] > 1000
    assert (alone["storm"]["duplicates"], alone["storm"]["time_to_quiet"]) == (0, None)
    assert slow["completion_time"] > 1.5 * alone["completion_time"]


def test_repairs_beyond_the_rate_of_the_trunk_are_lost_like_new_data() -> None:
    over, under = storm("storm-repairs"), storm("storm-repairs", "protocol.rate=7Mbit")
    assert over["storm"]["repair_multiplicity"] > 1.8
    assert over["completion_time"] > 2 * under["completion_time"]
    assert under["storm"]["losses"] == 0
