"""What `run` returns."""

from dataclasses import asdict, fields
from typing import Any, Literal

from experiments.output import notebook, plots
from experiments.output.extras import need
from experiments.running import result as running

__all__ = ["Result"]


class Result(running.Result):
    """What came of a run. Metrics are attributes: `result.nacks_sent` is `result.metrics["nacks_sent"]`.

    `ok`: whether every receiver has everything and no rule was violated. `receivers`: a row for each receiver. `fingerprint`:
    equal for equal runs, None in Mininet. In a notebook a result shows itself as a table.
    """

    __slots__ = ()

    @classmethod
    def of(cls, result: running.Result) -> "Result":
        """The same result with the methods of this class."""
        return cls(**{item.name: getattr(result, item.name) for item in fields(result)})

    @property
    def completion_time(self) -> float | None:
        """Seconds from the first submission until the last receiver had everything; None when one never had."""
        found: float | None = self.metrics["completion_time"]
        return found

    @property
    def goodput_mbit_s(self) -> float | None:
        """Content per receiver and second until then, in Mbit/s; None as for `completion_time`."""
        found: float | None = self.metrics["goodput_mbit_s"]
        return found

    def __getattr__(self, name: str) -> Any:
        """A metric by its name. AttributeError when the run has none of this name."""
        if name.startswith("_") or name not in self.metrics:
            raise AttributeError(f"a result has no attribute and no metric {name!r}; metrics: {', '.join(self.metrics)}")
        return self.metrics[name]

    def __dir__(self) -> list[str]:
        """Attributes and metrics."""
        return sorted({*object.__dir__(self), *self.metrics})

    def to_frame(self, of: Literal["receivers", "run"] = "receivers") -> Any:
        """A pandas DataFrame: a row for each receiver, or one row with the metrics of the run that are single values.

        UnsupportedError without pandas.
        """
        need("to_frame", "pandas")
        import pandas as pd

        if of == "receivers":
            return pd.DataFrame([asdict(row) for row in self.receivers]).set_index("name")
        plain = {key: value for key, value in self.metrics.items() if not isinstance(value, (dict, list, tuple))}
        head = {"scenario": self.scenario, "on": self.backend, "seed": self.seed, "completed": self.completed}
        return pd.DataFrame([head | plain])

    def plot(self) -> Any:
        """A matplotlib Figure: when receivers were complete, and the load over time. UnsupportedError without matplotlib."""
        need("plot", "matplotlib")
        return plots.figure_of(self)

    def _repr_html_(self) -> str:
        return notebook.html_of(self)
