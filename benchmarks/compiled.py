"""Compare the pure and the compiled build: `python -m benchmarks.compiled FOLDER`, after `python scripts/compiled.py FOLDER`.

The same sessions run in processes of both builds in turn; the fastest of each are compared. Exit code 1 if a fingerprint
differs.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.simulator import SIZES, ours
from benchmarks.yardsticks import best
from protocols.fast import lockstep

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
ROUNDS = 3


def measure() -> dict[str, Any]:
    """Return nanoseconds per delivery in this process, and the fingerprints of the stored scenarios."""
    from tests.sim.stored import fingerprints

    each = {str(receivers): best(ours, receivers, packets).each * 1e9 for receivers, packets in SIZES.items()}
    return {"from": Path(lockstep.__file__).suffix, "each": each, "fingerprints": fingerprints()}


def measure_in(folder: Path) -> dict[str, Any]:
    """Run `measure` in a new process that imports the packages from `folder`."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-P", "-c", "import json; from benchmarks.compiled import measure; print(json.dumps(measure()))"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    rounds = [(measure_in(ROOT), measure_in(folder)) for _ in range(ROUNDS)]
    pure, compiled = rounds[0]
    assert (pure["from"], compiled["from"]) == (".py", ".so"), "these are not a pure and a compiled build"
    for receivers in pure["each"]:
        before, after = (min(build["each"][receivers] for build in builds) for builds in zip(*rounds, strict=True))
        print(f"{receivers:>5} receivers: {before:7.1f} ns pure, {after:7.1f} ns compiled: {before / after:.2f} times as fast")
    same = pure["fingerprints"] == compiled["fingerprints"]
    print("fingerprints:", "equal" if same else f"{pure['fingerprints']} pure, {compiled['fingerprints']} compiled")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
