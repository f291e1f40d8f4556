"""The protocols under test, each with parameters that make a session short. A new protocol adds a line to SETTINGS."""

from typing import Any

from experiments.contract.case import Case
from protocols.registry import names, protocol
from tests.support.toy import TOY

__all__ = ["CASES", "SETTINGS", "TOY_CASE"]

SETTINGS: dict[str, dict[str, Any]] = {
    "toy": {"rate": 1e6, "segment": 500, "wait": 0.005, "robust": 8},
    "norm": {"rate": 1e6, "segment": 500, "block": 8, "parity": 4, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "a": {"rate": 1e6, "segment": 500, "timeout": 0.05, "robust": 10},
    "n1": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.005, "hold": 0.01, "robust": 8},
    "n2": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.0, "hold": 0.01, "window": 0.02, "robust": 8},
    "srm": {"rate": 1e6, "segment": 500, "timeout": 0.05, "distance": 0.005, "robust": 10},
}


TOY_CASE = Case(TOY, SETTINGS["toy"])
CASES = [TOY_CASE, *(Case(protocol(name), SETTINGS.get(name, {})) for name in names())]
