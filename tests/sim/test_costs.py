"""Limits on the cost of the simulator, in numbers that do not depend on the machine it runs on."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases import CASES, LINK, OURS, run
from benchmarks.compiled import check
from benchmarks.layers import LAYERS, measure_layer
from benchmarks.simulator import check_same, storm
from benchmarks.yardsticks import Measure
from protocols.registry import file_protocols, protocol
from tests.sim.stored import ROOT


def lossless(receivers: int) -> dict[str, Any]:
    """A star without losses."""
    return {"kind": "star", "receivers": receivers, "trunk": LINK, "link": LINK}


def measured(call: str) -> float:
    """Return the result of a function of the benchmarks in a process of its own, without the memory of other tests."""
    code = f"from benchmarks import memory, simulator; print({call})"
    return float(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def test_a_packet_costs_less_than_two_simpy_events_for_any_number_of_receivers() -> None:
    for receivers in (10, 500):
        known = run(OURS, CASES["parity"].scenario(receivers, 300))
        # An arrival that a receiver loses is an event, and so is the next; others are repairs, and timers of such receivers.
        assert known.events / known.packets < 2


def test_a_packet_without_losses_costs_hardly_any_simpy_event() -> None:
    known = run(OURS, replace(CASES["parity"], topology=lossless).scenario(5, 2000))
    assert known.events / known.packets < 0.3


@pytest.mark.parametrize("case", ["n1", "n2"])
def test_a_repair_of_a_unit_costs_one_simpy_event_as_new_units_do(case: str) -> None:
    known = run(OURS, CASES[case].scenario(50, 500))
    # A NACK is two or three events; of the other packets, nearly each is an arrival at receivers that it concerns.
    assert known.events / known.packets < 1.9


@pytest.mark.parametrize(("case", "most"), [("parity", 1700), ("plain", 1950), ("n1", 1550), ("n2", 1920)])
def test_a_receiver_takes_little_memory_in_every_protocol(case: str, most: int) -> None:
    """Bytes per receiver are 1.5 times those with 10,000 receivers, because of memory that does not depend on the number."""
    assert measured(f"simulator.bytes_per_receiver(1000, 130, case={case!r})") < most


@pytest.mark.parametrize(
    ("name", "most"), [("fjm", 1180), ("fjm2", 1560), ("bus", 1400), ("datagram", 1100), ("distributor", 1350)]
)
def test_a_subscriber_takes_little_memory_in_every_messaging_protocol(name: str, most: int) -> None:
    assert measured(f"memory.bytes_per_subscriber({name!r}, 1000)") < most


@pytest.mark.parametrize(("name", "most"), [("relay", 6400), ("broker", 7300)])
def test_a_client_of_a_server_takes_little_memory_with_both_ends_of_its_connection(name: str, most: int) -> None:
    assert measured(f"memory.bytes_per_subscriber({name!r}, 300)") < most


def test_a_storm_is_a_few_hundred_simpy_events() -> None:
    known = storm(3000)
    assert known["events"] <= 500
    assert known["nacks"] <= 15
    assert known["deliveries"] > 3000 * 64


SMALL = """
import json, sys
from dataclasses import replace
from benchmarks import simulator

for name in ("parity", "a"):
    simulator.CASES[name] = replace(simulator.CASES[name], lengths={10: (40, 20), 20: (20, 20)})
cases = simulator.measure_cases(["parity", "a"], None, lambda line: print(line, file=sys.stderr))
print(json.dumps(simulator.measure_all(cases, memory_receivers=50, storm_receivers=1000)))
"""
"""The benchmark at sizes at which it is over in seconds."""


def test_the_benchmark_prints_what_it_promises() -> None:
    # A process of its own, since it collects garbage before it measures, and much of that is left by other tests.
    told = subprocess.run([sys.executable, "-c", SMALL], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)
    assert set(found["ratio_textbook"]) == {"10", "20"}
    assert set(found["ratio_bare_loop"]) == {"20"}
    assert set(found["bytes_per_receiver"]) == set(found["bytes_per_receiver_of_8"]) == {"50"}
    assert set(found["storm_1k"]) == set(found["storm_1k_ill_set"]) == {"events", "nacks", "deliveries", "ratio_bare_loop"}
    assert set(found["cases"]) == {"parity", "a"}
    for case in found["cases"].values():
        assert set(case) == {"10", "20"}
        for cell in case.values():
            assert set(cell) == {"ratio_textbook", "us", "events_per_packet"}
    assert len(told.stderr.splitlines()) == 4


def test_the_benchmark_covers_every_protocol() -> None:
    # Those that carry files as messages are measured as messaging: benchmarks.fjm2.
    messaging = {name for name in file_protocols() if protocol(name).guarantees is not None}
    assert {case.scenario(10, 1).protocol.spec.name for case in CASES.values()} == set(file_protocols()) - messaging


def test_a_case_whose_runs_differ_is_refused() -> None:
    with pytest.raises(AssertionError, match="different runs"):
        check_same(Measure(1.0, deliveries=1000, packets=100), Measure(1.0, deliveries=1030, packets=100))


def test_a_folder_without_a_compiled_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no compiled build"):
        check(tmp_path)


def test_a_back_off_that_believes_in_half_the_round_trip_time_lets_many_more_ask() -> None:
    assert storm(3000, well_set=False)["nacks"] > 5 * storm(3000)["nacks"]


def test_every_layer_of_the_fast_wing_delivers_the_same_packets() -> None:
    deliveries = {measure_layer(layer, 0.01, 20, 40).deliveries for layer in LAYERS}
    assert len(deliveries) == 1
