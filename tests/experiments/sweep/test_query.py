"""SQL over results whose axes have names like stored columns, or names that SQL takes in backquotes alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments.output.records import columns_of
from experiments.sweep.store.query import rows
from tests.support.sweep_store import VERSION, grid, write_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a sweep with such axes; of the metrics, one has the name of an axis in small letters."""
    axes: dict[str, list[Any]] = {"Seed": [0.25, 0.5], "status": [7], "Overhead": [1, 2], "delay (ü) $x": [3, 4]}
    return write_runs(tmp_path, grid(axes, [1, 2], lambda **_: {"overhead": 9.0}))


def test_a_name_is_the_stored_column_before_it_is_the_last_part_of_another() -> None:
    names = ["seed", "p_Seed", "p_status", "p_a__loss", "p_loss", "p_b__loss", "p_Overhead", "status", "m_loss", "m_overhead"]
    assert [column.name for column in columns_of(names, {})] == [
        "seed",
        "p_Seed",
        "p_status",
        "loss",
        "p_loss",
        "p_b__loss",
        "Overhead",
        "status",
        "m_loss",
        "m_overhead",
    ]


def test_an_axis_named_like_a_column_except_for_capital_letters_does_not_replace_it(
    spark: "SparkSession", folder: Path
) -> None:
    assert rows(spark, folder, "runs", VERSION, "Seed = 2").count() == 8
    found = rows(spark, folder, "runs", VERSION, "OVERHEAD < 2 and m_overhead > 1", "SEED as seed, p_Seed, overhead, status")
    assert {tuple(row) for row in found.collect()} == {
        (1, 0.25, 1, "ok"),
        (2, 0.25, 1, "ok"),
        (1, 0.5, 1, "ok"),
        (2, 0.5, 1, "ok"),
    }


def test_a_name_with_spaces_is_taken_in_backquotes_as_tables_show_it(spark: "SparkSession", folder: Path) -> None:
    found = rows(
        spark, folder, "runs", VERSION, "`delay (ü) $x` > 3 and overhead = 1 and `p_status` = 7", "`delay (ü) $x`, seed"
    )
    assert found.columns == ["delay (ü) $x", "seed"]
    assert [tuple(row) for row in found.collect()] == [(4, 1), (4, 2), (4, 1), (4, 2)]


def test_columns_are_split_at_commas_outside_of_texts_names_and_parentheses(spark: "SparkSession", folder: Path) -> None:
    columns = r"""seed, concat('a, (', "b, ", 'it\'s, ') as first, `delay (ü) $x`, ') ,' as last"""
    found = rows(spark, folder, "runs", VERSION, "seed = 1", columns)
    assert found.columns == ["seed", "first", "delay (ü) $x", "last"]
    assert {(row["first"], row["last"]) for row in found.collect()} == {("a, (b, it's, ", ") ,")}
