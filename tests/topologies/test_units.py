"""Quantities with units: parsing, formatting, and the types of models."""

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from protocols.errors import ConfigError
from topologies.units import (
    Duration,
    Fraction,
    Rate,
    Size,
    format_duration,
    format_fraction,
    format_rate,
    format_size,
    parse_duration,
    parse_fraction,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10Mbit", 1.25e6),
        ("1.5Gbit", 187.5e6),
        ("64kbit", 8e3),
        ("8bit", 1.0),
        (8000, 1000.0),
        ("8000", 1000.0),
        ("0.1bit", 0.0125),
    ],
)
def test_rates_are_bytes_per_second_and_bare_numbers_bits(text: object, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "seconds"), [("5ms", 0.005), ("20us", 20e-6), ("1s", 1.0), (0.25, 0.25), ("2min", 120.0), ("3ms", 0.003), (0, 0)]
)
def test_durations_are_the_nearest_float_of_what_is_written(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("1MB", 10**6), ("4kB", 4000), ("1MiB", 2**20), ("60kB", 60_000), (5, 5), ("1.001kB", 1001), ("0B", 0)]
)
def test_sizes_are_whole_bytes(text: object, size: int) -> None:
    assert parse_size(text) == size
    assert isinstance(parse_size(text), int)


@pytest.mark.parametrize(("text", "p"), [("1%", 0.01), ("0.5%", 0.005), (0.25, 0.25), ("100%", 1.0), (0, 0.0), ("7%", 0.07)])
def test_fractions(text: object, p: float) -> None:
    assert parse_fraction(text) == p


@pytest.mark.parametrize(
    "bad", ["10 apples", "", "Mbit", "-1Mbit", "nan", "1e400", True, None, [], "10mbit", float("nan"), inf]
)
def test_a_bad_rate_is_named_with_an_example(bad: object) -> None:
    with pytest.raises(ConfigError) as error:
        parse_rate(bad)
    assert str(error.value) == f"{bad!r} is not a rate; like 10Mbit or 64kbit"


@pytest.mark.parametrize("bad", ["0", "0Mbit", 0])
def test_a_rate_must_be_positive(bad: object) -> None:
    with pytest.raises(ConfigError, match="more than 0"):
        parse_rate(bad)


@pytest.mark.parametrize("bad", ["101%", 1.5, "-1%", "1 percent"])
def test_a_fraction_is_at_most_one(bad: object) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        parse_fraction(bad)


@pytest.mark.parametrize("bad", ["1.5B", 0.5, "1 mile"])
def test_a_size_is_a_whole_number(bad: object) -> None:
    with pytest.raises(ConfigError, match="is not a size"):
        parse_size(bad)


@given(st.integers(1, 10**12))
def test_what_is_formatted_is_parsed_to_the_same(number: int) -> None:
    assert parse_rate(format_rate(number / 8)) == pytest.approx(number / 8, rel=1e-11)
    assert parse_size(format_size(number)) == number
    assert parse_duration(format_duration(number / 1e6)) == pytest.approx(number / 1e6, rel=1e-11)


def test_quantities_are_formatted_in_the_largest_unit() -> None:
    assert format_rate(1.25e6) == "10Mbit"
    assert format_rate(inf) == "unlimited"
    assert format_duration(0.005) == "5ms"
    assert format_duration(0.0) == "0s"
    assert [format_duration(each) for each in (90.0, 118.0, 125.337, 3600.0, 4000.0)] == [
        *("1.5min", "118s", "125.337s", "1h", "4000s"),
    ]
    assert format_size(60_000) == "60kB"
    assert format_fraction(0.01) == "1%"


class Quantities(BaseModel):
    """A model with a quantity of each type."""

    rate: Rate
    delay: Duration
    size: Size
    p: Fraction


def test_models_take_units_and_have_the_same_error_messages() -> None:
    known = Quantities.model_validate({"rate": "10Mbit", "delay": "5ms", "size": "4kB", "p": "1%"})
    assert (known.rate, known.delay, known.size, known.p) == (1.25e6, 0.005, 4000, 0.01)
    with pytest.raises(ValidationError) as error:
        Quantities.model_validate({"rate": "10 apples", "delay": "5ms", "size": "4kB", "p": "1%"})
    (wrong,) = error.value.errors()
    assert wrong["loc"] == ("rate",)
    assert wrong["msg"] == "'10 apples' is not a rate; like 10Mbit or 64kbit"


def test_what_a_model_dumps_it_reads_as_the_same() -> None:
    known = Quantities.model_validate({"rate": "10Mbit", "delay": "5ms", "size": "4kB", "p": "1%"})
    assert Quantities.model_validate(json.loads(known.model_dump_json())) == known


def test_the_schema_shows_text_with_a_pattern_or_a_number() -> None:
    schema = Quantities.model_json_schema()["properties"]["rate"]
    assert [part["type"] for part in schema["anyOf"]] == ["string", "number"]
    assert "Mbit" in schema["anyOf"][0]["pattern"]
