"""Measure the overhead of Spark for the runs of a sweep: `python -m benchmarks.sweep [--runs N] [--json]`.

Synthetic runs of 0.2 to 0.8 s of CPU time, so that a quiet machine of 2 cores needs two minutes:

* efficiency: CPU time of the runs over (cores x time of the job);
* gap_ms: median time between two tasks on a core;
* resume_s: time to find the missing ones of 5,000 runs in 1,000 files.

And the commands, each from its start to its end, on a warm server of their own:

* small_sweep_s: the 135 short runs of examples/first-sweep.yaml, with the start of the server;
* second_question_s: `analyse` after another `analyse`;
* report_s: `report` with all figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import yaml
from pyarrow import parquet

from experiments.sweep.run.adaptive import planned_runs
from experiments.sweep.run.driver import SweepOptions, missing_runs, run_sweep
from experiments.sweep.run.spark_servers import DIRECTORY
from experiments.sweep.run.spark_session import cores_of, own_session, stop
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep
from experiments.sweep.store.datasets import stored_runs
from experiments.sweep.store.parts import parts
from experiments.sweep.store.schema import runs_schema
from protocols.rng import Rng, key_of

__all__ = ["main", "spin"]

MEAN = 0.5
FILES, ROWS = 1000, 5
"""Files of the store of which a resume reads the runs, and the runs in each."""
SMALL = Path(__file__).parents[1] / "examples" / "first-sweep.yaml"
SCENARIO = {"topology": {"kind": "lan", "receivers": 2}, "protocol": {"name": "norm"}, "workload": {"size": "1kB"}}


def cost_of(seed: int) -> float:
    """Return the CPU seconds of the synthetic run with this seed; their mean is MEAN."""
    return float(MEAN * (0.4 + 1.2 * Rng(key_of(seed, "cost")).uniform()))


def spin(job: Mapping[str, Any]) -> dict[str, Any]:
    """Use the CPU time given by the scenario's seed."""
    end = time.process_time() + cost_of(json.loads(job["scenario"])["seed"])
    while time.process_time() < end:
        pass
    return {"fingerprint": None, "metrics": {}, "receivers": None, "series": None}


def plan_in(folder: Path, runs: int) -> SweepPlan:
    """Return a sweep of `runs` runs."""
    path = folder / "bench.yaml"
    keep = {"receivers": False}
    path.write_text(yaml.safe_dump({"name": "bench", "scenario": SCENARIO, "replications": runs, "keep": keep}))
    return SweepPlan(load_sweep(path), path)


def measure_job(runs: int) -> dict[str, float]:
    """Return efficiency and gap of one sweep, from its first task to its last, without the start of Spark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = own_session("local[*]", folder / "spark.log", {})
        cores = cores_of(spark)
        summary = run_sweep(plan_in(folder, runs), folder / "out", SweepOptions(perform=spin), spark)
        ended = time.time()
        stop(spark)
        (job,) = [json.loads(path.read_text()) for path in (folder / "out" / "jobs").glob("*.json")]
        wall = ended - datetime.fromisoformat(job["started"]).timestamp()
        tasks = [
            parquet.read_table(path, columns=["started", "duration_s", "cpu_s"]).to_pylist() for path in parts(folder / "out")
        ]
    assert summary.status == {"ok": runs}, summary.status
    cpu = sum(row["cpu_s"] for task in tasks for row in task)
    return {
        "efficiency": cpu / (cores * wall),
        "gap_ms": 1000 * gap(tasks, cores),
        "tasks": len(tasks),
        "job_s": wall,
        "cpu_s": cpu,
    }


def gap(tasks: list[list[dict[str, Any]]], cores: int) -> float:
    """Return the median seconds between the last run of a task and the first of the next on the same core."""
    spans = []
    for rows in tasks:
        last = max(rows, key=lambda row: row["started"])
        spans.append((min(row["started"] for row in rows), last["started"] + timedelta(seconds=last["duration_s"])))
    free: list[datetime] = []
    gaps: list[float] = []
    for start, end in sorted(spans):
        if len(free) == cores:
            # It ran on the core that was idle for the longest time.
            gaps.append((start - free.pop(0)).total_seconds())
        free = sorted([*free, end])
    return median(gaps)


def measure_resume() -> float:
    """Return the seconds to read the stored runs and find that one is missing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = plan_in(folder, FILES * ROWS)
        runs = planned_runs(plan, {})
        part = folder / "runs" / "job=bench"
        part.mkdir(parents=True)
        for number in range(FILES):
            made = [{"run_id": run.run_id, "status": "ok", "version": "v"} for run in runs[number * ROWS : (number + 1) * ROWS]]
            made = made[1:] if number == 0 else made
            parquet.write_table(pa.Table.from_pylist(made, runs_schema({})), part / f"part-{number:05}.parquet")
        began = time.perf_counter()
        missing = missing_runs(planned_runs(plan_in(folder, FILES * ROWS), {}), stored_runs(folder))
        spent = time.perf_counter() - began
        assert missing == runs[:1]
        return spent


def measure_commands() -> dict[str, float]:
    """Return the seconds that a first small sweep, a second question and a report take as a user waits for them."""
    with tempfile.TemporaryDirectory() as name:
        out, environment = Path(name, "out"), os.environ | {DIRECTORY: str(Path(name, "spark"))}

        def seconds(*arguments: str | Path) -> float:
            began = time.perf_counter()
            command = [sys.executable, "-m", "mcastlab", *map(str, arguments)]
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return time.perf_counter() - began

        try:
            found = {"small_sweep_s": seconds("sweep", SMALL, "--out", out)}
            seconds("analyse", out)
            found["second_question_s"] = seconds("analyse", out, "--by", "case,receivers", "--metric", "completion_time")
            found["report_s"] = seconds("report", out)
        finally:
            seconds("spark", "stop")
        return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="number of synthetic runs of half a second")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    found = measure_commands() | measure_job(arguments.runs) | {"resume_s": measure_resume()}
    if arguments.json:
        print(json.dumps({key: round(value, 4) for key, value in found.items()}))
        return
    print(f"{arguments.runs} runs in {found['tasks']:.0f} tasks: {found['cpu_s']:.1f} s of work in {found['job_s']:.1f} s")
    print(f"efficiency {found['efficiency']:.3f}, gap between tasks {found['gap_ms']:.0f} ms (median)")
    small, second, report = (found[key] for key in ("small_sweep_s", "second_question_s", "report_s"))
    print(
        f"135 short runs with the start of Spark: {small:.1f} s; a second question: {second:.1f} s; the report: {report:.1f} s"
    )
    print(f"deciding a resume over 1,000 files and 5,000 runs: {found['resume_s']:.2f} s")


if __name__ == "__main__":
    main()
