"""Create the folder of a sweep, and check that it belongs to the sweep."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from experiments.output.whole_file import write_whole
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.store.json_file import read_json
from experiments.sweep.store.parts import parts
from protocols.errors import UsageError, shown

__all__ = ["check_folder", "prepare"]

MAY_CHANGE = ("replications", "until", "refine", "keep", "metrics", "theory", "time_limit", "memory")
"""Keys of the sweep file that may differ on resume: how many runs of the same points, how they execute, and what is shown."""
_NUMBERING = ("axes", "cases")
"""Keys whose order gives points their numbers."""


def check_folder(plan: SweepPlan, folder: Path, resume: bool) -> None:
    """UsageError if the folder holds a run, or another sweep, or results that are not to be resumed."""
    if "://" in str(folder):
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; a folder that this machine and all workers see")
    if parts(folder):
        if not resume:
            raise UsageError(f"--out: value {str(folder)!r} is not allowed; it holds results (--resume continues them)")
        _check_same(plan, folder)
    elif (folder / "result.json").exists():
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; it is the folder of a run")


def prepare(plan: SweepPlan, folder: Path, resume: bool) -> None:
    """Create the folder and copy the sweep into it; UsageError as of `check_folder`, or if it cannot be written."""
    check_folder(plan, folder, resume)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "sweep.yaml", plan.path.read_text(encoding="utf-8"))
        write_whole(folder / "base.yaml", _base(plan))
        write_whole(folder / "plan.json", json.dumps(_identity(plan)))
    except OSError as error:
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; it can't be written ({error.strerror})") from error


def _base(plan: SweepPlan) -> str:
    return yaml.safe_dump(plan.base, sort_keys=False, allow_unicode=True)


def _identity(plan: SweepPlan) -> dict[str, Any]:
    """Return what must be equal for point indices to mean the same points."""
    values = plan.sweep.model_dump(mode="json", by_alias=True, exclude=set(MAY_CHANGE) | {"scenario"})
    return {"sweep": values, "base": _base(plan)}


def _check_same(plan: SweepPlan, folder: Path) -> None:
    file = folder / "plan.json"
    known = read_json(file, "put a copy in its place, or give another folder") if file.exists() else None
    if isinstance(known, dict) and isinstance(known.get("sweep"), dict):
        # A key may have become one of these.
        known["sweep"] = {key: value for key, value in known["sweep"].items() if key not in MAY_CHANGE}
    wanted = json.loads(json.dumps(_identity(plan)))
    if known != wanted or _numbering(known) != _numbering(wanted):
        why = f"it holds another sweep than {plan.path}: {_difference(known, wanted)}"
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; {why}; give another folder")


def _numbering(identity: Any) -> dict[str, list[str]]:
    return {key: list(identity["sweep"][key]) for key in _NUMBERING}


def _difference(known: Any, wanted: Any) -> str:
    """Return the first key in which two sweeps differ, with both values, as far as the folder says what it holds."""
    if isinstance(known, dict) and known.keys() == wanted.keys():
        before, after = ({**each["sweep"], "scenario": yaml.safe_load(each["base"])} for each in (known, wanted))
        for path, *values in _differences(before, after):
            there, here = map(_said, values)
            return f"{path} was {there} there and is {here} here"
        for key in _NUMBERING:
            there, here = (", ".join(_numbering(each)[key]) for each in (known, wanted))
            if there != here:
                return f"the order of {key} was {there} there and is {here} here"
        return "the order of keys in its scenario differs"
    return "its base, axes, cases or seed differ"


def _said(value: Any) -> str:
    """Return a value as text; of nested ones that the other sweep does not have, only that they are there."""
    return "not set" if value is None else "set" if isinstance(value, dict) and value else shown(value)


def _differences(known: Any, wanted: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys in which nested values differ, with both values; None for a missing one."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        for key in [*known, *(key for key in wanted if key not in known)]:
            yield from _differences(known.get(key), wanted.get(key), f"{path}.{key}" if path else str(key))
    elif known != wanted:
        yield path, known, wanted
