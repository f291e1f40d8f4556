"""Every protocol on fake hosts: the promises a machine makes, one test for each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.losses import randomly
from protocols.machine import Message
from tests.contract.cases import CASES, FAST_CASES
from tests.support.toy import ToyData, ToyEnd, ToyNack

pytestmark = [pytest.mark.parametrize("case", [*CASES, *FAST_CASES], ids=str)]

TOY_NOISE: list[Message] = [
    ToyData(1, 0, 3, b"x" * 500, 500, 3),
    ToyEnd(1, 0, 20_000, 500, b"name"),
    ToyNack(1, 0, (0, 1, 99_999)),
]


def test_the_config_is_frozen_and_checked(case: Case) -> None:
    checks.config_is_checked(case)


def test_messages_survive_the_codec_and_noise_is_refused(case: Case) -> None:
    checks.codec_keeps_messages_and_refuses_noise(case)


def test_counters_are_numbers(case: Case) -> None:
    checks.counters_are_numbers(case)


def test_nobody_speaks_when_all_is_said(case: Case) -> None:
    checks.quiet_at_the_end(case)


def test_late_wake_ups_are_harmless(case: Case) -> None:
    checks.late_wakes_are_harmless(case)


def test_early_wake_ups_change_nothing(case: Case) -> None:
    checks.early_wakes_change_nothing(case)


def test_the_same_session_twice_is_the_same(case: Case) -> None:
    checks.repeats_itself(case)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(p=st.floats(0.0, 0.6), seed=st.integers(0, 2**32))
def test_any_loss_ends_complete_or_reported(case: Case, p: float, seed: int) -> None:
    checks.ends_whatever_is_lost(case, randomly(p, seed))


def test_a_dead_receiver_stops_nobody(case: Case) -> None:
    checks.dead_receiver_stops_nobody(case)


def test_strange_and_old_messages_are_ignored(case: Case) -> None:
    checks.strangers_are_ignored(case, TOY_NOISE if str(case) != "toy" else [])


@pytest.mark.parametrize("abort_too", [False, True], ids=["abort-works", "abort-fails"])
@pytest.mark.parametrize(("verb", "after"), [("write", 0), ("write", 5), ("read", 0), ("commit", 0)])
def test_a_failing_sink_ends_its_object_and_nothing_else(case: Case, verb: str, after: int, abort_too: bool) -> None:
    checks.failing_sink_ends_its_object(case, verb, after, abort_too)


def test_unwanted_objects_are_left_alone(case: Case) -> None:
    checks.unwanted_objects_are_left(case)


def test_content_without_bytes_is_accounted_for(case: Case) -> None:
    checks.simulated_content_arrives(case)


def test_a_full_network_is_respected(case: Case) -> None:
    checks.full_network_is_respected(case)
