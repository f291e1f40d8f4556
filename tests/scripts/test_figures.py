"""The figures in docs/images equal the output of scripts/figures.py, and name only existing modules."""

import re

import pytest

from scripts.figures import FIGURES, IMAGES, LAYERS
from tests.tidy.tree import ROOT


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_up_to_date(name: str) -> None:
    assert (IMAGES / name).read_text() == FIGURES[name](), "draw it again: python -m scripts.figures"


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_colours_for_light_and_dark(name: str) -> None:
    assert "prefers-color-scheme: dark" in FIGURES[name]()


def test_figures_name_only_existing_modules() -> None:
    named = re.findall(r">(?:sim|emu|protocols)\.[a-z_.]+", FIGURES["three_worlds.svg"]())
    modules = {name[1:].rstrip(".").replace(".", "/") for name in named}
    assert modules
    assert not [name for name in modules if not (ROOT / f"{name}.py").exists()]
    assert not [place for row in LAYERS for place in row[0].split(", ") if not (ROOT / place).exists()]


def test_the_times_of_the_layers_are_those_of_the_design_page() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    rows = re.findall(r"^\| (lookahead|lockstep groups|grouped delivery): [^|]*\|([^\n]*)\|$", page, re.M)
    stated = {name: tuple(float(cell) for cell in cells.split("|")) for name, cells in rows}
    drawn = {what.partition(":")[0]: costs for _, what, costs in LAYERS if costs}
    assert drawn == {name: (costs[0], costs[2]) for name, costs in stated.items()}
