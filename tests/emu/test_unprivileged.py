"""A user without any rights, with a Python and a copy of the project of his own, emulates and is told what he can't."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.emu.nobody import NOBODY
from tests.tidy.tree import ROOT

PYTHON = "/usr/bin/python3"
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
PACKAGES = ("protocols", "topologies", "sim", "emu", "experiments")
NEEDED = """annotated_doc annotated_types click _distutils_hack distutils-precedence.pth markdown_it mdurl mininet
mypy_extensions.py networkx numpy numpy.libs pydantic pydantic_core pygments rich setuptools shellingham simpy typer
typing_extensions.py typing_inspection yaml zfec"""
SCENARIO = {
    "name": "plain",
    "topology": {"kind": "star", "receivers": 2, "link": {"rate": "50Mbit", "down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "robust": 5},
    "workload": {"kind": "file", "from": "sender", "size": "200kB"},
    "duration": "20s",
}

pytestmark = pytest.mark.emu


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder of nobody's with the project and what it imports."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    version = "{}.{}".format(*sys.version_info)
    said = (
        subprocess.run([PYTHON, "--version"], capture_output=True, text=True, check=False).stdout
        if Path(PYTHON).exists()
        else ""
    )
    if not said.startswith(f"Python {version}."):
        pytest.skip(f"{PYTHON} is no Python {version}")
    # pytest's own temporary folders are root's alone.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    site = Path(np.__file__).parents[1]
    for name in NEEDED.split():
        if (site / name).is_dir():
            shutil.copytree(site / name, folder / "site" / name, ignore=shutil.ignore_patterns("tests"))
        elif (site / name).exists():
            shutil.copy(site / name, folder / "site" / name)
    shutil.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def mcastlab(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as nobody, with an ordinary user's path."""
    return subprocess.run(
        [*AS_NOBODY, PYTHON, "-c", "from experiments.cli import main; main()", *arguments],
        cwd=home,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": f"{home}:{home}/site", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_comes_over_lossy_links(home: Path) -> None:
    (home / "plain.yaml").write_text(json.dumps(SCENARIO))
    done = mcastlab(home, "run", "plain.yaml", "--on", "emu", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [(row["bytes"], row["proof"]) for row in result["receivers"]] == [(200_000, "sha256")] * 2
    assert 0 < result["metrics"]["loss"] < 0.15
    assert {row.get("loss_by") for row in result["metrics"]["impairments"]} >= {"cbpf"}


def test_the_doctor_names_what_only_root_may_do(home: Path) -> None:
    done = mcastlab(home, "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.split()[:2] for line in done.stdout.splitlines() if line[:3].strip() in ("yes", "no", "NO")]
    rows = {name: there for there, name in told}
    assert {rows[name] for name in ("tc", "namespaces", "rate", "loss", "mroute")} == {"yes"}
    assert {rows[name] for name in ("root", "tap", "SCHED_FIFO")} == {"no"}


def test_what_only_root_may_do_is_refused_in_one_line(home: Path) -> None:
    (home / "late.yaml").write_text(json.dumps(SCENARIO))
    done = mcastlab(home, "run", "late.yaml", "--on", "emu", "--set", "topology.link.delay=5ms")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "delay" in done.stderr
