"""Modes of sessions with libnorm1: a subset of what `make interop` runs."""

import pytest

from tests.emu.interop_modes import CASES, run_modes

pytestmark = [pytest.mark.emu, pytest.mark.peer, pytest.mark.slow]

BY_NAME = {case.name: case for case in CASES}
TRIALS = [
    (BY_NAME["FTI only in INFO"], "ours"),
    (BY_NAME["FTI only in INFO"], "nrl"),
    (BY_NAME["late receiver of all objects"], "nrl"),
    (BY_NAME["object cancelled"], "ours"),
    (BY_NAME["restart of the sender"], "ours"),
    (BY_NAME["restart of the sender"], "nrl"),
    (BY_NAME["restart with elements of another size"], "ours"),
    (BY_NAME["restart with elements of another size"], "nrl"),
]


def test_objects_arrive_in_the_modes_that_both_implementations_have() -> None:
    for (case, sender), report in zip(TRIALS, run_modes(TRIALS), strict=True):
        assert report["ok"], (case.name, sender, report)
