"""The scenarios that come with mcastlab run as they always did: twice, in two processes, with other hash seeds."""

import json
import os
import subprocess
import sys

import pytest

from tests.sim.stored import ROOT, STORED, fingerprints

RENEW = "If the change is meant: python -m tests.sim.stored --renew, and commit the file with the reason."


@pytest.fixture(scope="module")
def found() -> list[dict[str, str]]:
    """What two fresh processes find."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sim.stored"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "22")
    ]
    return [json.loads(process.communicate()[0]) for process in runs]


def test_two_processes_find_the_same(found: list[dict[str, str]]) -> None:
    assert found[0] == found[1]


def test_no_stored_fingerprint_changed(found: list[dict[str, str]]) -> None:
    assert found[0] == json.loads(STORED.read_text()), RENEW


def test_the_strict_engine_finds_the_same(found: list[dict[str, str]]) -> None:
    strict = fingerprints("engine=strict", most=100)
    assert strict == {name: found[0][name] for name in strict}
    assert len(strict) > 3
