"""Links and queues agree with theory, at a small effort; `make validate` measures all cases in full."""

import pytest

from experiments.validation.families import families
from experiments.validation.references import check_values, read_references

SPREAD = [
    "ge.0.stats",
    "ge.2.stats",
    "ge.1.block24_4",
    "ge.5.block72_8",
    "frag.loss.1472.p0.001",
    "frag.loss.62000.p0.001",
    "q.mm1.0.5",
    "q.md1.0.9",
    "q.mm1k.0.8.5",
    "q.md1k.0.5.3",
    "q.md1k.1.2.20",
    "tbf.0",
    "tbf.2",
    "implosion.G100.Q50",
    "implosion.G20.Q50",
]
ENTRIES = {reference.id: reference for reference in read_references()}


@pytest.mark.parametrize("name", SPREAD)
def test_links_and_queues_agree_with_theory(name: str) -> None:
    reference = ENTRIES[name]
    checks = check_values(reference, families()[reference.family](reference, 0.1))
    assert checks
    for check in checks:
        assert check.good, check
