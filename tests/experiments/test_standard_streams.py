"""Commands whose standard input, output or error is closed, or takes nothing more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """name: x
topology: {kind: lan, receivers: 2}
protocol: {name: norm, rate: 10Mbit}
workload: {kind: file, size: 10kB}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, with a scenario."""
    monkeypatch.chdir(tmp_path)
    Path("ok.yaml").write_text(SCENARIO, encoding="utf-8")


def test_an_output_that_takes_no_more_is_one_line() -> None:
    command = [sys.executable, "-m", "mcastlab", "run", "ok.yaml"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, "mcastlab: the output can't be written (No space left on device)\n")


@pytest.mark.parametrize("arguments", [["run", "ok.yaml"], ["run", "none.yaml"], ["run", "--no-such-option"]])
def test_the_exit_code_is_the_same_if_the_error_cannot_be_written(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "mcastlab", *arguments], stdout=full, stderr=full, check=False, timeout=60)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments", [["run", "ok.yaml"], ["run", "ok.yaml", "--json"], ["schema"], ["doctor", "ok.yaml"], ["--help"]]
)
def test_an_output_that_its_reader_has_closed_ends_a_command_quietly_as_sigpipe_does(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "mcastlab", *arguments]
    try:
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_runs_without_standard_streams(closed: str) -> None:
    command = f"exec {sys.executable} -m mcastlab run ok.yaml --out ran {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert (">" in closed.replace("2>", "")) == (not done.stdout)
    assert Path("ran", "result.json").exists()
