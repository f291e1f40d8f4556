"""The JSON Schemas describe every key, accept every file that is shipped, and are named by it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiments.cli import invoke
from experiments.scenario.files import read_yaml
from experiments.scenario.json_schema import describe_kinds
from experiments.scenario.scenario import file_schema
from experiments.sweep.spec.sweep_file import sweep_schema

ROOT = Path(__file__).parents[3]
SHIPPED = [
    *ROOT.glob("experiments/scenarios/**/*.yaml"),
    *ROOT.glob("experiments/sweeps/*.yaml"),
    *ROOT.glob("examples/*.yaml"),
]
SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {"scenario": file_schema, "sweep": sweep_schema}
FIRST_LINE = "# yaml-language-server: $schema="


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every property in a schema, with its path."""
    if isinstance(schema, dict):
        named = schema.get("properties")
        for key, item in named.items() if isinstance(named, dict) else ():
            yield f"{path}/{key}", item
            # A property may itself be called "properties".
            yield from properties(item, f"{path}/{key}")
        for key, item in schema.items():
            if key != "properties" or not isinstance(named, dict):
                yield from properties(item, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from properties(item, f"{path}/{number}")


def kind_of(file: Path) -> str:
    """Return which schema a shipped file needs."""
    return "sweep" if "scenario" in read_yaml(file) else "scenario"


@pytest.mark.parametrize(("name", "least"), [("scenario", 350), ("sweep", 30)])
def test_every_property_has_a_description(name: str, least: int) -> None:
    found = list(properties(SCHEMAS[name]()))
    assert len(found) > least
    assert [path for path, item in found if not item.get("description", "").strip()] == []


def test_what_selects_a_kind_is_described_by_that_kind() -> None:
    schema: Any = {"properties": {"kind": {"const": "chain"}}, "description": "Switches `s1`, `s2`, ... in\na row. One sender."}
    describe_kinds(schema)
    assert schema["properties"]["kind"]["description"] == "chain: Switches `s1`, `s2`, ... in a row"


@pytest.mark.parametrize("name", ["scenario", "sweep"])
def test_shipped_files_match_the_schema_their_first_line_names(name: str) -> None:
    validator = Draft202012Validator(SCHEMAS[name]())
    files = [file for file in SHIPPED if kind_of(file) == name]
    assert len(files) > 5
    for file in files:
        assert [error.json_path for error in validator.iter_errors(read_yaml(file))] == [], file
        first = file.read_text().splitlines()[0]
        assert first.startswith(FIRST_LINE), file
        assert (file.parent / first.removeprefix(FIRST_LINE)).resolve() == ROOT / "experiments" / "schema" / f"{name}.json"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("scenario", {"name": "x", "protocol": {"name": "norm"}, "workload": {"size": "1kB"}, "topology": {"kind": "moon"}}),
        ("sweep", {"name": "x", "scenario": "lan-file", "axes": {"seed": {"form": 1}}}),
        ("sweep", {"name": "x", "scenario": "lan-file", "until": {"metric": "luck", "width": 0.1}}),
    ],
)
def test_wrong_files_do_not_match(name: str, wrong: Any) -> None:
    assert not Draft202012Validator(SCHEMAS[name]()).is_valid(wrong)


@pytest.mark.parametrize(("options", "name"), [([], "scenario"), (["--sweep"], "sweep")])
def test_the_command_prints_the_schema(options: list[str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schema", *options]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(SCHEMAS[name]()))
