"""Effects of parameters: known variance decompositions are recovered."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from experiments.analysis.effects import effects, rank_correlation
from experiments.analysis.runs import Runs, open_runs
from tests.support.sweep_store import grid, row, write_runs


def effects_of(spark: Any, folder: Path, axes: dict[str, Any], measure: Any, seeds: int = 2) -> Any:
    """Compute effects on the completion time of a synthetic sweep."""
    made = grid(axes, range(seeds), lambda **given: {"completion_time": measure(**given)})
    (found,) = effects(open_runs(spark, write_runs(folder, made)), ["completion_time"])
    return found


def test_additive_axes_share_the_variance(spark: Any, tmp_path: Path) -> None:
    found = effects_of(spark, tmp_path, {"a": (0, 1, 2), "b": (0, 1, 2)}, lambda seed, a, b: 2.0 * a + b)
    assert [(effect.axis, round(effect.share, 6)) for effect in found.axes] == [("a", 0.8), ("b", 0.2)]
    assert found.interaction == pytest.approx(0.0, abs=1e-9)
    assert found.chance == pytest.approx(0.0, abs=1e-9)
    assert found.axes[0].correlation > found.axes[1].correlation > 0.3


def test_joint_variation_of_two_axes_is_interaction(spark: Any, tmp_path: Path) -> None:
    found = effects_of(spark, tmp_path, {"a": (-1, 1), "b": (-1, 1)}, lambda seed, a, b: float(a * b))
    assert [effect.share for effect in found.axes] == pytest.approx([0.0, 0.0])
    assert found.interaction == pytest.approx(1.0)


def test_axes_that_change_together_are_one_effect(spark: Any, tmp_path: Path) -> None:
    made = [
        row({"queue": 10 * a, "a": a, "b": b}, seed, {"completion_time": 2.0 * a + b}, point=2 * a + b)
        for a in (0, 1)
        for b in (0, 1)
        for seed in (1, 2)
    ]
    (found,) = effects(open_runs(spark, write_runs(tmp_path, made)), ["completion_time"])
    assert [(effect.axis, round(effect.share, 6), effect.values) for effect in found.axes] == [
        ("queue, a", 0.8, 2),
        ("b", 0.2, 2),
    ]
    assert found.interaction == pytest.approx(0.0, abs=1e-9)


def test_variation_between_seeds_is_the_residual(spark: Any, tmp_path: Path) -> None:
    found = effects_of(spark, tmp_path, {"a": (0, 1)}, lambda seed, a: float(seed), seeds=4)
    assert found.chance == pytest.approx(1.0)
    assert found.axes[0].share == pytest.approx(0.0)


def test_sampled_axes_are_binned_into_groups_of_equal_size(spark: Any, tmp_path: Path) -> None:
    rng = Random(3)
    places = [rng.random() for _ in range(300)]
    found = effects_of(spark, tmp_path, {"a": places}, lambda seed, a: a, seeds=1)
    assert found.axes[0].values == 300
    assert found.axes[0].share == pytest.approx(0.99, abs=0.01)
    assert found.axes[0].correlation == pytest.approx(1.0)
    assert (found.interaction, found.chance) == (None, None)


def test_text_axes_have_a_share_and_no_correlation(runs: Runs) -> None:
    found = effects(runs, ["completion_time", "nacks_sent"])[0]
    words = next(effect for effect in found.axes if effect.axis == "protocol.name")
    assert words.correlation is None
    assert words.share > 0


def test_a_constant_metric_has_no_effects(spark: Any, tmp_path: Path) -> None:
    made = grid({"a": (0, 1)}, range(2), lambda seed, a: {"completion_time": 5.0, "loss": float(a)})
    found = effects(open_runs(spark, write_runs(tmp_path, made)), ["completion_time", "loss"])
    assert [each.metric for each in found] == ["loss"]


def test_without_a_metric_that_varies_there_are_no_effects(spark: Any, tmp_path: Path) -> None:
    made = grid({"a": (0, 1)}, range(2), lambda seed, a: {"completion_time": 5.0, "loss": 0.0 if seed else None})
    assert effects(open_runs(spark, write_runs(tmp_path, made)), ["completion_time", "loss"]) == []


def test_axes_at_one_value_of_which_alone_runs_have_the_metric_are_no_common_effect(spark: Any, tmp_path: Path) -> None:
    def measure(seed: int, a: int, b: int, c: int) -> dict[str, float | None]:
        return {"completion_time": None if a or b else 1.0 + c}

    made = grid({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, range(2), measure)
    found = effects(open_runs(spark, write_runs(tmp_path, made)), ["completion_time"])
    assert [(each.axis, each.share, each.values) for each in found[0].axes] == [("c", 1.0, 2), ("a", 0.0, 1), ("b", 0.0, 1)]
    assert (found[0].count, found[0].left_out) == (4, 12)


def test_each_metric_has_separate_effects(runs: Runs) -> None:
    time, nacks = effects(runs, ["completion_time", "nacks_sent"])
    assert nacks.axes[0].axis == "topology.receivers"
    assert nacks.axes[0].share == pytest.approx(1.0)
    assert time.count == nacks.count - 1


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1, 2, 3], [10, 20, 90], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 1, 2, 2], [1, 2, 3, 4], 0.894427),
        ([1, 1], [1, 2], None),
    ],
)
def test_rank_correlation_averages_the_ranks_of_ties(ours: list[float], theirs: list[float], expected: float | None) -> None:
    assert rank_correlation(ours, theirs) == (None if expected is None else pytest.approx(expected, abs=1e-6))
