"""Limits on the cost of the simulator, in numbers that do not depend on the machine it runs on."""

import json
import subprocess
import sys

from benchmarks.layers import LAYERS, measure_layer
from benchmarks.simulator import bytes_per_receiver, ours, storm
from tests.sim.stored import ROOT

SMALL = "{10: 40, 20: 40}, memory_receivers=50, storm_receivers=1000, share=0.02"
"""Sizes at which the benchmark is over in seconds."""


def test_a_packet_costs_less_than_two_simpy_events_for_any_number_of_receivers() -> None:
    for receivers in (10, 500):
        known = ours(receivers, 300)
        # An arrival that somebody loses, and the next; the rest is repairs, and timers of receivers that lost something.
        assert known.events / known.packets < 2


def test_a_packet_without_losses_costs_hardly_any_simpy_event() -> None:
    known = ours(5, 2000, loss=0.0)
    assert known.events / known.packets < 0.3


def test_a_receiver_costs_less_than_4_kb() -> None:
    assert bytes_per_receiver(1000, 130) < 4096


def test_a_storm_is_a_few_hundred_simpy_events() -> None:
    known = storm(3000)
    assert known["events"] <= 500
    assert known["nacks"] <= 15
    assert known["deliveries"] > 3000 * 64


def test_the_benchmark_prints_what_it_promises() -> None:
    # A process of its own, since it collects garbage before it measures, and much of that is left by other tests.
    code = "import json; from benchmarks.simulator import measure_all as measure; print(json.dumps(measure(" + SMALL + ")))"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)
    assert set(found["ratio_textbook"]) == {"10", "20"}
    assert set(found["ratio_bare_loop"]) == {"20"}
    assert set(found["bytes_per_receiver"]) == {"50"}
    assert set(found["storm_1k"]) == set(found["storm_1k_ill_set"]) == {"events", "nacks", "deliveries", "ratio_bare_loop"}
    assert set(found["cases"]) == {"many senders", "cross traffic", "random tree", "multicast NACKs"}
    for case in found["cases"].values():
        assert set(case) == {"ns_per_delivery", "events_per_packet", "deliveries_per_packet", "ratio_bare_loop"}


def test_a_back_off_that_believes_in_half_the_round_trip_time_lets_many_more_ask() -> None:
    assert storm(3000, well_set=False)["nacks"] > 5 * storm(3000)["nacks"]


def test_every_layer_of_the_fast_wing_delivers_the_same_packets() -> None:
    deliveries = {measure_layer(layer, 0.01, 20, 40).deliveries for layer in LAYERS}
    assert len(deliveries) == 1
