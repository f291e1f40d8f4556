"""The protocols under test, each with parameters that make a session short."""

from experiments.contract.case import SETTINGS, Case
from protocols.registry import file_protocols, protocol
from tests.support.toy import TOY

__all__ = ["CASES", "FAST_CASES", "TOY_CASE"]

TOY_CASE = Case(TOY, {"rate": 1e6, "segment": 500, "wait": 0.005, "robust": 8})
CASES = [TOY_CASE, *(Case(protocol(name), SETTINGS.get(name, {})) for name in (*file_protocols(), "broker"))]
FAST_CASES = [Case(case.protocol, case.settings, fast=True) for case in CASES if case.protocol.fast is not None]
