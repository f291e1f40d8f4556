"""The result of a run, as `run` returns it."""

from dataclasses import asdict, fields
from math import nan
from typing import Any, Literal

from experiments.output import notebook, plots
from experiments.output.extras import need
from experiments.running import result as running
from mcastlab._arguments import a_choice

__all__ = ["Result"]

_OPTIONAL = ("completed_at", "loss", "nacks_sent", "nacks_suppressed", "handled", "repairs_sent")
"""Numbers that a receiver may not have."""
_TABLES = ("receivers", "publishers", "subscriptions", "run")


class Result(running.Result):
    """The result of a run. Metrics are attributes: `result.nacks_sent` is `result.metrics["nacks_sent"]`.

    `ok`: whether every receiver has all required content and no invariant was violated. `receivers`: a row for each receiver.
    `fingerprint`: equal for equal simulated runs, None in Mininet. `messages`: tables of publishers and subscriptions, None
    in a run without messages. Notebooks show a result as a table.
    """

    __slots__ = ()

    @classmethod
    def of(cls, result: running.Result) -> "Result":
        """Return an equal result with the methods of this class."""
        return cls(**{item.name: getattr(result, item.name) for item in fields(result)})

    @property
    def completion_time(self) -> float | None:
        """Seconds from the first submission until the last receiver was complete; None if one was not."""
        found: float | None = self.metrics["completion_time"]
        return found

    @property
    def goodput_mbit_s(self) -> float | None:
        """Content per receiver over `completion_time`, in Mbit/s; None if that is None."""
        found: float | None = self.metrics["goodput_mbit_s"]
        return found

    def __getattr__(self, name: str) -> Any:
        """Return a metric by its name. AttributeError if the run has none of this name."""
        if name.startswith("_") or name not in self.metrics:
            raise AttributeError(f"a result has no attribute and no metric {name!r}; metrics: {', '.join(self.metrics)}")
        return self.metrics[name]

    def __dir__(self) -> list[str]:
        """Return the names of attributes and metrics."""
        return sorted({*object.__dir__(self), *self.metrics})

    def to_frame(self, of: Literal["receivers", "publishers", "subscriptions", "run"] = "receivers") -> Any:
        """Return a pandas DataFrame: a row for each receiver, publisher or subscription, or one with the scalar metrics.

        UsageError for another table, UnsupportedError without pandas.
        """
        a_choice("of", of, _TABLES)
        need("to_frame", "pandas")
        import pandas as pd

        if of == "receivers":
            frame = pd.DataFrame([asdict(row) for row in self.receivers]).set_index("name")
            # What no receiver has is a column of missing numbers, as what some have.
            return frame.astype({name: float for name in _OPTIONAL if frame[name].dtype == object})
        if of != "run":
            return pd.DataFrame((self.messages or {}).get(of, []))
        single = {key: value for key, value in self.metrics.items() if not isinstance(value, (dict, list, tuple))}
        plain = {key: nan if value is None else value for key, value in single.items()}
        head = {"scenario": self.scenario, "on": self.backend, "seed": self.seed, "completed": self.completed}
        return pd.DataFrame([head | plain])

    def plot(self) -> Any:
        """Draw completion times and the load over time as a matplotlib Figure. UnsupportedError without matplotlib."""
        need("plot", "matplotlib")
        return plots.figure_of(self)

    def __repr__(self) -> str:
        """Return one line; a result may have a million receivers, which `plain()` and `to_frame()` return."""
        have = f"{self.metrics['receivers_complete']:,} of {self.metrics['receivers']:,} receivers complete"
        took = "" if self.completion_time is None else f", completion time {self.completion_time:.5g} s"
        broken = f", {len(self.violations)} violations" if self.violations else ""
        return f"<Result of {self.scenario} (seed {self.seed}, {self.backend}): {have}{took}{broken}>"

    def _repr_html_(self) -> str:
        return notebook.html_of(self)
