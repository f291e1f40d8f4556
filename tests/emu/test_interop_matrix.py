"""A part of the transfers between this project and libnorm1, of which `make interop` runs all."""

import pytest

from tests.emu.interop import CODES, FEATURES, Case, run_cases

pytestmark = [pytest.mark.emu, pytest.mark.peer, pytest.mark.slow, pytest.mark.timeout(240)]

STREAMS = [Case("stream", code, 0.05, sender) for code in CODES for sender in ("ours", "nrl")]
STREAMS += [Case("stream", "fec 5", 0.0, sender, "passive") for sender in ("ours", "nrl")]
STREAMS += [Case("stream", "fec 5", 0.2, sender, "active") for sender in ("ours", "nrl")]
OBJECTS = [
    Case(kind, code, 0.05, sender)
    for kind in ("data", "file")
    for code in ("fec 2, m 8", "fec 2, m 16")
    for sender in ("ours", "nrl")
]


OTHERS = [Case("data", "fec 5", 0.05, sender, feature=feature) for feature in FEATURES for sender in ("ours", "nrl")]


@pytest.mark.parametrize("cases", [STREAMS, OBJECTS, OTHERS], ids=["streams", "objects with fec 2", "other parts"])
def test_content_arrives_in_both_directions(cases: list[Case]) -> None:
    outcomes = run_cases(cases)
    assert len(outcomes) == len(cases)
    for outcome in outcomes:
        assert outcome.ok, (outcome.case, outcome.ours, outcome.nrl, outcome.reports)
