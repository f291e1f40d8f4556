"""Rules of runs find every mutant, and break in no run of a protocol without a defect."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.running.invariants import RULES as RULES_OF_RUNS
from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.scenario import Scenario, load, parse, read
from experiments.zoo import observation
from experiments.zoo.observation import RULES, observe
from experiments.zoo.zoo import SCENARIOS, Specimen, Visit, specimens, visit
from protocols.errors import ConfigError
from protocols.registry import names as protocol_names
from protocols.registry import protocol
from sim.watch import Watcher
from tests.tidy.tree import ROOT

SPECIMENS = specimens()


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_a_mutant_breaks_a_rule_and_a_protocol_none(specimen: Specimen) -> None:
    (seen,) = visit([specimen])
    assert seen.is_caught == bool(specimen.mutant), seen.breaks
    assert seen.is_as_expected
    assert set(seen.by_rule()) <= set(RULES)


def test_a_mutant_that_breaks_no_rule_is_not_as_expected() -> None:
    quiet, loud = (
        Visit(SPECIMENS[1], {"here": ()}),
        observe(load(SCENARIOS / "small-cache.yaml", ["protocol.mutant=stuck-gap"])),
    )
    assert not quiet.is_as_expected
    assert not Visit(SPECIMENS[0], {"here": loud.breaks}).is_as_expected


@pytest.mark.parametrize("rule", RULES_OF_RUNS)
def test_every_rule_of_a_run_can_be_broken(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scenario: Scenario, watchers: Sequence[Watcher]) -> Result:
        result = simulate(scenario, watchers)
        result.metrics["invariants"]["violations"].append({"at": 1.0, "host": "r1", "rule": rule, "what": "it is so"})
        return result

    monkeypatch.setattr(observation, "simulate", broken)
    (found,) = observe(load(SCENARIOS / "own-losses.yaml")).breaks
    assert (found.rule, found.what) == (rule, "it is so (r1 at 1 s)")


def test_other_networks_and_losses_break_no_rule_of_the_plain_protocol() -> None:
    for receivers, loss, seed in ((1, "20%", 3), (5, "5%", 4), (12, "2%", 5)):
        changes = [f"topology.receivers={receivers}", f"topology.link.down.loss={loss}", "workload.0.count=60"]
        assert not observe(load(SCENARIOS / "own-losses.yaml", changes, seed)).breaks


@pytest.mark.parametrize("queue", [2000, 5500])
def test_what_a_subscriber_has_no_room_for_is_requested_again(queue: int) -> None:
    assert not observe(load(SCENARIOS / "own-losses.yaml", [f"protocol.receive_queue={queue}"])).breaks


def test_a_request_after_two_of_others_need_not_wait_for_a_third() -> None:
    publish = {"kind": "publish", "hosts": ["r1"], "to": "/a", "size": 50, "count": 300, "rate": "saturated", "linger": "5s"}
    protocol = {"name": "distributor", "rate": "8Mbit", "segment": 200, "timeout": "800ms", "request_delay": "50ms"}
    link = {"rate": "10Mbit", "queue": 5, "delay": "1ms", "down": {"loss": 0.1}, "up": {"loss": 0.3}}
    data = {
        "name": "queues",
        "seed": 2,
        "topology": {"kind": "star", "receivers": 5, "link": link},
        "protocol": protocol,
        "workload": [{**publish, "at": "500ms"}, {"kind": "subscribe", "hosts": ["r2", "r3", "r4", "r5"], "to": "/..."}],
        "duration": "60s",
    }
    assert not observe(parse(data, "queues")).breaks


def test_machines_of_one_host_are_no_single_node_for_the_rules() -> None:
    work = {"kind": "publish", "hosts": ["r1"], "to": "topic:a", "size": 100, "rate": "100/s", "count": 50}
    late = {"kind": "subscribe", "hosts": ["r1"], "to": "topic:a", "at": "100ms"}
    data = {"name": "shared", "topology": {"kind": "star", "receivers": 2}, "protocol": {"name": "bus"}, "duration": "20s"}
    # Its subscriber requests what was sent before it came, which its publisher's socket gets, too.
    assert not observe(parse({**data, "workload": [{**work, "hosts": ["r2"]}, {**work, "at": "1s"}, late]}, "shared")).breaks


def test_what_is_requested_at_the_end_of_a_run_is_answered_after_it() -> None:
    link = {"rate": "100Mbit", "delay": "100ms", "down": {"loss": 0.2}}
    publish = {"kind": "publish", "hosts": ["sender"], "to": "topic:a", "size": 5000, "count": 1, "rate": "1/s", "linger": "1s"}
    data = {
        "name": "slow-repairs",
        "seed": 35,
        "topology": {"kind": "star", "receivers": 3, "link": link},
        "protocol": {"name": "fjm", "rate": "20Mbit", "segment": 100, "holdoff": "5ms", "history": "5s"},
        "nodes": {"r3": {"role": "manager"}},
        "workload": [publish, {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:a"}],
        "duration": "60s",
    }
    seen = observe(parse(data, "slow-repairs"))
    assert not seen.breaks
    assert seen.result is not None
    assert "quiescence" in seen.result.metrics["invariants"]["checked"]


def test_a_sender_repairs_again_what_it_repaired_while_it_gathered_requests() -> None:
    link = {"rate": "10Mbit", "delay": "20ms", "queue": 20, "down": {"loss": "1%"}}
    publish = {"kind": "publish", "hosts": ["sender"], "to": "topic:a", "size": 5000, "count": 100, "rate": "500/s"}
    data = {
        "name": "late",
        "seed": 64,
        "topology": {"kind": "star", "receivers": 2, "link": link},
        "protocol": {"name": "fjm2", "rate": "1Mbit", "backoff": 1, "gsize": 1},
        # Both subscribers come late, and request all objects before.
        "workload": [{**publish, "at": "500ms"}, {"kind": "subscribe", "hosts": ["r"], "to": "topic:a", "at": "1s"}],
        "duration": "60s",
    }
    assert not observe(parse(data, "late")).breaks


def test_the_command_prints_which_rule_found_which_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["zoo", "--only", "stuck-gap", "--jobs", "1", "--json"]) == 0
    plain, mutant = json.loads(capsys.readouterr().out)["runs"]
    assert (plain["mutant"], plain["caught"], plain["breaks"]) == (None, False, [])
    assert mutant["mutant"] == "stuck-gap"
    assert {row["rule"] for row in mutant["breaks"]} == {"told"}


def test_an_unknown_mutant_is_named_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["zoo", "--only", "unicorn"]) == 2
    assert "--only: value 'unicorn' is not allowed; one of no-suppression, " in capsys.readouterr().err


def test_a_scenario_names_a_mutant_and_keeps_its_name() -> None:
    data = read(SCENARIOS / "small-cache.yaml", ["protocol.mutant=crosstalk"])
    scenario = parse(data, "here")
    assert scenario.plain()["protocol"]["mutant"] == "crosstalk"
    assert scenario.digest() != load(SCENARIOS / "small-cache.yaml").digest()
    assert "mutant" not in load(SCENARIOS / "small-cache.yaml").plain()["protocol"]


@pytest.mark.parametrize(
    ("name", "allowed"), [("distributor", "one of no-suppression, no-merging, "), ("norm", "protocol norm has none")]
)
def test_a_mutant_that_the_protocol_does_not_have_is_refused(name: str, allowed: str) -> None:
    data = {**read(SCENARIOS / "small-cache.yaml"), "protocol": {"name": name, "mutant": "unicorn"}}
    with pytest.raises(ConfigError, match=f"protocol.mutant: value 'unicorn' is not allowed; {allowed}"):
        parse(data, "here")


def test_the_plain_protocol_names_no_mutant() -> None:
    names = [name for own in protocol_names() for name in protocol(own).mutant_table]
    sources = [path for path in (ROOT / "protocols" / "distributor").glob("*.py") if path.name != "__init__.py"]
    assert not [path for path in sources for name in (*names, "mutant") if name in Path(path).read_text()]
