"""Files by the broker in scenarios: in both worlds, compared with other protocols, under faults, and what is refused."""

from typing import Any

import pytest

from experiments.compare.comparison import collate, compare, variants
from experiments.running.emulate import emulate_scenario
from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.scenario import parse
from experiments.search.search import search
from protocols.broker.framing import BODY_LIMIT
from protocols.errors import ConfigError


def plain(where: str = "r3", loss: float = 0.02, **changes: Any) -> dict[str, Any]:
    """Return a scenario that sends four files to three receivers by a broker on a host."""
    link = {"rate": "20Mbit", "delay": "2ms", "queue": 100, "down": {"loss": loss}}
    return {
        "name": "broker-files",
        "topology": {"kind": "star", "receivers": 3, "link": link},
        "protocol": {"name": "broker", "keep": "1s"},
        "nodes": {where: {"role": "broker"}},
        "workload": [{"kind": "file", "size": "50kB", "count": 3}, {"kind": "file", "size": 0, "at": "2s"}],
        "duration": "60s",
        **changes,
    }


def check(result: Result) -> None:
    assert result.completed
    assert [(row.name, row.objects) for row in result.receivers] == [(name, 4) for name in ("r1", "r2", "r3")]
    assert result.messages is None


@pytest.mark.parametrize("where", ["r3", "sender"])
@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_files_arrive_in_the_simulator(where: str, wire: str) -> None:
    result = simulate(parse(plain(where, wire=wire), "test"))
    check(result)
    assert result.metrics["servers"][f"broker {where}"]["copies_sent"] == 12


@pytest.mark.emu
def test_files_arrive_in_mininet() -> None:
    result = emulate_scenario(parse(plain(), "test"))
    check(result)
    assert result.metrics["faults"] == {}
    assert result.metrics["packets"]["ack"] == 12


def test_the_broker_is_compared_with_protocols_that_need_none() -> None:
    scenario = parse(plain(), "test")
    chosen = variants(scenario, ["broker", "norm", "fjm2", "bus"], {})
    found = collate(scenario.name, compare(chosen, 2))
    assert found.completed == {"broker": 2, "norm": 2, "fjm2": 2, "bus": 2}
    octets = {name: sum(filter(None, values["bytes_sent"])) for name, values in found.values.items()}
    assert octets["broker"] > 2 * octets["norm"]


def test_no_fault_but_a_crash_keeps_a_file_from_a_receiver() -> None:
    assert search(plain(), "test", runs=15, seed=1, complete=True) is None


@pytest.mark.parametrize("host", ["r3", "sender", "r1"])
def test_files_arrive_after_a_crash(host: str) -> None:
    check(simulate(parse(plain(faults=[{"at": "50ms", "crash": host, "for": "300ms"}]), "test")))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": {}}, "nobody takes the role 'broker', which protocol broker needs for workload.0"),
        ({"nodes": {"r3": {"role": "sender"}}}, "nodes.r3.role: value 'sender' is not allowed; hosts take this role by the"),
        ({"nodes": {"r3": {"run": "activemq"}}}, "nodes.r3.run: value 'activemq' is not allowed with a workload of kind file"),
        ({"workload": [{"size": BODY_LIMIT + 1}]}, f"workload.0.size: value {BODY_LIMIT + 1} is not allowed; .* {BODY_LIMIT}"),
        ({"protocol": {"name": "broker", "keep": "2h"}}, "protocol.keep: value '2h' is not allowed; a duration from 0s to 1h"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse(plain(**change), "test")
    assert "\n" not in str(caught.value)
