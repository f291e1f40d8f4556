"""Run sweeps of a scenario with varied parameters, and analyse their results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.output.extras import need
from experiments.sweep.run.spark_session import check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from experiments.sweep.run.driver import SweepSummary

__all__ = ["analyse", "open_sweep", "sweep"]

_PACKAGES = ("pyspark", "pandas", "pyarrow")


def sweep(
    file: Path | str,
    out: Path | str | None = None,
    *,
    master: str = "local[*]",
    remote: str | None = None,
    retry: bool = False,
    limit: int | None = None,
    spark: "SparkSession | None" = None,
) -> "SweepSummary":
    """Make the runs of a sweep file that are missing in the folder `out` (default: out/NAME); return a summary.

    `master` is the Spark master, `remote` a Spark Connect server to use instead; a given session `spark` is used and not
    stopped. `retry` repeats failed runs; `limit` is the number of runs to make at most. UnsupportedError without Spark or Java.
    """
    need("a sweep", *_PACKAGES)
    if remote is None and spark is None:
        check_java()
    from experiments.sweep.run.driver import SweepOptions, run_sweep
    from experiments.sweep.spec.grid import SweepPlan
    from experiments.sweep.spec.sweep_file import load_sweep

    path = Path(file)
    plan = SweepPlan(load_sweep(path), path)
    folder = Path("out", plan.sweep.name) if out is None else Path(out)
    return run_sweep(plan, folder, SweepOptions(master, remote, True, retry, limit, quiet=True), spark)


def open_sweep(folder: Path | str, *, version: str | None = None, spark: "SparkSession | None" = None) -> Any:
    """Return the runs of a sweep, a row for each: `p_` columns are the axes, `m_` columns the metrics.

    The result is a pandas DataFrame, or with a session a Spark DataFrame. `version` is that of the code that made the runs
    (default: the last). UsageError for a folder without a sweep, UnsupportedError without the packages.
    """
    need("open_sweep", *(("pyspark",) if spark is not None else ("pandas", "pyarrow")))
    from experiments.sweep.store.datasets import runs, table

    if spark is not None:
        return runs(spark, Path(folder), version)
    import pandas as pd

    return pd.DataFrame(table(Path(folder), version))


def analyse(
    folder: Path | str,
    *,
    by: Sequence[str] = (),
    metrics: Sequence[str] = (),
    compare: str | None = None,
    effects: bool = False,
    theory: Sequence[str] = (),
    series: Sequence[str] = (),
    version: str | None = None,
    margin: float = 0.02,
    spark: "SparkSession | None" = None,
) -> Any:
    """Analyse the results of a sweep, as `mcastlab analyse` does; return a pandas DataFrame.

    By default these are means with 95 % intervals and percentiles of `metrics`, grouped `by` axes. One of these changes that:
    `compare` ("AXIS" or "AXIS=BASE") for paired differences, `effects` for the share of variance of each axis, `theory` for
    formulas beside the means, which hold within `margin` (a fraction), `series` for time series.
    """
    need("analyse", *_PACKAGES)
    import pandas as pd

    from experiments.analysis import analysis_request
    from experiments.sweep.run.spark_session import session, stop

    question = analysis_request.AnalysisRequest(by, metrics, compare, effects, theory, series, version=version, margin=margin)
    own = session("local[*]", Path(folder) / "spark.log") if spark is None else None
    try:
        return pd.DataFrame(analysis_request.analyse(spark or own, Path(folder), question).rows)
    finally:
        if own is not None:
            stop(own)
