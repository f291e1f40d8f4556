"""The host receives as many messages over connections as one core is expected to."""

import pytest

from benchmarks.connections_emu import measure_emu


@pytest.mark.serial
def test_a_core_receives_20000_short_messages_and_2_gbit_of_long_ones_in_a_second() -> None:
    found = measure_emu(repeats=1)
    assert found["messages_per_s"]["100"] > 20_000
    assert found["messages_per_s"]["1024"] > 20_000
    assert found["mbit_s"] > 2_000
