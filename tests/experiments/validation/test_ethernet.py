"""Ethernet goodput, a single MAC, an overrun host, coding, and FJM2 beside a broker to N: a sample of the reference values.

`make validate` measures all of them.
"""

import pytest

from experiments.validation.families import validate
from experiments.validation.references import Reference, read_references

CHOSEN = (
    "eth100.udp18",
    "eth100.udp1472",
    "eth100.udp1473",
    "eth100.udp65507",
    "eth100.fjm2.1440",
    "overrun.1.05",
    "fjm2.fec.sym512",
    "fanout.broker.N1",
    "fanout.broker.N2",
    "fanout.broker.N8",
    "fanout.broker.N16",
)
ENTRIES = {reference.id: reference for reference in read_references()}


@pytest.mark.parametrize("name", CHOSEN)
def test_measurements_agree_with_computed_references(name: str) -> None:
    reference: Reference = ENTRIES[name]
    (checks,) = validate([reference])
    assert checks
    assert not [check for check in checks if not check.good]
