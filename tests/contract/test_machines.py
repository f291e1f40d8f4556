"""Every protocol on fake hosts: one test for each rule of the machine contract."""

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


def test_messages_survive_the_codec_and_random_bytes_are_rejected(case: Case) -> None:
    checks.codec_keeps_messages_and_refuses_noise(case)


def test_messages_with_damaged_fields_make_no_machine_raise(case: Case) -> None:
    checks.damaged_messages_are_harmless(case)


def test_counters_are_numbers(case: Case) -> None:
    checks.counters_are_numbers(case)


def test_a_finished_session_sends_nothing(case: Case) -> None:
    checks.quiet_at_the_end(case)


def test_late_wake_ups_do_no_harm(case: Case) -> None:
    checks.late_wakes_are_harmless(case)


def test_early_wake_ups_change_nothing(case: Case) -> None:
    checks.early_wakes_change_nothing(case)


def test_a_session_is_deterministic(case: Case) -> None:
    checks.repeats_itself(case)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(p=st.floats(0.0, 0.6), seed=st.integers(0, 2**32))
def test_any_loss_ends_in_completion_or_an_abort_event(case: Case, p: float, seed: int) -> None:
    checks.ends_whatever_is_lost(case, randomly(p, seed))


def test_a_failed_receiver_does_not_block_the_others(case: Case) -> None:
    checks.dead_receiver_stops_nobody(case)


def test_unknown_and_stale_messages_are_ignored(case: Case) -> None:
    checks.strangers_are_ignored(case, TOY_NOISE if str(case) != "toy" else [])


@pytest.mark.parametrize("abort_too", [False, True], ids=["abort-works", "abort-fails"])
@pytest.mark.parametrize(("verb", "after"), [("write", 0), ("write", 5), ("read", 0), ("commit", 0)])
def test_a_failing_sink_aborts_only_its_object(case: Case, verb: str, after: int, abort_too: bool) -> None:
    checks.failing_sink_ends_its_object(case, verb, after, abort_too)


def test_rejected_objects_are_not_requested(case: Case) -> None:
    checks.unwanted_objects_are_left(case)


def test_extents_without_bytes_are_delivered_by_size(case: Case) -> None:
    checks.simulated_content_arrives(case)


def test_a_full_network_stops_sending(case: Case) -> None:
    checks.full_network_is_respected(case)
