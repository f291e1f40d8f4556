"""Scenarios from files, names and Python values."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import mcastlab
from experiments.commands.new import TEMPLATE

VALUES: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "lan", "receivers": 3, "link": {"rate": "10Mbit"}},
    "protocol": {"name": "norm", "rate": "1Mbit"},
    "workload": {"kind": "file", "size": "20kB"},
}


def test_python_values_and_yaml_give_the_same_scenario(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(
        "{name: small, topology: {kind: lan, receivers: 3, link: {rate: 10Mbit}}, protocol: {name: norm, rate: 1Mbit}, "
        "workload: {kind: file, size: 20kB}}"
    )
    assert mcastlab.load(VALUES).digest() == mcastlab.load(file).digest()


def test_values_are_replaced_by_path_and_by_keyword() -> None:
    by_path = mcastlab.load("lan-file", {"topology.receivers": 3, "topology.link.down.loss": "5%"}, seed=7)
    by_keyword = mcastlab.load("lan-file", topology__receivers=3, topology__link__down__loss="5%", seed=7)
    assert by_path.digest() == by_keyword.digest()
    assert len(by_path.build_topology().hosts) == 4
    assert by_path.seed == 7


def test_the_given_values_are_not_modified() -> None:
    mcastlab.load(VALUES, topology__receivers=9)
    assert VALUES["topology"]["receivers"] == 3


def test_values_of_a_loaded_scenario_keep_their_units() -> None:
    scenario = mcastlab.load(VALUES)
    again = mcastlab.load(scenario, seed=2)
    assert again.protocol == scenario.protocol
    assert again.model_copy(update={"seed": 1}).digest() == scenario.digest()


def test_values_are_replaced_in_a_scenario_made_from_values() -> None:
    scenario = mcastlab.Scenario(**VALUES)
    changed = mcastlab.load(scenario, seed=5, topology__receivers=2)
    assert changed.digest() == mcastlab.load(VALUES, seed=5, topology__receivers=2).digest()
    assert (scenario.seed, len(scenario.build_topology().hosts)) == (1, 4)


def test_setting_an_attribute_of_a_scenario_is_refused_in_one_line() -> None:
    scenario: Any = mcastlab.load(VALUES)
    with pytest.raises(mcastlab.UsageError, match=r"^seed: can't be set, .*; load\(scenario, seed=\.\.\.\) makes another$"):
        scenario.seed = 4
    assert scenario.seed == 1


def test_a_scenario_without_source_values_cannot_be_changed() -> None:
    (case, *_) = mcastlab.cases("bakeoff-nrl").values()
    with pytest.raises(mcastlab.UsageError, match="that `load` or `Scenario` made"):
        mcastlab.load(case, seed=2)


@pytest.mark.parametrize("name", ["lan-file", "shared-loss", "router-single-mac"])
def test_a_scenario_goes_to_another_process_as_it_is(name: str) -> None:
    scenario = mcastlab.load(name, seed=3)
    sent = pickle.loads(pickle.dumps(scenario))
    assert sent == scenario
    assert sent.digest() == scenario.digest()
    assert mcastlab.load(sent, seed=4).seed == 4


def test_a_protocol_of_a_file_is_imported_by_the_process_that_a_scenario_goes_to(tmp_path: Path) -> None:
    module = tmp_path / "gossip.py"
    module.write_text(TEMPLATE.read_text().replace("@name@", "gossip"))
    scenario = mcastlab.load(VALUES, protocol={"module": str(module), "copies": 2})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        there = processes.submit(mcastlab.run, scenario).result()
    assert there.fingerprint == mcastlab.run(scenario).fingerprint
    assert type(there) is mcastlab.Result


def test_a_copy_with_other_attributes_does_not_lose_them_when_values_are_replaced() -> None:
    scenario = mcastlab.load(VALUES)
    for changed in (scenario.model_copy(update={"seed": 7}), scenario.under(mcastlab.load("lan-file").protocol)):
        with pytest.raises(mcastlab.UsageError, match="that `load` or `Scenario` made"):
            mcastlab.load(changed, duration="5s")
    assert mcastlab.load(scenario.model_copy(), seed=2).seed == 2


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"topology.receivers": 0}, "topology.receivers: value 0 is not allowed"),
        ({"protocol.rat": 1}, "protocol.rat: value 1 is not allowed; unknown key"),
    ],
)
def test_a_wrong_value_is_a_one_line_error(replaced: dict[str, object], message: str) -> None:
    with pytest.raises(mcastlab.ConfigError, match=message) as caught:
        mcastlab.load("lan-file", replaced)
    assert "\n" not in str(caught.value)


def test_ready_scenarios_have_descriptions() -> None:
    found = mcastlab.scenarios()
    assert "LAN" in found["lan-file"]
    assert all(about.strip() for about in found.values())


def test_a_topology_is_built_from_python_values() -> None:
    assert mcastlab.topology("star", receivers=2).hosts == ("sender", "r1", "r2")
    with pytest.raises(mcastlab.ConfigError, match="topology: receivers: value 0 is not allowed"):
        mcastlab.topology("star", receivers=0)


@pytest.mark.parametrize("source", [None, 5, ["lan-file"]])
def test_what_is_no_scenario_is_refused(source: Any) -> None:
    with pytest.raises(mcastlab.UsageError, match="is not allowed; a file, the name of a ready scenario, values or a Scenario"):
        mcastlab.load(source)


def test_a_path_that_is_no_text_is_refused() -> None:
    paths: Any = {5: 1}
    with pytest.raises(mcastlab.UsageError, match="the path 5 is not allowed; keys with dots"):
        mcastlab.load("lan-file", paths)
