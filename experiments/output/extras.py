"""The optional packages (extras of mcastlab): what each is for, and how to get it."""

from dataclasses import dataclass
from importlib.util import find_spec

from protocols.errors import UnsupportedError

__all__ = ["EXTRAS", "Extra", "extra_of", "need"]


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra by its name: `modules` are what it has to bring."""

    name: str
    purpose: str
    modules: tuple[str, ...]

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install 'mcastlab[{self.name}]'"

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [name for name in self.modules if not _installed(name)]


EXTRAS = (
    Extra("emu", "Mininet's Python package: run --on emu, twin, demo", ("mininet",)),
    Extra("data", "time series as Parquet, results as DataFrames", ("pyarrow", "pandas")),
    Extra("inspect", "dissecting packets: inspect --packet", ("scapy",)),
    Extra("spark", "sweep, results, analyse (with Java 17)", ("pyspark", "pandas", "pyarrow", "scipy")),
    Extra("messaging", "selectors of messages", ("lark",)),
    Extra("metrics", "statistics for Prometheus: --metrics", ("prometheus_client",)),
    Extra("monitor", "the page of mcastlab monitor", ("fastapi", "uvicorn", "prometheus_client")),
    Extra("web", "the registry of tunnels: admin, tunnel --admin", ("fastapi", "uvicorn", "httpx", "prometheus_client")),
    Extra("console", "the tables of mcastlab console", ("textual",)),
    Extra("report", "figures: report, Result.plot", ("matplotlib", "plotly")),
)
"""In this order the first extra that brings a module is the smallest."""


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def extra_of(*modules: str) -> Extra | None:
    """The first extra that brings all of these top-level modules; None when no extra does."""
    return next((extra for extra in EXTRAS if set(modules) <= set(extra.modules)), None)


def need(purpose: str, *modules: str) -> None:
    """Raise UnsupportedError if one of these modules is not installed: what `purpose` lacks, and the command that brings it.

    The modules are not imported, since some take half a second and are seldom used.
    """
    missing = next((name for name in modules if not _installed(name)), None)
    if missing is not None:
        extra = extra_of(*modules)
        assert extra is not None, modules
        raise UnsupportedError(f"{purpose} needs {missing}; get it: {extra.command}")
