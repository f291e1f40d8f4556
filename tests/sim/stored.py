"""Fingerprints of the scenarios that come with mcastlab: `python -m tests.sim.stored [--renew]`.

Prints them as JSON. With --renew they are written to `tests/sim/fingerprints.json`: that is how a change of behaviour is
acknowledged. Commit the file with the change that caused it, and say why.
"""

import json
import sys
from pathlib import Path

from experiments.running.run import run
from experiments.scenario.scenario import load

__all__ = ["STORED", "fingerprints"]

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "fingerprints.json"


def fingerprints(*sets: str, most: int = 10**9) -> dict[str, str | None]:
    """By scenario with at most so many hosts; `sets` are replacements as of `mcastlab run --set`."""
    loaded = [load(path, sets) for path in sorted((ROOT / "experiments" / "scenarios").glob("*.yaml"))]
    return {one.name: run(one).fingerprint for one in loaded if len(one.build_topology().hosts) <= most}


def main() -> None:
    """Print, and store if asked to."""
    text = json.dumps(fingerprints(), indent=2, sort_keys=True) + "\n"
    if sys.argv[1:] == ["--renew"]:
        STORED.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
