"""Estimates of large simulations: memory that is there, smaller runs of a scenario, and what is refused."""

import json
import subprocess
import sys
from math import ceil
from pathlib import Path
from typing import Any, get_args

import pytest

from experiments.cli import invoke
from experiments.running import run_cost
from experiments.running.available_memory import available_memory
from experiments.running.run_cost import RunCost, Trial, estimate_cost, extrapolate
from experiments.running.run_size import RunSize, shrunk, size_of
from experiments.running.simulate import simulate
from experiments.scenario.ready import ready_scenarios
from experiments.scenario.scenario import Scenario, load, parse
from tests.sim.stored import ROOT
from topologies.generators import AnyTopology, Inline

LINK = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": "1%"}}


def scenario_of(receivers: int, size: str = "140kB", **more: Any) -> Scenario:
    data = {
        "name": "large",
        "topology": {"kind": "lan", "receivers": receivers, "link": LINK},
        "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "50ms"},
        "workload": {"size": size},
    }
    return parse({**data, **more}, "large")


# -- sizes ---------------------------------------------------------------------------------------------------------------


def test_the_size_of_a_run_is_its_hosts_and_the_packets_of_its_content() -> None:
    assert size_of(scenario_of(20)) == RunSize(hosts=21, packets=100)
    several = scenario_of(20, workload=[{"size": 1400, "count": 7}, {"size": 1401}])
    assert size_of(several).packets == 9


def test_content_that_does_not_fit_into_the_duration_is_not_counted() -> None:
    # 1.25 MB/s for two seconds, of which half a second is over when it is submitted.
    assert size_of(scenario_of(20, workload={"size": "1GB", "at": "500ms"}, duration="2s")).packets == -(-1_875_000 // 1400)


FLOW = {"kind": "constant", "from": "sender", "to": "r1", "size": 958, "rate": "8Mbit"}


def test_the_packets_of_cross_traffic_are_counted_up_to_the_end_of_the_run() -> None:
    timed = {**FLOW, "begin": "2s", "end": "5s"}
    # 1000 bytes of Ethernet each, 1000 of them in a second.
    wanted = scenario_of(20, traffic=[FLOW, timed], duration="10s")
    assert size_of(wanted) == RunSize(hosts=21, packets=100, traffic=10_000 + 3000)
    assert size_of(wanted, end=3.0).traffic == 3000 + 1000
    assert size_of(shrunk(wanted, 21, 100, 0.1)).traffic == 1000 + 300


@pytest.mark.parametrize("kind", ["aimd", "tcp"])
@pytest.mark.parametrize("source", ["sender", "r2"])
def test_a_flow_with_congestion_control_sends_what_its_slowest_link_carries(kind: str, source: str) -> None:
    flow = {"kind": kind, "from": source, "to": "r1", "size": 958}
    assert size_of(scenario_of(20, traffic=[flow], duration="1s")).traffic == 12_500


@pytest.mark.parametrize("name", sorted(ready_scenarios()))
def test_a_smaller_run_of_every_ready_scenario_runs(name: str) -> None:
    whole = load(name)
    if whole.foreign:
        pytest.skip("foreign programs do not run in the simulator")
    small = shrunk(whole, 10, 20)
    size = size_of(small)
    assert size.hosts <= size_of(whole).hosts
    # A message is not cut.
    longest = max([ceil(work.mean_size / whole.segment) for work in whole.publications], default=1)
    assert size.packets <= 20 + longest * len(whole.workload)
    assert simulate(small).completed or whole.traffic or whole.receivers


def test_a_smaller_run_keeps_the_hosts_that_the_scenario_names() -> None:
    late = {"workload": [{"size": 1400, "from": "r40"}], "receivers": [{"hosts": ["r50"], "join": "1s"}]}
    named = parse(scenario_of(1000).plain() | late | {"twin": None}, "named")
    assert size_of(shrunk(named, 10, 10)).hosts == 52


def test_a_smaller_run_of_a_graph_has_fewer_members_in_each_group() -> None:
    nodes = {"sender": {}, "s1": {"kind": "switch"}, "near": {"count": 1000}, "far": {"count": 100}}
    links = [{"ends": ("sender", "s1")}, {"ends": ("s1", "near")}, {"ends": ("s1", "far")}]
    small = shrunk(scenario_of(1, topology={"kind": "graph", "nodes": nodes, "links": links}), 110, 10)
    assert [small.build_topology().size(name) for name in ("near", "far")] == [100, 10]


NEEDED: dict[str, dict[str, Any]] = {
    "chain": {"switches": 2},
    "tree": {"depth": 2},
    "wan": {"sites": 2},
    "waxman": {"switches": 3},
    "transit-stub": {"transit": 1, "stubs": 1, "size": 2},
}
"""Parameters that generators require besides `receivers`, by kind."""


@pytest.mark.parametrize("model", [each for each in get_args(get_args(AnyTopology)[0]) if each is not Inline])
def test_a_smaller_run_of_every_generator_has_fewer_receivers(model: Any) -> None:
    kind = model.model_fields["kind"].default
    whole = scenario_of(1, topology={"kind": kind, "receivers": 500, **NEEDED.get(kind, {})})
    small = shrunk(whole, 50, 10)
    assert size_of(small).hosts <= 60
    assert type(small.topology) is model


# -- estimates -----------------------------------------------------------------------------------------------------------


def test_time_is_extrapolated_by_hosts_and_deliveries_and_memory_by_hosts() -> None:
    short = Trial(RunSize(1000, 25), seconds=1.025, memory=3_000_000)
    long = Trial(RunSize(1000, 100), seconds=1.1, memory=3_100_000)
    fewer = Trial(RunSize(250, 100), seconds=0.3, memory=1_600_000)
    cost = extrapolate(RunSize(100_000, 10_000), short, long, fewer)
    # A millisecond per host and a microsecond per delivery; 2000 bytes per host, and 1.1 MB.
    assert cost.seconds == pytest.approx(100 + 1000)
    assert cost.memory == pytest.approx(200e6 + 1.1e6)


def test_memory_that_grows_much_with_the_content_is_extrapolated() -> None:
    short, long = (Trial(RunSize(100, packets), 1.0, packets * 100 * 1000) for packets in (25, 100))
    assert extrapolate(RunSize(100, 1000), short, long).memory == pytest.approx(100 * 1000 * 1000)


ESTIMATE = """
from dataclasses import asdict
import json
from experiments.running import run_cost
from tests.experiments.running.test_run_cost import scenario_of

# The limit is of the real clock, and the machine may be busy with other tests.
run_cost.LIMIT = 300.0
large = scenario_of(8000, protocol={"name": "norm", "rate": "10Mbit", "grtt": "50ms", "gsize": 8000})
cost, actual = run_cost.estimate_cost(large), run_cost.try_run(large)
print(json.dumps([cost.memory / actual.memory, cost.seconds / actual.seconds]))
"""


def test_an_estimate_is_near_what_the_run_takes() -> None:
    # A process of its own, as of a command: memory that other tests left free would be used again and not be counted.
    told = subprocess.run([sys.executable, "-c", ESTIMATE], cwd=ROOT, capture_output=True, text=True, check=True)
    memory, seconds = json.loads(told.stdout)
    assert 0.5 < memory < 2
    assert 0.25 < seconds < 4


def test_cross_traffic_that_fills_a_queue_without_limit_is_estimated_from_shorter_flows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine, too.
    monkeypatch.setattr(run_cost, "LIMIT", 120.0)
    # 10 Gbit/s into 100 Mbit/s, in which everything waits: memory for a million packets and more.
    flood = estimate_cost(scenario_of(3, traffic=[{**FLOW, "rate": "10Gbit"}], duration="5s"))
    assert flood is not None
    assert flood.memory > 500_000_000
    # The run ends long before the flow does, which is not counted to its end.
    gentle = estimate_cost(scenario_of(3, traffic=[FLOW], duration="1h"))
    assert gentle is not None
    assert gentle.seconds < 5


def test_a_scenario_whose_short_runs_fail_has_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(scenario: Scenario) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr(run_cost, "simulate", fail)
    assert estimate_cost(scenario_of(100)) is None


# -- what is refused -----------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "large.yaml"
    path.write_text(
        "name: large\ntopology: {kind: lan, receivers: 20, link: {rate: 100Mbit, delay: 5ms}}\n"
        "protocol: {name: norm, rate: 10Mbit}\nworkload: {size: 140kB}\n"
    )
    return str(path)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts as large, and needs 3 GB and 200 s."""
    monkeypatch.setattr(run_cost, "SMALL_HOSTS", 0)
    monkeypatch.setattr(run_cost, "estimate_cost", lambda scenario: RunCost(200.0, 3_000_000_000))
    monkeypatch.setattr(run_cost, "available_memory", lambda: 8_000_000_000)


def test_a_small_run_begins_at_once(file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run_cost, "estimate_cost", lambda scenario: pytest.fail("estimated"))
    assert invoke(["run", file, "--brief", "--time-limit", "10"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("command", [["run"], ["compare", "--protocols", "norm,n2", "--runs", "1"]])
def test_a_run_that_needs_more_memory_than_there_is_is_refused_in_one_line(
    command: list[str], file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_cost, "available_memory", lambda: 1_440_000_000)
    assert invoke([*command, file]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "mcastlab: large: needs about 3:20 of CPU time and 3GB of memory, and 1.4GB are available; "
        "fewer receivers, or --yes to run it all the same\n"
    )
    assert invoke([*command, file, "--brief", "--yes"]) == 0


@pytest.mark.usefixtures("large")
def test_a_run_that_takes_longer_than_the_time_limit_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", file, "--time-limit", "199"]) == 2
    assert "needs about 3:20 of CPU time and 3GB of memory, and --time-limit is 3:19;" in capsys.readouterr().err
    assert invoke(["run", file, "--time-limit", "1.5ms"]) == 2
    assert "--time-limit is 0.0015 s;" in capsys.readouterr().err
    assert invoke(["run", file, "--time-limit", "201", "--brief"]) == 0
    # An estimate is for people: nothing of it is in a pipe.
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("large")
def test_a_run_without_an_estimate_begins_with_a_warning(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_cost, "estimate_cost", lambda scenario: None)
    assert invoke(["run", file, "--brief"]) == 0
    assert capsys.readouterr().err.startswith("warning: large: no estimate")


@pytest.mark.usefixtures("large")
def test_a_run_without_an_estimate_is_refused_under_a_time_limit(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_cost, "estimate_cost", lambda scenario: None)
    assert invoke(["run", file, "--time-limit", "3600"]) == 2
    assert "large: no estimate, since short runs of it fail or take too long, and there is a" in capsys.readouterr().err


@pytest.mark.usefixtures("large")
def test_a_dry_run_prints_the_estimate_and_runs_nothing(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.running.run.run", lambda *args, **more: pytest.fail("ran"))
    assert invoke(["run", file, "--dry-run"]) == 0
    assert capsys.readouterr().out == "large: about 3:20 of CPU time and 3GB of memory\n"
    assert invoke(["run", file, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"seconds": 200.0, "memory": 3_000_000_000}
    assert invoke(["run", file, "--dry-run", "--on", "emu"]) == 2


# -- memory --------------------------------------------------------------------------------------------------------------


def machine(folder: Path, groups: str) -> Path:
    """Make a /proc of a machine with 8000 kB available and a process in these control groups."""
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text("MemTotal: 16000 kB\nMemAvailable: 8000 kB\n")
    (folder / "self" / "statm").write_text("10 5 1 1 0 4 0\n")
    (folder / "self" / "cgroup").write_text(groups)
    return folder


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_control_groups_the_machine_is_the_limit(tmp_path: Path) -> None:
    assert available_memory(machine(tmp_path / "proc", "0::/\n"), tmp_path / "groups") == 8000 * 1024


def test_a_control_group_and_those_above_it_are_limits(tmp_path: Path) -> None:
    proc, groups = machine(tmp_path / "proc", "0::/a/b\n"), tmp_path / "groups"
    group(groups / "a", memory__max="3000000", memory__current="2500000", memory__stat="anon 1\ninactive_file 100000\n")
    group(groups / "a" / "b", memory__max="max", memory__current="1", memory__stat="inactive_file 0\n")
    assert available_memory(proc, groups) == 600_000


def test_control_groups_of_version_1_are_limits(tmp_path: Path) -> None:
    proc, groups = machine(tmp_path / "proc", "9:cpu:/x\n4:memory:/y\n0::/\n"), tmp_path / "groups"
    files = {"memory.limit_in_bytes": "700000", "memory.usage_in_bytes": "300000", "memory.stat": "total_inactive_file 50\n"}
    group(groups / "memory" / "y", **files)
    assert available_memory(proc, groups) == 400_050


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    proc, groups = machine(tmp_path / "proc", "0::/a\n"), tmp_path / "groups"
    group(groups / "a", memory__max="1000", memory__current="2000", memory__stat="")
    assert available_memory(proc, groups) == 0


def test_this_machine_has_memory() -> None:
    assert available_memory() > 1_000_000
