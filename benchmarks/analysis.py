"""Measure queries on many runs: `python -m benchmarks.analysis [--rows N] [--json]`.

Spark makes synthetic rows (200 points: 4 protocols, 50 losses; 4 million different values), stored in the format of a sweep in
a temporary folder. Each query runs twice; the second run, after Java's warm-up, counts.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from experiments.analysis.effects import effects
from experiments.analysis.paired_variants import compare_variants
from experiments.analysis.runs import Runs, open_runs
from experiments.analysis.summary import summarise
from experiments.sweep.run.spark_session import session

__all__ = ["main", "make", "measure"]

SIZES = (1_000_000, 10_000_000)
LOSSES, PROTOCOLS = 50, ("a", "n1", "n2", "norm")
EXACT = 1_000_000
"""Number of rows up to which exact percentiles are measured, too."""
METRIC = "completion_time"


def make(spark: Any, folder: Path, rows: int) -> Path:
    """Write a store of `rows` runs and return its folder."""
    from pyspark.sql import functions as f

    points = LOSSES * len(PROTOCOLS)
    point = f.pmod(f.col("id"), f.lit(points))
    loss = f.pmod(point, f.lit(LOSSES)) / 1000.0
    names = f.array(*(f.lit(name) for name in PROTOCOLS))
    protocol = f.element_at(names, (point / LOSSES).cast("int") + 1)
    chance = f.pmod(f.xxhash64("id"), f.lit(1 << 22)) / (1 << 22)
    columns = {
        "run_id": f.hex(f.xxhash64("id", f.lit("run"))),
        "version": f.lit("made-up"),
        "point": point.cast("int"),
        "case": f.lit(None).cast("string"),
        "seed": f.floor(f.col("id") / points),
        "p_loss": loss,
        "p_protocol": protocol,
        "status": f.lit("ok"),
        "m_completion_time": (1 + loss * 20) * (1 + chance) + (protocol == "a").cast("double"),
        "started": f.current_timestamp(),
    }
    spark.range(rows).select(*(value.alias(name) for name, value in columns.items())).write.parquet(
        str(folder / "runs" / "job=one")
    )
    (folder / "jobs").mkdir()
    (folder / "jobs" / "one.json").write_text(json.dumps({"version": "made-up", "started": "2026-01-01"}))
    return folder


def measure(spark: Any, folder: Path, rows: int) -> dict[str, float]:
    """Return the seconds of each query."""
    with_runs: list[Runs] = []
    found = {"open": _timed(lambda: with_runs.append(open_runs(spark, folder)))}
    runs = with_runs[-1]
    assert runs.count == rows
    questions: dict[str, Callable[[], Any]] = {
        "summary, approximate percentiles": lambda: summarise(runs, ["protocol", "loss"], [METRIC], exact=False, resamples=0),
        "summary, bootstrap too": lambda: summarise(runs, ["protocol", "loss"], [METRIC], exact=False),
        "paired differences": lambda: compare_variants(runs, "protocol", [METRIC], ["loss"]),
        "effects": lambda: effects(runs, [METRIC]),
    }
    if rows <= EXACT:
        questions["summary, exact percentiles"] = lambda: summarise(
            runs, ["protocol", "loss"], [METRIC], exact=True, resamples=0
        )
    for name, ask in questions.items():
        ask()
        found[name] = _timed(ask)
    return found


def _timed(work: Callable[[], Any]) -> float:
    began = perf_counter()
    work()
    return round(perf_counter() - began, 2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analysis", description=__doc__)
    parser.add_argument("--rows", type=int, action="append", help="number of runs; may be repeated (default 1 and 10 million)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = {}
    with TemporaryDirectory() as place:
        spark = session("local[*]", Path(place) / "spark.log", many_rows=True)
        for rows in options.rows or SIZES:
            found[rows] = measure(spark, make(spark, _folder(place, rows), rows), rows)
            if not options.json:
                for name, seconds in found[rows].items():
                    print(f"{rows:>11,} runs  {name:34} {seconds:7.2f} s")
        spark.stop()
    if options.json:
        print(json.dumps(found))


def _folder(place: str, rows: int) -> Path:
    made = Path(place) / str(rows)
    made.mkdir()
    return made


if __name__ == "__main__":
    main()
