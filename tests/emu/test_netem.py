"""Links by netem, on a kernel that has it: `make test-netem` runs these tests under a user-mode kernel."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from emu.netem_qdisc import examine_netem, unsupported_by_netem
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import UnsupportedError
from topologies.generators import AnyTopology

BUILD: TypeAdapter[Any] = TypeAdapter(AnyTopology)


@pytest.fixture(scope="module", autouse=True)
def _kernel() -> None:
    try:
        if examine_netem() == "none":
            pytest.skip("this kernel has no netem")
    except UnsupportedError as error:
        pytest.skip(str(error))


def star(link: dict[str, Any]) -> dict[str, Any]:
    """Return a topology of two receivers behind such links."""
    return {"kind": "star", "receivers": 2, "trunk": {"rate": "10Mbit"}, "link": {"rate": "10Mbit", **link}}


def scenario(topology: dict[str, Any], **more: Any) -> Scenario:
    """Return a scenario: one file at 4 Mbit/s."""
    data = {
        "name": "netem",
        "topology": topology,
        "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "100ms", "robust": 10, **more},
        "workload": {"size": "1MB"},
    }
    return parse(data, "test")


def means(result: Any, link: str) -> dict[str, Any]:
    """Return what impaired the link, by the keys that end in _by."""
    (row,) = [row for row in result.metrics["impairments"] if row["link"] == link]
    return {key: value for key, value in row.items() if key.endswith("_by")}


def test_delay_and_loss_are_left_to_netem_and_reported() -> None:
    # A link with independent losses and a delay, and one with losses in bursts. netem's bursts also hit FLUSH, and its random
    # numbers may have no seed: a receiver that lost the end of the file loses ten FLUSHes after it with probability
    # 0.1 * 0.8^10, or 1 %, and forty with 1e-5.
    links: list[dict[str, Any]] = [
        {"ends": ["sender", "s1"]},
        {"ends": ["s1", "r1"], "delay": "20ms", "down": {"loss": "10%"}},
        {"ends": ["s1", "r2"], "down": {"loss": {"model": "gilbert-elliott", "burst": 5, "gap": 45}}},
    ]
    nodes = {"sender": {}, "s1": {"kind": "switch"}, "r1": {}, "r2": {}}
    topology = {"kind": "graph", "nodes": nodes, "links": [{**link, "rate": "10Mbit"} for link in links]}
    result = run(scenario(topology, robust=40), "emu")
    assert result.completed
    assert means(result, "s1-r1") == {"rate_by": "tbf + pfifo", "delay_by": "netem", "loss_by": "netem"}
    assert means(result, "s1-r2")["loss_by"] == "netem"
    # 715 segments and more at 10 %: one standard error is 1.1 %, and about three times that if lost in bursts of mean length 5.
    losses = {row.name: row.loss or 0.0 for row in result.receivers}
    assert losses["r1"] == pytest.approx(0.1, abs=4 * 0.011)
    # With 14 bursts expected, fewer than three are one case in 10,000.
    assert 0.01 < losses["r2"] < 0.1 + 4 * 0.033


def test_round_trips_take_the_delay_of_both_directions() -> None:
    result = run(scenario(star({"delay": "40ms"}), grtt="1s"), "emu")
    assert result.completed
    # The sender measures at least 80 ms.
    assert result.metrics["completion_time"] > 2.0 + 0.04


def test_keyed_losses_are_those_of_the_simulator() -> None:
    keyed = scenario(star({"delay": "5ms", "down": {"loss": "5%"}})).model_dump(by_alias=True) | {"emu": {"losses": "keyed"}}
    result = run(parse(keyed, "test"), "emu")
    assert result.completed
    assert means(result, "s1-r1")["loss_by"] == "user-space link"


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ({"delay": {"model": "pareto", "mean": "5ms", "least": "1ms", "shape": 3}}, "reorders"),
        ({"mtu": 1000}, "mtu"),
        ({"queue": {"model": "codel"}, "rate": "1Mbit"}, "codel"),
        ({"queue": 0, "rate": "1Mbit"}, "queue 0"),
        ({"queue": 0}, ""),
        ({"delay": "5ms", "down": {"loss": "1%"}}, ""),
    ],
)
def test_models_that_netem_approximates_are_not_left_to_it(link: dict[str, Any], reason: str) -> None:
    topology = BUILD.validate_python({"kind": "star", "receivers": 1, "link": link}).build()
    found = unsupported_by_netem(topology.link("s1", "r"))
    assert (reason in found) if reason else (found == "")
