"""Adjustments of PySpark in this process: no printing of errors it also raises, no import of pandas for every argument."""

import logging
import warnings
from typing import Any

__all__ = ["adjust_pyspark"]


def adjust_pyspark() -> None:
    """Adjust PySpark; further calls have no effect."""
    _silence()
    _defer_pandas()


def _silence() -> None:
    """Silence the printing of errors that are raised, too: Java stacks of SQL errors, of a lost Java process, and of Ctrl-C."""
    from pyspark import accumulators
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    # Py4J logs it to the root logger; a filter that is there already is not added again.
    logging.getLogger().addFilter(_is_no_interrupt)
    # Py4J also raises the errors of its connections that it logs.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # A warning of every call that fails or is interrupted, before its error is raised.
    warnings.filterwarnings("ignore", "toPandas attempted Arrow optimization", UserWarning)
    for name in ("AccumulatorTCPServer", "AccumulatorUnixServer"):
        setattr(getattr(accumulators, name), "handle_error", lambda self, request, address: None)  # noqa: B010


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _defer_pandas() -> None:
    """Let the converters of NumPy's values look at the type first: PySpark's import pandas, half a second, for any argument."""
    from pyspark.sql import types

    for converter in (types.NumpyScalarConverter, types.NumpyArrayConverter):
        original = converter.can_convert
        if original.__name__ != _can_convert_numpy.__name__:
            setattr(converter, "can_convert", _can_convert_numpy(original))  # noqa: B010


def _can_convert_numpy(original: Any) -> Any:
    def _can_convert_numpy(converter: Any, value: Any) -> bool:
        is_numpy = any(kind.__module__.partition(".")[0] == "numpy" for kind in type(value).__mro__)
        return is_numpy and bool(original(converter, value))

    return _can_convert_numpy
