"""A comparison states how long each protocol waits, and where NORM's initial GRTT does not suit the network."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.compare.comparison import collate, compare, variants
from experiments.compare.waiting import longest_wait, notes_on_waits, round_trip_time
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, load, parse

LAN = find_scenario("lan-file")
NAMES = ["norm", "a", "n1", "n2", "srm"]


def star(delay: Any, **protocol: Any) -> Scenario:
    link = {"rate": "10Mbit", "delay": delay}
    topology = {"kind": "star", "receivers": 2, "trunk": link, "link": link}
    given = {"name": "norm", "segment": 1208, "rate": "1Mbit"} | protocol
    return parse({"name": "star", "topology": topology, "protocol": given, "workload": {"size": "10kB"}}, "star")


def test_the_wait_follows_from_the_parameters_of_the_protocol() -> None:
    special: dict[str, dict[str, object]] = {"n2": {"window": "30ms"}, "srm": {"distance": "10ms"}, "norm": {"backoff": 2}}
    chosen = variants(load(LAN), NAMES, special)
    assert {name: longest_wait(each.protocol) for name, each in chosen.items()} == pytest.approx(
        {"norm": 0.5, "a": 0.25, "n1": 0.0, "n2": 0.03, "srm": 0.04}
    )


def test_the_round_trip_time_is_that_of_the_longest_path() -> None:
    # Two links each way of 20 ms, and 1250 bytes twice at 10 Mbit/s.
    assert round_trip_time(star("20ms")) == pytest.approx(0.082)
    jitter = {"model": "uniform", "least": "10ms", "most": "30ms"}
    assert round_trip_time(star(jitter)) == pytest.approx(0.082)


def test_a_grtt_that_is_long_for_the_network_is_pointed_out_with_a_value_that_suits() -> None:
    first, second = notes_on_waits(variants(load(LAN), ["norm", "n2"], {}))
    assert "norm 1s (backoff x grtt), n2 50ms (window); round-trip time of this network: 240us" in first
    # The round trip is 0.23 ms, and the least GRTT that can be set 1 ms.
    assert "norm starts with a GRTT of 250ms, 1084 times the round-trip time, and " in second
    assert "--with norm.grtt=1ms" in second


@pytest.mark.parametrize(("delay", "protocol"), [("20ms", {}), ("0ms", {"grtt": "4ms"}), ("0ms", {"backoff": 0})])
def test_a_grtt_that_suits_or_does_not_matter_is_not_pointed_out(delay: str, protocol: dict[str, Any]) -> None:
    scenario = star(delay, **protocol)
    assert len(notes_on_waits(variants(scenario, ["norm", "n1"], {}))) == 1


def test_with_the_value_for_the_network_norm_is_as_fast_as_the_others() -> None:
    scenario = load(LAN, ["workload.size=1MB"])
    times = {}
    for grtt in ("250ms", "1ms"):
        chosen = variants(scenario, ["norm", "n2"], {"norm": {"grtt": grtt}})
        values = collate(scenario.name, compare(chosen, 2)).values
        times[grtt] = {name: sum(value or 0.0 for value in row["completion_time"]) for name, row in values.items()}
    assert times["250ms"]["norm"] > 2 * times["250ms"]["n2"]
    assert times["1ms"]["norm"] < times["1ms"]["n2"]


def test_the_notes_stand_below_the_table_and_in_the_json(gossip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "lan-file", "--protocols", f"norm,{gossip}", "--runs", "1", "--set", "workload.size=20kB"]
    assert invoke([*command, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["notes"]) == 2
    assert "gossip" not in plain["notes"][0]
    # What gossip does not count is null, and has no difference.
    assert plain["values"]["gossip"]["repairs_sent"] == [None]
    assert "repairs_sent" not in plain["differences"]["gossip"]
    assert invoke(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.endswith(plain["notes"][1])
    assert "inf" not in text
