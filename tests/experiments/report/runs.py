"""Runs for the tests of their reports: small ones with everything recorded, and the data of a page."""

import json
import re
from pathlib import Path
from typing import Any

from experiments.cli import invoke

__all__ = ["SHARED", "data_of", "record"]

SHARED = """
name: shared
topology:
  kind: star
  receivers: 6
  trunk: {rate: 20Mbit, delay: 5ms, down: {loss: 4%}}
  link: {rate: 20Mbit, delay: 5ms, down: {loss: 4%}}
protocol: {name: norm, rate: 5Mbit, grtt: 50ms, robust: 5}
workload: {size: 100kB}
"""
"""Losses on the sender's own link, which all receivers share, and on the links of single receivers."""


def record(folder: Path, scenario: str = SHARED, *options: str) -> Path:
    """Run a scenario with a folder for its files, and return that."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scenario.yaml"
    file.write_text(scenario, encoding="utf-8")
    assert invoke(["run", str(file), "--json", "--out", str(folder / "run"), *options]) == 0
    return folder / "run"


def data_of(page: Path) -> dict[str, Any]:
    """Return what the scripts of a page read."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1].replace("<\\/", "</"))
    return data
