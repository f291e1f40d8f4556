"""Congestion control between this project and libnorm1; `make interop` runs all cases."""

import pytest

from tests.emu.congestion_interop import LOSS, Case, following, run_case

pytestmark = [pytest.mark.emu, pytest.mark.peer, pytest.mark.slow, pytest.mark.serial]


def test_nrls_sender_follows_our_receiver_that_loses_packets() -> None:
    found = following(case := Case("nrl", "ours"), run_case(case))
    assert found.ok, found
    assert LOSS / 3 < found.loss < LOSS * 4


def test_our_sender_follows_nrls_receiver_that_loses_packets() -> None:
    found = following(case := Case("ours", "nrl", 10.0), run_case(case))
    assert found.ok, found
    # libnorm1 counts fewer loss events than there are. The rate is the inverse of an average of 8 weighted loss intervals (RFC
    # 5348, section 5.4), with a relative standard error of about 0.4: the upper limit is more than five of them away.
    assert LOSS / 30 < found.loss < LOSS * 4
