"""With keyed losses, Mininet and the simulator lose the same packets."""

from typing import Any

import pytest

from experiments.compare.twin.worlds import observe
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import ConfigError

BURSTS = {"model": "gilbert-elliott", "burst": 4, "gap": 36}


def scenario(protocol: str, **link: Any) -> Scenario:
    """Return a scenario with a file of 1 MB on a lossy LAN."""
    settings = {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "robust": 5, "parity": 8}
    others = {"name": protocol, "rate": "5Mbit"}
    data = {
        "name": "keyed",
        "topology": {"kind": "star", "receivers": 3, "trunk": {"rate": "100Mbit"}, "link": link},
        "protocol": settings if protocol == "norm" else others,
        "workload": {"kind": "file", "from": "sender", "size": "1MB"},
        "duration": "30s",
    }
    return parse(data, "FILE")


@pytest.mark.emu
@pytest.mark.parametrize(
    ("protocol", "link"),
    [
        ("norm", {"down": {"loss": "5%"}}),
        ("norm", {"delay": "5ms", "up": {"loss": "20%"}, "down": {"loss": BURSTS, "duplicate": "5%", "corrupt": "2%"}}),
        ("n2", {"rate": "20Mbit", "loss": "5%"}),
    ],
    ids=["independent", "bursts", "arq"],
)
def test_both_worlds_lose_the_same_first_transmissions(protocol: str, link: dict[str, Any]) -> None:
    requested = scenario(protocol, **link)
    simulated, emulated = observe(requested, "sim"), observe(requested, "emu")
    assert simulated.result.completed
    assert emulated.result.completed
    assert simulated.lost is not None
    assert emulated.lost is not None
    assert {name for name in simulated.lost if simulated.lost[name]} == {"s1-r1", "s1-r2", "s1-r3"}
    assert dict(simulated.lost) == dict(emulated.lost)
    assert all(len(lost) > 10 for lost in simulated.lost.values())


@pytest.mark.emu
def test_a_result_has_the_link_counters_and_whether_links_kept_up() -> None:
    requested = scenario("norm", down={"loss": BURSTS})
    result = run(requested, "emu")
    health, rows = result.metrics["health"], {row["link"]: row for row in result.metrics["impairments"]}
    assert health["healthy"] is (health["reasons"] == [])
    assert health["released"] > 3 * 700
    assert rows["s1-r1"]["loss_by"] == "user-space link"
    assert rows["s1-r1"]["lost"] > 10
    assert rows["sender-s1"]["rate_by"] == "tbf + pfifo"
    # Without keyed losses the identities of lost packets are not recorded.
    assert "dropped_first" not in result.metrics


def test_an_unknown_choice_is_refused() -> None:
    star = {"kind": "star", "receivers": 1}
    work = {"kind": "file", "from": "sender", "size": "1kB"}
    with pytest.raises(ConfigError, match=r"emu\.losses: .*'some'"):
        parse(
            {"name": "a", "topology": star, "protocol": {"name": "norm"}, "workload": work, "emu": {"losses": "some"}}, "FILE"
        )
