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

from benchmarks.cases import CASES, OURS, run
from protocols.fast import lockstep

__all__ = ["BUILD", "is_build", "main", "speed_up"]

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "compiled"
"""Where `make compiled` builds."""
ROUNDS = 3


def is_build(folder: Path) -> bool:
    """Whether a folder has a compiled build."""
    return any(folder.glob("protocols/fast/lockstep*.so"))


def time_case(name: str, receivers: int, packets: int) -> dict[str, Any]:
    """Return seconds per delivery of a case in this process, the fastest of three runs, and the suffix of its modules."""
    scenario = CASES[name].scenario(receivers, packets)
    return {"from": Path(lockstep.__file__).suffix, "each": min(run(OURS, scenario).each for _ in range(3))}


def measure_in(folder: Path, call: str) -> Any:
    """Return the result of a call, as JSON, in a new process that imports the packages from `folder`.

    RuntimeError if these are not of the build that the folder should have.
    """
    paths = os.pathsep.join([str(folder), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"import json; from benchmarks import compiled; print(json.dumps(compiled.{call}))"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def speed_up(folder: Path, name: str, receivers: int, packets: int, rounds: int = ROUNDS) -> float:
    """Return how many times as fast the compiled build in `folder` runs a case, from the fastest runs of each in turn."""
    call = f"time_case({name!r}, {receivers}, {packets})"
    times = [(measure_in(ROOT, call), measure_in(folder, call)) for _ in range(rounds)]
    assert [one["from"] for one in times[0]] == [".py", ".so"], "these are not a pure and a compiled build"
    pure, compiled = (min(one["each"] for one in build) for build in zip(*times, strict=True))
    return float(pure / compiled)


def stored_fingerprints() -> dict[str, str | None]:
    """Return the fingerprints of the stored scenarios."""
    from tests.sim.stored import fingerprints

    return fingerprints()


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    for receivers, (packets, _) in CASES["parity"].lengths.items():
        print(f"{receivers:>5} receivers: {speed_up(folder, 'parity', receivers, packets):.2f} times as fast")
    pure, compiled = (measure_in(build, "stored_fingerprints()") for build in (ROOT, folder))
    print("fingerprints:", "equal" if pure == compiled else f"{pure} pure, {compiled} compiled")
    return 0 if pure == compiled else 1


if __name__ == "__main__":
    sys.exit(main())
