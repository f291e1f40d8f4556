"""Run sweeps of a scenario with varied parameters, and analyse their results."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.output.extras import need
from experiments.sweep.run.spark_session import check_java
from mcastlab._arguments import a_choice, a_flag, a_fraction, a_path, a_text, a_whole, names, names_arguments
from protocols.errors import UsageError, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from experiments.sweep.run.driver import SweepSummary

__all__ = ["analyse", "open_sweep", "sweep"]

_PACKAGES = ("pyspark", "pandas", "pyarrow")
_DATASETS = ("runs", "receivers", "series")


@names_arguments
def sweep(
    file: Path | str,
    out: Path | str | None = None,
    *,
    master: str = "local[*]",
    remote: str | None = None,
    retry: bool = False,
    limit: int | None = None,
    progress: bool = False,
    spark: "SparkSession | None" = None,
) -> "SweepSummary":
    """Make the runs of a sweep file that are missing in the folder `out` (default: out/NAME); return a summary.

    `master` is the Spark master, `remote` a Spark Connect server to use instead; a given session `spark` is used and not
    stopped. `retry` repeats failed runs; `limit` is the number of runs to make at most; `progress` reports on standard error
    how many are done, failed and left, and how long these will take. Ctrl-C, or the interrupt of a notebook, ends it with the
    rows of finished runs stored, and the summary is `interrupted`. UsageError for a file or an argument that is not allowed,
    UnsupportedError without Spark or Java.
    """
    path, to = a_path("file", file), None if out is None else a_path("out", out)
    place, server = a_text("master", master), None if remote is None else a_text("remote", remote)
    again, most = a_flag("retry", retry), None if limit is None else a_whole("limit", limit, 0)
    shows = a_flag("progress", progress)
    need("a sweep", *_PACKAGES)
    _check_spark(spark)
    if remote is None and spark is None:
        check_java()
    from experiments.sweep.run.driver import SweepOptions, run_sweep
    from experiments.sweep.spec.grid import SweepPlan
    from experiments.sweep.spec.sweep_file import load_sweep

    plan = SweepPlan(load_sweep(path), path)
    folder = Path("out", plan.sweep.name) if to is None else to
    return run_sweep(plan, folder, SweepOptions(place, server, True, again, most, quiet=not shows), spark)


@names_arguments
def open_sweep(
    folder: Path | str,
    dataset: Literal["runs", "receivers", "series"] = "runs",
    *,
    version: str | None = None,
    spark: "SparkSession | None" = None,
) -> Any:
    """Return the runs of a sweep, a row for each: `p_` columns are the axes, `m_` columns the metrics.

    `dataset` "receivers" has a row for each run and receiver, "series" one for each run, name and time, as far as the sweep
    file keeps them (`keep`). The result is a pandas DataFrame, or with a session a Spark DataFrame. `version` is that of the
    code that made the runs (default: the last). UsageError for a folder without a sweep, or a version that is not there, or a
    damaged file; UnsupportedError without the packages.
    """
    place, wanted = a_path("folder", folder), None if version is None else a_text("version", version)
    a_choice("dataset", dataset, _DATASETS)
    need("open_sweep", *(("pyspark",) if spark is not None else ("pandas", "pyarrow")))
    from experiments.sweep.store.damage import naming_damage
    from experiments.sweep.store.datasets import nested_table, runs, table
    from experiments.sweep.store.invocations import chosen_version
    from experiments.sweep.store.query import rows

    _check_spark(spark)
    with naming_damage(place):
        if spark is not None:
            chosen = chosen_version(place, wanted)
            return runs(spark, place, chosen) if dataset == "runs" else rows(spark, place, dataset, chosen)
        import pandas as pd

        frame = pd.DataFrame(table(place, wanted) if dataset == "runs" else nested_table(place, dataset, wanted))
    # A metric that no run has is a column of missing numbers, as one that some have.
    measured = [name for name in frame.columns if name.startswith("m_")]
    return frame.astype(dict.fromkeys(measured, float)).assign(params=frame["params"].map(dict))


@names_arguments
def analyse(
    folder: Path | str,
    *,
    by: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    compare: str | None = None,
    effects: bool = False,
    theory: str | Sequence[str] = (),
    series: str | Sequence[str] = (),
    version: str | None = None,
    margin: float | str = 0.02,
    spark: "SparkSession | None" = None,
) -> Any:
    """Analyse the results of a sweep, as `mcastlab analyse` does; return a pandas DataFrame.

    By default these are means with 95 % intervals and percentiles of `metrics`, grouped `by` axes. One of these changes that:
    `compare` ("AXIS" or "AXIS=BASE") for paired differences, `effects` for the share of variance of each axis, `theory` for
    formulas beside the means, which hold within `margin` (a fraction, like 0.02 or "2%"), `series` for time series. A single
    name needs no list. UsageError for what the results do not have, UnsupportedError without Spark or Java.
    """
    need("analyse", *_PACKAGES)
    _check_spark(spark)
    import pandas as pd

    from experiments.analysis import analysis_request
    from experiments.sweep.run.spark_session import opened

    place = a_path("folder", folder)
    question = analysis_request.AnalysisRequest(
        names("by", by),
        names("metrics", metrics),
        None if compare is None else a_text("compare", compare),
        a_flag("effects", effects),
        names("theory", theory),
        names("series", series),
        version=None if version is None else a_text("version", version),
        margin=a_fraction("margin", margin),
    )
    with nullcontext(spark) if spark is not None else opened("local[*]", place / "spark.log") as used:
        return pd.DataFrame(analysis_request.analyse(used, place, question).rows)


def _check_spark(spark: object) -> None:
    """Raise UsageError for a session that is neither None nor Spark's, of this process or of a Spark Connect server."""
    if spark is not None and not (hasattr(spark, "createDataFrame") and hasattr(spark, "read")):
        raise UsageError(f"spark: value {shown(spark)} is not allowed; a SparkSession")
