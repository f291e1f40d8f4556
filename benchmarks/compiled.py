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
from experiments.output.build import build_in_use
from experiments.running.run import run as simulate
from protocols.fast import lockstep

__all__ = ["build_in_use", "check", "find_build", "main", "speed_up"]

ROOT = Path(__file__).parents[1]
BUILDS = (ROOT / "build" / "compiled", *map(Path, sys.path))
"""Where `make compiled` and `make setup COMPILED=1` build."""
ROUNDS = 3
"""Runs of each build of which the fastest counts."""
CALL = "import json; from benchmarks import compiled; print(json.dumps(compiled.{}))"
COMPILED_CALL = f"import mcastlab_compiled; {CALL}"


def find_build() -> Path | None:
    """Return the folder of the compiled build, None if there is none."""
    return next((folder for folder in BUILDS if (folder / "mcastlab_compiled").is_dir()), None)


def time_case(name: str, receivers: int, packets: int) -> dict[str, Any]:
    """Return seconds per delivery of a case in this process, the fastest of three runs, and the suffix of its modules."""
    scenario = CASES[name].scenario(receivers, packets)
    return {"from": Path(lockstep.__file__).suffix, "each": min(run(OURS, scenario).each for _ in range(3))}


def measure_in(build: Path | None, call: str) -> Any:
    """Return the result of a call, as JSON, in a new process with the compiled modules of a folder, or with none."""
    path = ROOT if build is None else f"{build}{os.pathsep}{ROOT}"
    run = subprocess.run(
        [sys.executable, "-P", "-c", (CALL if build is None else COMPILED_CALL).format(call)],
        env={**os.environ, "PYTHONPATH": str(path), "MCASTLAB_PURE": "1" if build is None else "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def check(build: Path) -> None:
    """Exit if compiled modules of the folder would not be used, with the reason."""
    if not (build / "mcastlab_compiled").is_dir():
        sys.exit(f"{build}: there is no compiled build")
    found = measure_in(build, "build_in_use()")
    if found != "compiled":
        sys.exit(f"{build}: {found}; build it again")


def speed_up(build: Path, name: str, receivers: int, packets: int) -> float:
    """Return how many times as fast the compiled build in a folder runs a case, from the fastest runs of each in turn."""
    call = f"time_case({name!r}, {receivers}, {packets})"
    times = [(measure_in(None, call), measure_in(build, call)) for _ in range(ROUNDS)]
    assert [one["from"] for one in times[0]] == [".py", ".so"], "these are not a pure and a compiled build"
    pure, compiled = (min(one["each"] for one in build) for build in zip(*times, strict=True))
    return float(pure / compiled)


def all_fingerprints() -> dict[str, str | None]:
    """Return the fingerprints of the stored scenarios, and of the cases of the benchmark with few and with many receivers."""
    from tests.sim.stored import fingerprints

    found = fingerprints()
    for name, case in CASES.items():
        for receivers, packets in ((10, 300), (100, 20)):
            found[f"{name} {receivers}"] = simulate(case.scenario(receivers, packets)).fingerprint
    return found


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("folder", type=Path)
    build = parser.parse_args().folder.resolve()
    check(build)
    for receivers, (packets, _) in CASES["parity"].lengths.items():
        print(f"{receivers:>5} receivers: {speed_up(build, 'parity', receivers, packets):.2f} times as fast")
    pure, compiled = (measure_in(one, "all_fingerprints()") for one in (None, build))
    differ = [name for name in pure if pure[name] != compiled[name]]
    print("fingerprints:", f"{', '.join(differ)} differ" if differ else f"{len(pure)} equal")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
