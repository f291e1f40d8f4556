"""Damaged and foreign files in a sweep's folder: one line names the file, what is wrong with it, and what to do."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mcastlab
from experiments.analysis.analysis_request import AnalysisRequest, analyse
from experiments.sweep.store.damage import naming_damage
from experiments.sweep.store.datasets import stored_runs
from experiments.sweep.store.folder import prepare
from experiments.sweep.store.invocations import chosen_version
from protocols.errors import UsageError
from tests.experiments.sweep.files import plan_of
from tests.support.sweep_store import VERSION, one_axis, write_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a sweep with two parts of runs."""
    write_runs(tmp_path, one_axis({1: [1.0]}), "one")
    return write_runs(tmp_path, one_axis({2: [2.0]}), "two")


def truncate(path: Path) -> None:
    """Cut off the footer."""
    path.write_bytes(path.read_bytes()[:-100])


def spoil(path: Path) -> None:
    """Overwrite the first pages; the footer stays."""
    path.write_bytes(b"PAR1" + b"\xff" * 400 + path.read_bytes()[404:])


def replace(path: Path) -> None:
    """Write a Parquet file of something else."""
    pq.write_table(pa.table({"a": [1]}), path)


Damage = Callable[[Path], None]
DAMAGES = pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncate, "is damaged, or no Parquet file"),
        (spoil, "is damaged, or no Parquet file"),
        (replace, "is no file of a sweep, it has no column run_id"),
    ],
)


@DAMAGES
def test_results_in_a_damaged_file_name_the_file(folder: Path, damage: Damage, words: str) -> None:
    path = folder / "runs" / "job=two" / "part-0.parquet"
    damage(path)
    with pytest.raises(UsageError) as caught:
        mcastlab.open_sweep(folder)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert str(caught.value).endswith(
        f"; mcastlab sweep SWEEP.yaml --out {folder} --resume sets it aside and makes its runs again"
    )
    assert "\n" not in str(caught.value)


@DAMAGES
def test_a_resumed_sweep_takes_a_damaged_file_for_unreadable(folder: Path, damage: Damage, words: str) -> None:
    path = folder / "runs" / "job=two" / "part-0.parquet"
    damage(path)
    known = stored_runs(folder)
    assert known.unreadable == (path,)
    assert len(known.status) == 1


def test_an_analysis_of_a_damaged_file_names_the_file(spark: "SparkSession", folder: Path) -> None:
    path = folder / "runs" / "job=two" / "part-0.parquet"
    spoil(path)
    with pytest.raises(UsageError, match="is damaged, or no Parquet file") as caught:
        analyse(spark, folder, AnalysisRequest())
    assert str(caught.value).startswith(str(path))


def test_a_file_that_only_differs_from_its_checksum_is_named(folder: Path) -> None:
    path = folder / "runs" / "job=two" / "part-0.parquet"
    words = r"differs from its checksum; remove .*/\.part-0\.parquet\.crc if the file is right"
    with pytest.raises(UsageError, match=words), naming_damage(folder):
        raise RuntimeError(f"Checksum error: file:{path} at 0")


def test_other_errors_are_left_as_they_are(folder: Path) -> None:
    with pytest.raises(KeyError), naming_damage(folder):
        raise KeyError("a fault of the program")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", r"is damaged, or no JSON \(Expecting value"),
        ("\ufffe{", r"is damaged, or no JSON"),
        ("[]", "is no record of an invocation of a sweep"),
        ('{"version": "1"}', "is no record of an invocation of a sweep"),
    ],
)
def test_a_damaged_record_of_an_invocation_is_named(folder: Path, content: str, words: str) -> None:
    path = folder / "jobs" / "two.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=f"jobs/two.json: {words}.*; move it out of the folder, and go on"):
        mcastlab.open_sweep(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_damaged_plan_is_named_when_a_sweep_goes_on(folder: Path, content: bytes) -> None:
    (folder / "plan.json").write_bytes(content)
    with pytest.raises(
        UsageError, match=r"plan\.json: is damaged, or no JSON .*; put a copy in its place, or give another folder"
    ):
        prepare(plan_of(folder), folder, resume=True)


def test_a_plan_of_something_else_is_refused(folder: Path) -> None:
    (folder / "plan.json").write_text("[1, 2]")
    with pytest.raises(UsageError, match="it holds another sweep than"):
        prepare(plan_of(folder), folder, resume=True)


def test_a_version_that_made_no_runs_is_refused(folder: Path) -> None:
    assert chosen_version(folder) == chosen_version(folder, VERSION) == VERSION
    with pytest.raises(UsageError, match=rf"^version: value '0\.2' is not allowed; one of {re.escape(VERSION)}$"):
        mcastlab.open_sweep(folder, version="0.2")
