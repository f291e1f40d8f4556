"""Which build of mcastlab runs: the pure one, or the one with compiled modules (docs/simulator.md)."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import protocols

__all__ = ["build_in_use", "outdated_modules"]

COMPILED = "protocols.machine"
"""A module that is compiled, if any is."""


def build_in_use() -> str:
    """Return "compiled" or "pure Python", with the reason if there are compiled modules that are not used."""
    spec = find_spec(COMPILED)
    if spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES)):
        return "compiled"
    reason = _refusal()
    return "pure Python" if reason is None else f"pure Python: {reason}"


def outdated_modules() -> str | None:
    """Return why the installed compiled modules do not fit the sources; None if they do, are switched off or are not there."""
    return None if os.environ.get("MCASTLAB_PURE") == "1" else _refusal()


def _refusal() -> str | None:
    hook = sys.modules.get("mcastlab_compiled")
    if hook is None:
        return None
    reason: str | None = hook.finder.refusal(str(Path(str(protocols.__file__)).parents[1]))
    return reason
