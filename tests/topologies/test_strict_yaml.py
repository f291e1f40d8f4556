"""Types of YAML scalars: integers, floats and strings in scenario files and in values of `--set`."""

from typing import Any

import pytest
from yaml import YAMLError, safe_dump

from topologies.strict_yaml import parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-8", -8),
        ("0", 0),
        ("1_000", 1000),
        ("0x1f", 31),
        ("0b101", 5),
        ("1.50", 1.5),
        ("1.0e+3", 1000.0),
        (".inf", float("inf")),
    ],
)
def test_numbers_are_decimal_unless_they_begin_with_0x_or_0b(text: str, value: float) -> None:
    found = parse_yaml(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["010", "08", "1:30", "190:20:30", "1:30.5", "0o17", "2026-11-30", "1e3", "239.1.1.1:6003"])
def test_octal_numbers_times_dates_and_addresses_are_texts(text: str) -> None:
    assert parse_yaml(text) == text


@pytest.mark.parametrize("value", ["010", "1:30", "08", "0x1f", 10, -8, 1.5, "yes", True])
def test_what_pyyaml_writes_is_read_as_the_same_value(value: Any) -> None:
    found = parse_yaml(safe_dump([value]))
    assert (found, type(found[0])) == ([value], type(value))


@pytest.mark.parametrize("text", ["!!int x", "!!int 08", "!!int 0x"])
def test_a_tag_that_a_text_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(YAMLError, match="is no int"):
        parse_yaml(text)
