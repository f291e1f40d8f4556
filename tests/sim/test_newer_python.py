"""A newer CPython, where there is one, finds the same fingerprints."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.sim.stored import ROOT, STORED

_ASK = "import sys; print(*sys.version_info[:2])"


def _candidates() -> list[str]:
    """Interpreters called python3.N in the path or in pyenv's folder, newest first."""
    minors = range(sys.version_info.minor + 8, sys.version_info.minor, -1)
    installed = Path.home() / ".pyenv" / "versions"
    found = []
    for minor in minors:
        found += [path for path in (shutil.which(f"python3.{minor}"),) if path]
        found += [str(path) for path in sorted(installed.glob(f"3.{minor}.*/bin/python"))]
    return found


def _works(python: str) -> bool:
    """Return whether it runs and is newer than this one. A pyenv shim runs only where its version is chosen."""
    answer = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False).stdout.split()
    return len(answer) == 2 and (int(answer[0]), int(answer[1])) > sys.version_info[:2]


@pytest.fixture(scope="module")
def newer() -> str:
    """A newer interpreter with the packages of the simulator, in an environment that is made once."""
    python = next(filter(_works, _candidates()), None)
    if python is None:
        pytest.skip("no newer CPython here")
    folder = ROOT / "build" / "newer-python"
    inner, wanted = folder / "bin" / "python", folder / "installed"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = [*project["dependencies"], *project["optional-dependencies"]["messaging"]]
    state = "\n".join([python, *packages])
    if not wanted.exists() or wanted.read_text() != state:
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        # By the pip of this environment; what is imported is compiled then.
        pip = [sys.executable, "-m", "pip", "--python", str(inner), "install", "--no-compile"]
        made = subprocess.run(
            [*pip, "--quiet", "--disable-pip-version-check", *packages], capture_output=True, text=True, check=False
        )
        if made.returncode:
            pytest.skip(f"{python} can't install the packages: {made.stderr.strip().splitlines()[-1:]}")
        wanted.write_text(state)
    return str(inner)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_newer_python_finds_the_stored_fingerprints(newer: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [newer, "-m", "tests.sim.stored"], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == json.loads(STORED.read_text())
