"""Every rule of the doctor applies where its scenario bites, and its advice heals it, measured in the simulator."""

import re
from math import inf
from typing import Any

import pytest

from experiments.doctor.examination import FORMAT, examine
from experiments.doctor.finding import Finding
from experiments.doctor.norm_rules import stream_buffer
from experiments.doctor.session_facts import sessions_of
from experiments.scenario.ready import ready_scenarios
from experiments.scenario.scenario import load, parse
from protocols.errors import UsageError
from protocols.norm import NormConfig
from protocols.stream import StreamSettings
from tests.experiments.doctor.rule_cases import CASES, RuleCase
from tests.sim.stream_sessions import StreamSession
from tests.tidy.tree import ROOT
from topologies.units import parse_size


def _finding(rule: str, data: dict[str, Any]) -> Finding | None:
    found = {finding.rule: finding for finding in examine(parse(data, rule)).findings}
    return found.get(rule)


@pytest.mark.parametrize(("link", "advised"), [("1Mbit", "874kbit"), ("900bit", "787bit"), ("1bit", "8bit")])
def test_a_rate_that_is_advised_is_one_that_is_allowed(link: str, advised: str) -> None:
    case = next(case for case in CASES if case.rule == "rate-above-link")
    data = case.data({"topology.link.rate": link})
    finding = _finding(case.rule, data)
    assert finding is not None
    assert finding.changes == {"protocol.rate": advised}
    assert examine(parse(case.data({"topology.link.rate": link, **finding.changes}), "advised"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_advice_of_a_rule_heals_a_scenario_in_which_it_bites(case: RuleCase) -> None:
    data = case.data()
    finding = _finding(case.rule, data)
    assert finding is not None
    assert finding.changes
    healed = case.data(finding.changes)
    assert _finding(case.rule, healed) is None
    before, after = case.measured(data), case.measured(healed)
    assert case.holds(before, after), f"{before} with {finding.value}, {after} with {dict(finding.changes)}"


@pytest.mark.parametrize(
    ("rule", "text", "changes"),
    [
        ("cache-stalls", "keeps 1 object at", {"protocol.cache_max": "1", "protocol.cache_min": "1"}),
        ("nacking-none", "more than 1 symbol,", {"protocol.auto_parity": "1"}),
        ("silent-below-loss", "more than 1 symbol,", {"protocol.auto_parity": "1"}),
        ("ttl-below-path", "to 1 host (r2_1),", {"workload.members": "[r2_1]"}),
    ],
)
def test_a_finding_about_a_single_thing_says_so_in_the_singular(rule: str, text: str, changes: dict[str, str]) -> None:
    case = next(case for case in CASES if case.rule == rule)
    finding = _finding(rule, case.data(changes))
    assert finding is not None
    assert text in finding.implies


@pytest.mark.parametrize(
    ("rule", "silence", "parity"),
    [("nacking-none", {"protocol.nacking": "none"}, None), ("silent-below-loss", {"protocol.feedback": "none"}, "156")],
)
def test_blocks_may_have_thousands_of_packets(rule: str, silence: dict[str, str], parity: str | None) -> None:
    large = {"protocol.fec": "2", "protocol.fec_m": "16", "protocol.block": "20000", "workload.size": "8MB"}
    case = next(case for case in CASES if case.rule == "silent-below-loss")
    finding = _finding(rule, case.data(large | {"protocol.feedback": "multicast"} | silence))
    assert finding is not None
    assert finding.changes.get("protocol.auto_parity") == parity


def test_every_rule_has_a_case() -> None:
    """The names of rules are read from the sources, so a rule without a case is found."""
    text = "".join(path.read_text() for path in (ROOT / "experiments" / "doctor").glob("*_rules.py"))
    names = set(re.findall(r'(?:Finding|_finding)\(\s*"([a-z-]+)"', text))
    assert names == {case.rule for case in CASES} | {"stream-buffer"}


def _stream_time(topology: dict[str, Any], settings: dict[str, Any], buffer: int) -> float:
    """Return when 99 % of a stream of 1 MB, written as fast as it takes it, are with all receivers."""
    scenario = parse(_stream_scenario(topology, settings), "stream")
    assert isinstance(scenario.protocol.config, NormConfig)
    session = StreamSession(scenario.build_topology(), scenario.protocol.config, StreamSettings(buffer))
    total = 1_000_000
    for part in range(100):
        session.write_at(0.001 * part, bytes(total // 100), "none")
    for tenth in range(1, 600):
        session.network.run(until=tenth / 10)
        if sum(sink.size >= 0.99 * total for sink in session.sinks.values()) == len(session.receivers):
            return tenth / 10
    return inf


def _stream_scenario(topology: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    protocol = {"name": "norm", **settings}
    return {"name": "stream", "topology": topology, "protocol": protocol, "workload": {"size": "1MB"}, "duration": "60s"}


def test_a_stream_with_a_buffer_below_rate_times_ten_grtt_stalls() -> None:
    topology = {"kind": "star", "receivers": 2, "link": {"rate": "100Mbit", "delay": "20ms"}}
    settings = {"rate": "10Mbit", "grtt": "100ms"}
    scenario = parse(_stream_scenario(topology, settings), "stream")
    facts, config = sessions_of(scenario)[0], scenario.protocol.config
    (finding,) = stream_buffer(config, facts, 100_000)
    assert "10 GRTT" in finding.implies
    better = parse_size(finding.changes["--stream-buffer"])
    assert not list(stream_buffer(config, facts, better))
    assert _stream_time(topology, settings, 100_000) > 4 * _stream_time(topology, settings, better)


def test_the_example_of_users_is_told_in_their_words() -> None:
    data = {
        "name": "slow",
        "topology": {"kind": "star", "receivers": 2},
        "protocol": {"name": "norm", "rate": "64kbit"},
        "workload": {"size": "10MB"},
    }
    finding = _finding("rate-below-duration", data)
    assert finding is not None
    assert finding.implies == "64kbit means 21.4 min for 10MB, and the run ends after 60 s"


def test_a_sound_scenario_has_no_findings() -> None:
    data = {
        "name": "sound",
        "topology": {"kind": "star", "receivers": 8, "link": {"rate": "100Mbit", "delay": "5ms", "down": {"loss": "1%"}}},
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms"},
        "workload": {"size": "1MB"},
    }
    assert not examine(parse(data, "sound")).findings


@pytest.mark.parametrize("name", ready_scenarios())
def test_every_ready_scenario_can_be_examined(name: str) -> None:
    examination = examine(load(name))
    assert examination.plain()["format"] == FORMAT


def test_a_stream_of_a_protocol_without_streams_is_refused() -> None:
    scenario = load("nack-unicast")
    with pytest.raises(UsageError, match="protocol n1 has no streams"):
        examine(scenario, 1000)


@pytest.mark.parametrize(
    ("topology", "key"),
    [
        ({"kind": "star", "receivers": 2, "trunk": {"loss": "100%"}}, "topology.trunk.loss"),
        ({"kind": "lan", "receivers": 2, "link": {"up": {"loss": {"model": "periodic", "every": 1}}}}, "topology.link.up.loss"),
        (
            {
                "kind": "graph",
                "nodes": {"sender": None, "s1": None, "a": None, "b": None},
                "links": [{"ends": ["sender", "s1"]}, {"ends": ["s1", "a"]}, {"ends": ["s1", "b"], "down": {"loss": "100%"}}],
            },
            "topology.links.2.down.loss",
        ),
    ],
    ids=["trunk", "lan", "graph"],
)
def test_a_link_that_loses_all_is_a_problem_whose_key_is_named(topology: dict[str, Any], key: str) -> None:
    data = {"name": "deaf", "topology": topology, "protocol": {"name": "norm"}, "workload": {"size": "100kB"}}
    examination = examine(parse(data, "deaf"))
    (finding,) = examination.findings
    assert (finding.rule, finding.key, list(finding.changes)) == ("loss-of-all", key, [key])
    assert not examination.is_sound


@pytest.mark.parametrize(
    ("key", "advised"), [("down.corrupt=100%", "1%"), ("bit_errors=1", "1e-7"), ("bit_errors=0.5", "1e-7")]
)
def test_a_link_that_damages_all_is_a_problem_whose_key_is_named(key: str, advised: str) -> None:
    (finding,) = examine(load("lan-file", [f"topology.link.{key}"])).findings
    name, _, value = key.partition("=")
    assert (finding.rule, finding.key, finding.value) == ("loss-of-all", f"topology.link.{name}", value)
    assert finding.changes == {finding.key: advised}


def test_a_packet_of_several_fragments_is_damaged_once_and_lost_with_each() -> None:
    def implied(*keys: str) -> str:
        changes = ["protocol.segment=4000", "topology.link.mtu=1500", "topology.link.down.loss=0", *keys]
        (finding,) = [found for found in examine(load("lan-file", changes)).findings if found.rule == "segment-above-mtu"]
        return finding.implies

    assert "1.0% in place of 1.0%" in implied("topology.link.down.corrupt=1%")
    assert "3.0% in place of 1.0%" in implied("topology.link.down.loss=1%")


def test_damaged_packets_count_as_lost() -> None:
    (facts,) = sessions_of(
        load("lan-file", ["topology.link.down.loss=0", "topology.trunk.corrupt=1%", "topology.link.down.corrupt=2%"])
    )
    assert facts.loss == pytest.approx(1 - 0.99 * 0.98)
    assert facts.shared == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("protocol", "loss", "is_found"),
    [
        ("norm", "1%", True),
        ("norm", "0%", False),
        ("norm, feedback: none", "1%", False),
        ("srm", "1%", True),
        ("a", "0%", True),
    ],
)
def test_a_way_back_that_loses_all_is_a_problem_where_feedback_is_needed(protocol: str, loss: str, is_found: bool) -> None:
    keys = [f"topology.link.down.loss={loss}", "topology.link.up.loss=100%", f"protocol={{name: {protocol}}}"]
    found = {finding.rule: finding for finding in examine(load("lan-file", keys)).findings}
    assert ("feedback-of-none" in found) is is_found
    if is_found:
        assert list(found) == ["feedback-of-none"]
        assert found["feedback-of-none"].changes == {"topology.link.up.loss": "1%"}


@pytest.mark.parametrize("protocol", ["norm", "n1", "a"])
def test_a_network_that_loses_all_is_a_problem_under_every_protocol(protocol: str) -> None:
    found = examine(load("lan-file", ["topology.link.down.loss=100%", f"protocol={{name: {protocol}}}"])).findings
    assert [(finding.rule, finding.severity) for finding in found] == [("loss-of-all", "problem")]


def test_subscribers_to_which_every_packet_is_lost_are_a_problem() -> None:
    found = examine(load("market-data", ["topology.link.down.loss=100%"])).findings
    assert [(finding.rule, finding.key) for finding in found] == [("loss-of-all", "topology.link.down.loss")]
    assert "to r " in found[0].implies
