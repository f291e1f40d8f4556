"""The kernel's token bucket counts the bytes that the link's overhead defines."""

import pytest

from emu.launch import emulate
from emu.namespaces import run_isolated
from emu.size_tables import check_sizes, size_table
from protocols.errors import UnsupportedError
from tests.emu.number_protocol import PORT, NumberCodec, ReceivingProgram, SendingProgram
from topologies.ethernet import Framing, size_on_link
from topologies.generators import Star


def test_there_is_no_size_table_if_the_kernel_counts_like_the_link() -> None:
    assert size_table(42) == ""
    assert size_table(20) == "stab overhead -22"
    assert size_table("ethernet") == "stab overhead 24 mpu 84 mtu 2047 tsize 2048"
    assert size_table("ethernet-802.1q") == "stab overhead 28 mpu 84 mtu 2047 tsize 2048"


@pytest.mark.emu
@pytest.mark.parametrize("overhead", [542, "ethernet-802.1q"])
def test_the_rate_includes_the_framing_overhead(overhead: int | Framing) -> None:
    rate, seconds = 8e6 / 8, 1.5
    topology = Star.model_validate({"receivers": 1, "trunk": {"rate": "8Mbit", "queue": 5, "overhead": overhead}}).build()
    run = emulate(
        topology,
        # Small packets, for which a wrong overhead has a large effect.
        {"sender": SendingProgram(20_000, 8000, size=100), "r1": ReceivingProgram()},
        codec=NumberCodec,
        port=PORT,
        duration=seconds,
        over=lambda finished: False,
        seed=1,
    )
    result = run.nodes["r1"].result
    assert result is not None
    passed = result["seconds"] * rate / size_on_link(100, overhead)
    # Late timers of a busy machine let fewer packets through; an overhead counted too low lets more through.
    assert 0.5 * passed <= len(result["numbers"]) <= 1.03 * passed + 10


@pytest.mark.emu
def test_a_missing_size_table_is_detected() -> None:
    with pytest.raises(UnsupportedError, match="link a-b: 'stab overhead 5' was not applied by the kernel: no size"):
        run_isolated(lambda: check_sizes("a-b", "stab overhead 5", "lo", None))
