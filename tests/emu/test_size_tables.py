"""What the kernel's bucket counts for a packet is what the link's overhead says."""

import pytest

from emu.launch import emulate
from emu.namespaces import run_isolated
from emu.size_tables import check_sizes, size_table
from protocols.errors import UnsupportedError
from tests.emu.number_protocol import PORT, NumberCodec, ReceivingProgram, SendingProgram
from topologies.ethernet import Framing, size_on_link
from topologies.generators import Star


def test_the_size_table_is_none_where_the_kernel_counts_as_the_link() -> None:
    assert size_table(42) == ""
    assert size_table(20) == "stab overhead -22"
    assert size_table("ethernet") == "stab overhead 24 mpu 84 mtu 2047 tsize 2048"
    assert size_table("ethernet-802.1q") == "stab overhead 28 mpu 84 mtu 2047 tsize 2048"


@pytest.mark.emu
@pytest.mark.parametrize("overhead", [542, "ethernet-802.1q"])
def test_a_rate_holds_for_all_that_the_framing_counts(overhead: int | Framing) -> None:
    rate, seconds = 8e6 / 8, 1.5
    topology = Star.model_validate({"receivers": 1, "trunk": {"rate": "8Mbit", "queue": 5, "overhead": overhead}}).build()
    run = emulate(
        topology,
        # Small packets, for which a wrong count would be far off.
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
    # A busy machine's timers are late and less goes through; what is counted too low lets through more.
    assert 0.5 * passed <= len(result["numbers"]) <= 1.03 * passed + 10


@pytest.mark.emu
def test_a_size_table_that_is_not_there_is_noticed() -> None:
    with pytest.raises(UnsupportedError, match="link a-b: 'stab overhead 5' was asked of the kernel and not taken: no size"):
        run_isolated(lambda: check_sizes("a-b", "stab overhead 5", "lo", None))
