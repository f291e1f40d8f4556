"""What README.md states in numbers is what the code and the other pages say; docs/index.md leads to every page."""

import re

from experiments.cli import EXIT_CODES
from experiments.scenario.scenario import load
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep
from tests.tidy.tree import ROOT

TEXT = (ROOT / "README.md").read_text()


def test_the_exit_codes_are_those_of_the_command() -> None:
    listed = dict(re.findall(r"^\| (\d+) \| (.*) \|$", TEXT, re.M))
    assert listed == {str(code): meaning for code, meaning in EXIT_CODES.items()}


def test_the_overview_of_the_documentation_links_every_page() -> None:
    overview = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in sorted(pages) if page != "index.md" and f"({page}" not in overview] == []


def test_as_many_values_of_theory_agree_as_validation_says() -> None:
    agreeing = re.search(r"^(\d+) of \1 values agree", (ROOT / "docs" / "validation.md").read_text(), re.M)
    assert agreeing is not None
    assert re.findall(r"(\d+) values of theory", TEXT) == [agreeing[1]]


def test_as_many_scenarios_are_compared_with_mininet_as_there_are() -> None:
    (number,) = re.findall(r"compared in (\d+) scenarios", TEXT)
    assert int(number) == len(list((ROOT / "experiments" / "scenarios" / "twin").glob("*.yaml")))


def test_the_sweep_of_the_tour_has_as_many_runs_as_it_says() -> None:
    path = ROOT / "examples" / "first-sweep.yaml"
    plan = SweepPlan(load_sweep(path), path)
    assert re.findall(r"(\d+) runs on all processors", TEXT) == [str(plan.most_runs)]


def test_the_scenario_of_the_tour_is_the_file() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.M | re.S)
    assert load("lan-file").name in shown
    assert (ROOT / "experiments" / "scenarios" / "lan-file.yaml").read_text() == shown
