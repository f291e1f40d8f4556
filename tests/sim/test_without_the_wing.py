"""The strict engine is complete without the fast wing: it runs where the folders `fast` do not exist."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.stored import ROOT, STORED

PACKAGES = ("protocols", "topologies", "sim", "experiments")
WINGS = ("protocols/fast", "protocols/*/fast", "sim/fast")
RUN = """
import json
from tests.sim.stored import fingerprints
print(json.dumps(fingerprints("engine=strict")))
"""


EACH = """
import json
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.registry import file_protocols
star = {"kind": "star", "receivers": 8, "link": {"delay": "5ms", "down": {"loss": "5%"}}}
written = {"name": "each", "seed": 3, "topology": star, "workload": {"size": "60kB"}, "duration": "5s", "engine": ENGINE}
def fingerprint(name):
    return run(parse({**written, "protocol": {"name": name, "rate": "4Mbit"}}, "each")).fingerprint
found = {name: fingerprint(name) for name in file_protocols()}
print(json.dumps(found))
"""


@pytest.fixture
def wingless(tmp_path: Path) -> Path:
    """A copy of the packages without the folders of the fast wing."""
    # With what is compiled already: the files keep their times.
    ignored = shutil.ignore_patterns("*.so")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    (tmp_path / "tests" / "sim").mkdir(parents=True)
    for name in ("tests/__init__.py", "tests/sim/__init__.py", "tests/sim/stored.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    for pattern in WINGS:
        folders = list(tmp_path.glob(pattern))
        assert folders, f"{pattern} names no folder"
        for folder in folders:
            shutil.rmtree(folder)
    return tmp_path


def python(folder: Path, code: str) -> "subprocess.CompletedProcess[str]":
    """Run code that imports the packages of a folder and no others."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    environment = {"PATH": "", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.timeout(400)
def test_the_strict_engine_leaves_the_stored_fingerprints_without_the_wing(wingless: Path) -> None:
    done = python(wingless, RUN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(STORED.read_text())


def test_every_protocol_runs_without_its_wing_as_with_it(wingless: Path) -> None:
    strict = python(wingless, EACH.replace("ENGINE", "'strict'"))
    assert strict.returncode == 0, strict.stderr
    fast = python(ROOT, EACH.replace("ENGINE", "'fast'"))
    assert fast.returncode == 0, fast.stderr
    found = json.loads(strict.stdout)
    assert {"a", "n1", "n2", "norm", "srm"} <= found.keys()
    assert found == json.loads(fast.stdout)


def test_the_fast_engine_does_not_run_without_the_wing(wingless: Path) -> None:
    done = python(wingless, 'from tests.sim.stored import fingerprints; fingerprints("engine=fast", most=10)')
    assert done.returncode
    assert "No module named" in done.stderr
