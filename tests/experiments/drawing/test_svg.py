"""Colours of drawings: text is legible on light and dark backgrounds."""

import pytest

from experiments.drawing.svg import _DARK, _LIGHT
from tests.support.contrast import contrast

GRAPHIC = ("ground", "band", "faint", *(f"loss{step}" for step in range(6)))
"""Colours of shapes, in which nothing is written."""


@pytest.mark.parametrize("colours", [_LIGHT, _DARK])
def test_text_has_the_contrast_of_wcag_aa_on_the_ground_and_on_bands(colours: dict[str, str]) -> None:
    written = {name: value for name, value in colours.items() if name not in GRAPHIC}
    low = {(name, on) for name, value in written.items() for on in ("ground", "band") if contrast(value, colours[on]) < 4.5}
    assert low == set()


@pytest.mark.parametrize("colours", [_LIGHT, _DARK])
def test_lines_of_links_stand_out_from_the_ground(colours: dict[str, str]) -> None:
    assert {step for step in range(6) if contrast(colours[f"loss{step}"], colours["ground"]) < 3.0} == set()
