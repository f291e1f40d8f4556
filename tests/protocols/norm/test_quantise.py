"""Quantised fields compared with NRL NORM's values, and their rounding properties."""

from math import ceil, exp, inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.norm.quantise import (
    gsize_code,
    gsize_value,
    loss_value,
    rate_code,
    rate_value,
    rtt_code,
    rtt_seconds,
)
from tests.support.captures import vector

SETTINGS = settings(derandomize=True, deadline=None)


@pytest.mark.parametrize("case", vector("grtt_quantise.json")["cases"], ids=lambda case: str(case["seconds"]))
def test_rtt_codes_equal_those_of_nrl_norm(case: dict[str, float]) -> None:
    code = rtt_code(case["seconds"])
    assert code == case["code_by_formula"]
    assert rtt_seconds(code) == pytest.approx(case["formula_seconds"], rel=1e-12)
    assert rtt_seconds(code) == pytest.approx(case["libnorm_seconds"], rel=6e-4), "NRL's table has four digits"


def test_all_256_rtt_codes_survive_decoding_and_encoding() -> None:
    assert [rtt_code(rtt_seconds(code)) for code in range(256)] == list(range(256))


@SETTINGS
@given(st.floats(33e-6, 1000))
def test_an_rtt_is_rounded_up_by_less_than_one_code(seconds: float) -> None:
    decoded = rtt_seconds(rtt_code(seconds))
    assert seconds <= decoded * (1 + 1e-9)
    assert decoded < seconds * exp(1 / 13) * (1 + 1e-9)


@pytest.mark.parametrize(("seconds", "code"), [(1e-6, 0), (1.9e-6, 0), (2e-6, 1), (32.9e-6, 31), (33e-6, 32), (40e-6, 34)])
def test_an_rtt_below_33_microseconds_has_the_code_of_the_formula_of_the_rfc(seconds: float, code: int) -> None:
    formula = int(seconds / 1e-6 + 1e-9) - 1 if seconds < 33e-6 else ceil(255 - 13 * log(1000 / seconds))
    assert rtt_code(seconds) == formula == code


def test_rtts_out_of_range_are_clamped() -> None:
    assert [rtt_code(seconds) for seconds in (-1, 0, 1e-9, 1000, 2000, inf)] == [0, 0, 0, 255, 255, 255]


@pytest.mark.parametrize(
    ("size", "code"),
    [(0, 0), (1, 0), (10, 0), (11, 8), (50, 8), (51, 1), (100, 1), (101, 9), (1000, 2), (1001, 10), (5001, 3), (10**8, 7)],
)
def test_group_size_codes(size: int, code: int) -> None:
    assert gsize_code(size) == code


def test_group_sizes_beyond_the_last_step_get_its_code() -> None:
    assert [gsize_code(size) for size in (10**8 + 1, 5 * 10**8 + 1, 10**10)] == [15, 15, 15]


@SETTINGS
@given(st.integers(1, 500_000_000))
def test_a_group_size_is_rounded_up_to_the_nearest_step(size: int) -> None:
    steps = sorted(gsize_value(code) for code in range(16))
    assert gsize_value(gsize_code(size)) == min(step for step in steps if step >= size)


@pytest.mark.parametrize(
    ("rate", "code"),
    [(250_000, 0x4005), (0, 1), (-5, 1), (1, 0x19A0), (0.5, 0x0CD0), (999.99, 410 << 4 | 3), (inf, 0xFFFF), (1e-9, 0x0010)],
)
def test_rate_codes(rate: float, code: int) -> None:
    assert rate_code(rate) == code


@SETTINGS
@given(st.floats(1, 9.9e15))
def test_a_rate_survives_within_half_a_step_of_the_mantissa(rate: float) -> None:
    assert rate_value(rate_code(rate)) == pytest.approx(rate, rel=0.5 / 409.6 + 1e-9)


@SETTINGS
@given(st.integers(410, 4095), st.integers(0, 15))
def test_normal_rate_codes_survive_decoding_and_encoding(mantissa: int, exponent: int) -> None:
    assert rate_code(rate_value(mantissa << 4 | exponent)) == mantissa << 4 | exponent


@SETTINGS
@given(st.floats(0, 1))
def test_a_loss_survives_within_half_a_step(loss: float) -> None:
    assert loss_value(round(loss * 65535)) == pytest.approx(loss, abs=0.5 / 65535 + 1e-12)
