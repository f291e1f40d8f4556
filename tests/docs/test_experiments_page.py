"""docs/experiments.md names every key of sweep files, every formula, and functions of the analysis that exist."""

import re
from importlib import import_module

from experiments.analysis.formulas import FORMULAS
from experiments.sweep.spec.sweep_file import Sweep
from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text below a title, up to the next one of its level."""
    level, _, _ = title.partition(" ")
    return PAGE.partition(f"\n{title}\n")[2].partition(f"\n{level} ")[0]


def test_every_key_of_a_sweep_file_is_in_the_table() -> None:
    listed = {
        name for row in re.findall(r"^\| (`[^|]+) \|", section("## The sweep file"), re.M) for name in re.findall(r"\w+", row)
    }
    assert listed == set(Sweep.model_fields) - {"name"}


def test_every_formula_is_named() -> None:
    listed = set(re.findall(r"`([\w-]+)`", section("### Formulas").partition("They take")[0]))
    assert listed == set(FORMULAS)


def test_the_functions_for_python_exist() -> None:
    (sentence,) = re.findall(r"as a Spark DataFrame, and\n(.*?) accept it", PAGE, re.S)
    names = re.findall(r"`(\w+)`", sentence)
    modules = [
        import_module(f"experiments.analysis.{name}")
        for name in ("summary", "paired_variants", "effects", "overlay", "quantile_bands")
    ]
    assert len(names) == len(modules)
    assert all(hasattr(module, name) for module, name in zip(modules, names, strict=True))
