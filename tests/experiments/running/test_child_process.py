"""The child process that makes runs: a failure in one run does not affect the next."""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments.running.child_process import ChildProcess
from experiments.sweep.run.task import TODO_SCHEMA, Task
from experiments.sweep.store.schema import runs_schema
from tests.experiments.sweep.failing_runs import ERROR, EXITS, HANGS, HUNGRY, SEGFAULT, perform_or_fail
from tests.experiments.sweep.files import BASE


def job(seed: int) -> dict[str, object]:
    scenario = json.dumps({"name": "small", **BASE, "seed": seed})
    return {"scenario": scenario, "backend": "sim", "receivers": True, "series": 0.1, "captures": (), "folder": ""}


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    with ChildProcess(perform_or_fail, 60.0, 500_000_000) as made:
        yield made


@pytest.mark.parametrize(
    ("seed", "status", "reason"),
    [
        (ERROR, "error", "ValueError: on purpose (failing_runs.py:"),
        (HANGS, "timeout", "not finished after 1 s"),
        (EXITS, "crashed", "its process ended with exit code 17"),
        (SEGFAULT, "crashed", "its process was killed by SIGSEGV"),
        (HUNGRY, "error", "MemoryError"),
    ],
)
def test_a_failed_run_has_a_reason_and_the_next_one_succeeds(child: ChildProcess, seed: int, status: str, reason: str) -> None:
    before = child.run(job(1))
    child._limit = 1.0 if seed == HANGS else 60.0
    failed = child.run(job(seed))
    child._limit = 60.0
    after = child.run(job(1))
    assert (failed.status, failed.result) == (status, None)
    assert reason in str(failed.error)
    assert before.status == after.status == "ok"
    assert before.result == after.result


def test_a_run_that_is_stopped_ends_at_once_and_the_next_one_succeeds(child: ChildProcess) -> None:
    stopped = child.run(job(HANGS), lambda: True)
    assert (stopped.status, stopped.result) == ("stopped", None)
    assert stopped.duration < 10
    assert child.run(job(1)).status == "ok"


def test_a_run_returns_metrics_receivers_and_series(child: ChildProcess) -> None:
    result = child.run(job(1)).result
    assert result is not None
    assert result["metrics"]["completed"] == 1.0
    assert [row["receiver"] for row in result["receivers"]] == ["r1", "r2"]
    assert {row["name"].split()[0] for row in result["series"]} >= {"packets_sent", "receivers_complete"}


def test_captures_are_in_the_folder_of_the_run(child: ChildProcess, tmp_path: Path) -> None:
    assert child.run(job(1) | {"captures": ("s1-r1",), "folder": str(tmp_path / "run")}).status == "ok"
    assert (tmp_path / "run" / "s1-r1.pcapng").stat().st_size > 1000


@pytest.mark.emu
def test_an_emulation_is_run_like_a_simulation(child: ChildProcess) -> None:
    outcome = child.run(job(1) | {"backend": "emu", "series": None})
    assert (outcome.status, outcome.error) == ("ok", None)
    assert outcome.result is not None
    assert (outcome.result["metrics"]["completed"], outcome.result["fingerprint"]) == (1.0, None)


def test_closing_ends_the_process(child: ChildProcess) -> None:
    child.run(job(1))
    process = child._child
    assert process.is_alive()
    child.close()
    assert not process.is_alive()


TASK = Task(perform_or_fail, {"x": "double"}, "sim", True, None, (), "", 60.0, 500_000_000)


def jobs_for(seeds: Sequence[int]) -> Iterator[Any]:
    todo = [
        {"task": 0, "run_id": f"run{seed}", "version": "v", "point": 3, "case": None, "seed": seed, "params": '{"x": "1%"}'}
        | {"axes": '{"p_x": 0.01}', "scenario": job(seed)["scenario"]}
        for seed in seeds
    ]
    return iter(pa.Table.from_pylist(todo, TODO_SCHEMA).to_batches())


def test_the_first_row_of_a_task_is_yielded_before_its_other_runs() -> None:
    made = TASK(jobs_for([1, 2, 7]))
    first = next(made)
    assert [row["run_id"] for row in first.to_pylist()] == ["run1"]
    before = datetime.now(UTC)
    rows = [row for batch in made for row in batch.to_pylist()]
    assert [row["run_id"] for row in rows] == ["run2", "run7"]
    assert all(row["started"] >= before for row in rows)


def test_a_stopped_task_yields_the_rows_of_its_finished_runs_and_makes_no_other(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    made = replace(TASK, stop=str(stop))(jobs_for([1, 2, 7]))
    assert [row["run_id"] for row in next(made).to_pylist()] == ["run1"]
    stop.touch()
    assert list(made) == []


def test_the_run_under_way_of_a_stopped_task_has_no_row(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    made = replace(TASK, stop=str(stop))(jobs_for([1, HANGS]))
    assert [row["run_id"] for row in next(made).to_pylist()] == ["run1"]
    with ThreadPoolExecutor() as pool:
        rest = pool.submit(list, made)
        time.sleep(0.3)
        stop.touch()
        assert rest.result(timeout=30) == []


def test_a_task_yields_a_row_for_each_run_even_if_it_fails() -> None:
    made = list(TASK(jobs_for([1, ERROR, SEGFAULT, 7])))
    rows = [row for batch in made for row in batch.to_pylist()]
    assert made[0].schema == runs_schema({"x": "double"})
    assert [(row["run_id"], row["status"]) for row in rows] == [
        ("run1", "ok"),
        ("run2", "error"),
        ("run5", "crashed"),
        ("run7", "ok"),
    ]
    assert all(row["p_x"] == 0.01 and row["params"] == [("x", "1%")] and row["point"] == 3 for row in rows)
    assert rows[1]["m_completed"] is None
    assert rows[3]["m_completed"] == 1.0
