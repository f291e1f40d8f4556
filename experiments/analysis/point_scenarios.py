"""The scenario of each point of a sweep as flat dotted keys with all defaults filled in: the input of formulas."""

import copy
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.analysis.runs import CASE
from experiments.scenario.files import put, read_yaml
from experiments.scenario.scenario import parse
from experiments.sweep.spec.sweep_file import BACKEND, Sweep, load_sweep
from protocols.errors import ConfigError, UsageError

__all__ = ["PointScenarios", "flat"]


class PointScenarios:
    """The scenarios of the points of the sweep in a folder. UsageError if its sweep.yaml or base.yaml is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sweep.yaml", "base.yaml"):
            if not (folder / name).is_file():
                again = f"mcastlab sweep SWEEP.yaml --out {shlex.quote(str(folder))} --resume --limit 0"
                raise UsageError(
                    f"{folder / name}: is missing, which theory and a report need; put it back, or write it: {again}"
                )
        self.sweep: Sweep = load_sweep(folder / "sweep.yaml")
        self._base = read_yaml(folder / "base.yaml")
        self._known: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}

    def at(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scenario with these values on the axes, and the axes by their own names; empty if it is invalid."""
        key = tuple(keys.items())
        if key not in self._known:
            self._known[key] = self._make(keys)
        return self._known[key]

    def settings(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by scenario key that turn the base scenario into this point."""
        found: dict[str, Any] = {} if "name" in self._base else {"name": self.sweep.name}
        found |= self.sweep.cases.get(str(keys.get(CASE)), {})
        for name, value in keys.items():
            found |= {key: value for key in self._keys(name) if value is not None}
        return found

    def _make(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        data = copy.deepcopy(self._base)
        for key, value in self.settings(keys).items():
            put(data, key.split("."), copy.deepcopy(value), key)
        try:
            plain = parse(data, str(self.folder)).plain()
        except (ConfigError, UsageError):
            # Reached only by a code version other than the one that made the runs.
            return {}
        return dict(flat(plain)) | dict(keys)

    def _keys(self, name: str) -> tuple[str, ...]:
        """Return the scenario keys an axis sets."""
        if name in (CASE, BACKEND) or name not in self.sweep.axes:
            return ()
        return self.sweep.axes[name].keys(name)


def flat(value: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield nested values by dotted keys; a link's loss is its probability where independent, 0 where there is none."""
    if isinstance(value, Mapping):
        model = value.get("model")
        if model in ("perfect", "bernoulli", "content") or (model == "gilbert-elliott" and _memoryless(value)):
            yield prefix, value.get("p", 0.0)
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield from flat(inner, f"{prefix}.{place}")
    else:
        yield prefix, value


def _memoryless(chain: Mapping[str, Any]) -> bool:
    """Return whether a Gilbert-Elliott chain is equivalent to independent losses."""
    return (chain["loss_bad"], chain["loss_good"]) == (1.0, 0.0) and abs(chain["p"] + chain["r"] - 1.0) < 1e-9
