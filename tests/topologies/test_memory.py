"""Losses with memory: keyed by packet identity, and equal for single links and groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from protocols.rng import extend, key_of
from topologies.channels import Channel, LinkSampler, Loss

KEY = key_of(1, "loss", "s1", "r")
GOLDEN_FIRST = [3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 26, 27, 29, 30, 56, 58, 65, 95]
GOLDEN_REPEAT = [17, 18, 19, 20, 21, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 50, 51, 52, 53, 54]
GOLDEN_CONTROL = [11, 12, 13, 14, 15, 16, 17, 18, 20, 25, 36, 37, 38, 39]
LOSS: TypeAdapter[Channel] = TypeAdapter(Loss)
CHANNELS: dict[str, dict[str, Any]] = {
    "gilbert": {"model": "gilbert-elliott", "burst": 4, "gap": 12},
    "elliott": {"model": "gilbert-elliott", "p": 0.05, "r": 0.2, "loss_bad": 0.7, "loss_good": 0.02},
    "often": {"model": "gilbert-elliott", "p": 1, "r": 1},
    "periodic": {"model": "periodic", "every": 7, "first": 3},
    "shifted": {"model": "periodic", "every": 7, "shift": True},
    "recorded": {"model": "recorded", "runs": [0, 2, 5, 1, 3], "shift": True},
}


def channel(name: str) -> Channel:
    """Return one of `CHANNELS`."""
    return LOSS.validate_python(CHANNELS[name])


def links(name: str, count: int) -> list[LinkSampler]:
    """Return the single links of a group."""
    found = [channel(name).link(extend(KEY, member)) for member in range(count)]
    assert None not in found
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("count", [1, 6, 40])
@pytest.mark.parametrize("name", CHANNELS)
def test_a_group_loses_the_same_packets_as_its_single_links(name: str, count: int) -> None:
    group, single = channel(name).group(KEY, count), links(name, count)
    assert group is not None
    ahead = (1 << 40) + 66_000
    for identity in [*range(520), *range(ahead, ahead + 20), *range(30), None, None, 2**63, 2**63]:
        assert list(group.losers(identity)) == [m for m, link in enumerate(single) if link.lost(identity)]


@pytest.mark.parametrize("name", ["gilbert", "elliott"])
def test_a_window_has_the_same_losses_whether_or_not_those_before_it_were_drawn(name: str) -> None:
    (walked,), (jumped,) = links(name, 1), links(name, 1)
    right = [walked.lost(identity) for identity in range(256 * 21)][256 * 20 :]
    assert [jumped.lost(identity) for identity in range(256 * 20, 256 * 21)] == right
    assert any(right)


STEPS = st.lists(
    st.tuples(st.sampled_from(["all", "but one", "one"]), st.one_of(st.none(), st.integers(0, 12)), st.integers(0, 29)),
    max_size=50,
)


@settings(deadline=None, max_examples=40)
@given(STEPS, st.sampled_from([6, 30]), st.sampled_from(["elliott", "shifted", "recorded"]))
def test_links_that_carried_other_packets_have_their_own_counts(
    steps: list[tuple[str, int | None, int]], count: int, name: str
) -> None:
    group, single = channel(name).group(KEY, count), links(name, count)
    assert group is not None
    for what, identity, member in steps:
        member %= count
        if what == "one":
            assert group.lost(identity, member) == single[member].lost(identity)
            continue
        skip = member if what == "but one" else -1
        right = [m for m, link in enumerate(single) if m != skip and link.lost(identity)]
        assert list(group.losers(identity, skip)) == right


@pytest.mark.parametrize("name", CHANNELS)
def test_first_losses_depend_neither_on_order_nor_on_other_packets(name: str) -> None:
    (ordered,), (shuffled,) = links(name, 1), links(name, 1)
    right = {identity: ordered.lost(identity) for identity in range(1000)}
    for identity in sorted(range(1000), key=lambda i: extend(7, i)):
        shuffled.lost(None)
        assert shuffled.lost(identity) == right[identity]
        shuffled.lost(identity)


@pytest.mark.parametrize("name", ["gilbert", "elliott"])
def test_repeats_and_control_packets_have_chains_of_their_own(name: str) -> None:
    (link,) = links(name, 1)
    first = np.array([link.lost(identity) for identity in range(4000)])
    again = np.array([link.lost(identity) for identity in range(4000)])
    control = np.array([link.lost(None) for _ in range(4000)])
    rate = channel(name).rate
    for fates in (first, again, control):
        # Bursts make the standard error of a mean of 4000 several times that of independent draws, 0.007.
        assert fates.mean() == pytest.approx(rate, abs=0.06)
    for one, other in ((first, again), (first, control), (again, control)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.1


def test_a_repeat_of_a_packet_takes_the_next_entry_of_a_sequence() -> None:
    link = LOSS.validate_python({"model": "recorded", "runs": [2, 2, 4]}).link(KEY)
    assert link is not None
    assert [link.lost(identity) for identity in range(10)] == [False, False, True, True, *[False] * 6]
    assert [link.lost(2) for _ in range(3)] == [True, False, False]
    assert [link.lost(None) for _ in range(5)] == [False, False, True, True, False]


def test_sequences_that_are_shifted_start_at_different_positions() -> None:
    shifted = channel("shifted").group(KEY, 50)
    together = LOSS.validate_python({"model": "periodic", "every": 7}).group(KEY, 50)
    assert shifted is not None
    assert together is not None
    assert [len(together.losers(identity)) for identity in range(14)] == [0, 0, 0, 0, 0, 0, 50] * 2
    counts = [len(shifted.losers(identity)) for identity in range(7)]
    assert sum(counts) == 50
    assert max(counts) < 30


def test_burst_and_gap_define_a_chain() -> None:
    short, full = channel("gilbert"), LOSS.validate_python({"model": "gilbert-elliott", "p": 1 / 12, "r": 0.25})
    assert short == full
    assert short.rate == pytest.approx(0.25)
    assert str(short) == "25% loss in bursts of 4"
    assert LOSS.validate_python(short.model_dump()) == short


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "gilbert-elliott", "burst": 4},
        {"model": "gilbert-elliott", "burst": 4, "gap": 9, "p": 0.1},
        {"model": "gilbert-elliott", "burst": 0.5, "gap": 9},
        {"model": "gilbert-elliott", "p": 0.1, "r": 0},
        {"model": "periodic", "every": 0},
        {"model": "periodic", "every": 5, "first": 6},
        {"model": "recorded", "runs": []},
        {"model": "recorded", "runs": [0]},
        {"model": "scripted", "drops": [{}]},
        {"model": "scripted", "drops": [{"kind": "data", "occurrence": 2}]},
        {"model": "scripted", "drops": [{"number": [3, 2]}]},
        {"file": "no such file"},
        {"file": 5},
    ],
)
def test_wrong_channels_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        LOSS.validate_python(wrong)


def test_a_channel_without_loss_has_no_sampler() -> None:
    for quiet in ({"model": "gilbert-elliott", "p": 0, "r": 0.5}, {"model": "recorded", "runs": [9]}):
        assert LOSS.validate_python(quiet).link(KEY) is None
        assert LOSS.validate_python(quiet).group(KEY, 4) is None


def test_the_numbers_do_not_change() -> None:
    # These are part of every fingerprint with such a channel.
    (link,) = links("elliott", 1)
    assert [i for i in range(100) if link.lost(i)] == GOLDEN_FIRST
    assert [i for i in range(100) if link.lost(i)] == GOLDEN_REPEAT
    assert [i for i in range(60) if link.lost(None)] == GOLDEN_CONTROL


def test_keys_next_to_a_channel_file_override_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model: periodic\nevery: 7\n")
    assert LOSS.validate_python({"file": str(file), "shift": True}) == channel("shifted")
    file.write_text("every: 7\n")
    with pytest.raises(ValueError, match="holds no channel"):
        LOSS.validate_python({"file": str(file)})
