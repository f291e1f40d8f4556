"""The scenarios that come with mcastlab leave their stored fingerprints, in another process than the one that stored them."""

import json
import os
import subprocess
import sys

from tests.sim.stored import ROOT, STORED, fingerprints

RENEW = "If the change is meant: python -m tests.sim.stored --renew, and commit the file with the reason."


def test_no_stored_fingerprint_changed() -> None:
    # With this hash seed; the file was written with another one.
    command, environment = [sys.executable, "-m", "tests.sim.stored"], {**os.environ, "PYTHONHASHSEED": "22"}
    found = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == json.loads(STORED.read_text()), RENEW


def test_the_strict_engine_finds_the_same() -> None:
    # With the wing at hand; `test_without_the_wing` runs all of them without it.
    stored, strict = json.loads(STORED.read_text()), fingerprints("engine=strict", most=4)
    assert strict == {name: stored[name] for name in strict}
    assert len(strict) > 3
