"""Measure what connections cost, simulated and real, and stable storage.

python -m benchmarks.connections --json
python -m benchmarks.connections --parts emu
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.connections_emu import measure_emu
from benchmarks.connections_sim import measure_sim
from benchmarks.connections_store import measure_store

__all__ = ["main"]

PARTS: dict[str, Callable[[], Mapping[str, Any]]] = {"sim": measure_sim, "emu": measure_emu, "store": measure_store}


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Measure what connections and stable storage cost.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=[*PARTS])
    options = parser.parse_args()
    found = {part: PARTS[part]() for part in options.parts}
    sys.stdout.write(json.dumps(found) + "\n" if options.json else _table(found))
    return 0


def _table(found: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for part, values in found.items():
        for name, value in values.items():
            rows = value.items() if isinstance(value, dict) else [("", value)]
            lines += [f"{part:6} {f'{name} {key}'.strip():24} {number:>12,}" for key, number in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
