"""`mcastlab twin`: equivalent worlds pass, others fail, and the reason is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.commands.twin import READY, exit_code
from experiments.compare.twin.fidelity_page import fidelity_page
from experiments.compare.twin.paired_runs import twin
from experiments.compare.twin.worlds import observe
from experiments.scenario.scenario import Scenario, load, parse
from experiments.statistics.verdicts import Verdict

SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "star", "receivers": 3, "link": {"rate": "100Mbit", "delay": "1ms", "down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "robust": 5},
    "workload": {"size": "300kB"},
}


def small(**changes: Any) -> Scenario:
    return parse(SMALL | changes, "small")


def test_the_simulator_compared_with_itself_agrees_packet_by_packet() -> None:
    verdict = twin((small(), small(engine="strict")), ("sim", "sim"), 3)
    assert verdict.equivalent
    assert all(found is not None and found.gap.low == found.gap.high == 0.0 for found in verdict.metrics.values())
    assert verdict.dropped is not None
    assert verdict.dropped.first == verdict.dropped.second > 20


def test_a_rate_changed_by_a_fifth_in_one_world_fails() -> None:
    long = {"size": "2MB"}
    slower = small(workload=long, protocol=SMALL["protocol"] | {"rate": "8Mbit"})
    verdict = twin((small(workload=long), slower), ("sim", "sim"), 4)
    assert verdict.verdict is Verdict.DIFFERENT
    assert {"completion_time", "goodput"} <= set(verdict.differing)
    # The same packets are lost, because losses are keyed by packet identity and not by time.
    assert "dropped" not in verdict.differing


def test_a_different_loss_in_one_world_fails_by_the_sets_of_lost_packets() -> None:
    topology = {**SMALL["topology"], "link": {**SMALL["topology"]["link"], "down": {"loss": "10%"}}}
    verdict = twin((small(), small(topology=topology)), ("sim", "sim"), 3)
    assert {"dropped", "loss"} <= set(verdict.differing)


@pytest.mark.emu
def test_mininet_loses_the_same_packets_and_a_slower_sender_there_is_detected() -> None:
    # Times are compared by `make twin` on an idle machine; losses and repairs agree on a busy one, too.
    verdict = twin((small(), small()), runs=3)
    assert not {"dropped", "repairs", "loss", "overhead"} & set(verdict.differing)
    assert verdict.dropped is not None
    assert verdict.dropped.first == verdict.dropped.second > 20
    slower = small(protocol=SMALL["protocol"] | {"rate": "4Mbit"})
    assert {"completion_time", "dropped"} & set(twin((small(), slower), runs=3).differing) == {"completion_time"}


def test_a_scenario_sets_its_equivalence_margins() -> None:
    slower = small(workload={"size": "2MB"}, protocol=SMALL["protocol"] | {"rate": "8Mbit"})
    wide = {"completion_time": "60%", "goodput": "60%", "nacks": "100%", "runs": 4}
    assert twin((small(workload={"size": "2MB"}, twin=wide), slower), ("sim", "sim")).equivalent


def test_margins_do_not_change_the_digest_of_a_scenario() -> None:
    assert small().digest() == small(twin={"runs": 7, "goodput": "2%"}).digest()


def test_a_receiver_that_completes_in_only_one_world_is_named() -> None:
    cut = small(duration="100ms")
    verdict = twin((small(), cut), ("sim", "sim"), 2)
    assert {"completion_time", "completed"} <= set(verdict.differing)
    assert "a value in one world only" in fidelity_page([verdict])


def test_worlds_in_which_no_receiver_is_complete_are_not_called_equivalent() -> None:
    cut = small(duration="100ms")
    verdict = twin((cut, cut), ("sim", "sim"), 2)
    assert (verdict.verdict, verdict.not_shown, exit_code([verdict])) == (Verdict.NOT_SHOWN, ["completion_time"], 4)
    assert "not shown with 2 runs: completion_time (no receiver was complete in either world" in verdict.outcome
    assert verdict.outcome in fidelity_page([verdict])
    assert verdict.runs_needed is None
    # With one receiver that is complete there is something to compare.
    assert not twin((small(), small()), ("sim", "sim"), 2).nothing_completed


def test_lost_packets_are_first_transmissions_lost_on_a_link() -> None:
    # Every tenth packet of the trunk is lost; its period counts first transmissions only.
    topology = {"kind": "star", "receivers": 2, "trunk": {"down": {"loss": {"model": "periodic", "every": 10}}}}
    seen = observe(small(topology=topology), "sim")
    assert seen.lost is not None
    assert set(seen.lost) == {"sender-s1"}
    segments = -(-300_000 // 1400)
    assert len(seen.lost["sender-s1"]) == pytest.approx(segments / 10, abs=1)


def test_ready_scenarios_are_valid_and_cover_the_documented_cases() -> None:
    names = sorted(load(path).name for path in READY.glob("*.yaml"))
    assert names == sorted(path.stem for path in READY.glob("*.yaml"))
    assert len(names) >= 13


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


def test_the_command_prints_json_and_writes_a_page(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fidelity.md"
    assert invoke(["twin", str(file), "--worlds", "sim,sim", "--runs", "2", "--json", "--out", str(out)]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["verdict"], output["equivalent"], output["runs_needed"]) == ("equivalent", True, None)
    assert output["power"]["pairs"] == 2
    assert set(output["metrics"]) == {"completion_time", "goodput", "overhead", "nacks", "repairs", "loss"}
    assert "1 of 1 scenarios agree" in out.read_text()


def test_the_second_world_can_be_changed_from_the_command_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["twin", str(file), "--worlds", "sim,sim", "--second", "protocol.rate=5Mbit"]
    assert invoke([*command, "--set", "workload.size=2MB", "--runs", "3"]) == 1
    assert "different: completion_time" in capsys.readouterr().out


def test_too_few_runs_are_no_difference_and_have_an_exit_code_of_their_own(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["twin", str(file), "--worlds", "sim,sim", "--second", "protocol.rate=8Mbit", "--runs", "2"]
    assert invoke([*command, "--json"]) == 4
    output = json.loads(capsys.readouterr().out)
    assert (output["verdict"], output["equivalent"], output["differing"]) == ("not shown", False, [])
    assert "completion_time" in output["not_shown"]
    assert output["runs_needed"] > 2
    assert invoke(command) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert f"not shown with 2 runs: {', '.join(output['not_shown'])} ({output['runs_needed']} runs would do)" in text
    # What two pairs can show stands before the result.
    assert text.index("2 pairs show equivalence where the differences of pairs have") < text.index("not shown with 2 runs")


def test_the_runs_that_would_do_are_enough(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["twin", str(file), "--worlds", "sim,sim", "--second", "protocol.rate=9Mbit", "--json"]
    assert invoke([*command, "--runs", "2"]) == 4
    needed = json.loads(capsys.readouterr().out)["runs_needed"]
    assert invoke([*command, "--runs", str(needed)]) == 0


def test_of_several_scenarios_a_difference_decides_before_what_is_not_shown() -> None:
    equal, slower = small(), small(protocol=SMALL["protocol"] | {"rate": "2Mbit"})
    verdicts = [twin((equal, other), ("sim", "sim"), 2) for other in (equal, slower)] + [
        twin((equal, equal), ("sim", "sim"), 1)
    ]
    assert [verdict.verdict for verdict in verdicts] == [Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.NOT_SHOWN]
    assert exit_code(verdicts) == 1
    assert exit_code([verdicts[0], verdicts[2]]) == 4
    assert exit_code(verdicts[:1]) == 0
    assert "1 of 3 scenarios agree in everything; 1 differ; 1 not shown." in fidelity_page(verdicts)


def test_receivers_of_one_run_count_as_one_observation() -> None:
    verdict = twin((small(), small(protocol=SMALL["protocol"] | {"rate": "9Mbit"})), ("sim", "sim"), 3)
    assert {test.gap.pairs for test in verdict.metrics.values() if test is not None} == {3}


def test_a_single_pair_shows_nothing() -> None:
    verdict = twin((small(), small()), ("sim", "sim"), 1)
    assert (verdict.verdict, verdict.differing, verdict.runs_needed, verdict.power) == (Verdict.NOT_SHOWN, [], None, None)
    assert "at least 2 runs" in verdict.outcome


def test_a_difference_on_a_machine_that_was_too_busy_is_not_shown() -> None:
    different = twin((small(), small(protocol=SMALL["protocol"] | {"rate": "2Mbit"})), ("sim", "sim"), 2)
    busy = replace(different, warnings=("user-space links 9 ms late at the median",))
    assert (different.verdict, busy.verdict) == (Verdict.DIFFERENT, Verdict.NOT_SHOWN)
    assert "too busy: completion_time" in busy.outcome
    assert "1 not shown" in fidelity_page([busy])
    assert replace(twin((small(), small()), ("sim", "sim"), 2), warnings=busy.warnings).equivalent


def test_metrics_that_a_protocol_does_not_count_are_not_compared(gossip: Path) -> None:
    scenario = parse(SMALL | {"protocol": {"module": str(gossip), "rate": "10Mbit"}}, "small")
    verdict = twin((scenario, scenario), ("sim", "sim"), 2)
    assert not {"loss", "repairs"} & verdict.metrics.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--worlds", "sim,moon"], "--worlds: value 'sim,moon' is not allowed; two of sim, emu"),
        (["--table"], "twin: give a scenario file, or --table"),
        (["--set", "twin.goodput=0"], "twin.goodput"),
    ],
)
def test_mistakes_are_one_line_errors(
    file: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["twin", str(file), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
