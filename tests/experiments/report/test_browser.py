"""The page in a real browser: figures, console, filters, and no network requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, Page, browser
from tests.support.contrast import contrast
from tests.support.page_checks import FAINT, OUTSIDE, OVERLAPS

pytestmark = pytest.mark.peer("chromium")
DRAWN = (
    "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg .xy, .main-svg .cartesianlayer'))"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser for all tests of this module."""
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def page(chromium: Browser, report: Path) -> Page:
    """Open the report in a window of laptop size."""
    return chromium.open(report)


def count(page: Page, table: str) -> str:
    """Return the text with the row count of a table."""
    text = page.run(f"document.querySelector('#table-{table} .count').textContent")
    assert isinstance(text, str)
    return text


def write_filter(page: Page, table: str, column: int, text: str) -> None:
    """Enter text into the filter of a column."""
    page.run(
        f"{{ const box = document.querySelectorAll('#table-{table} th input')[{column}]; box.value = '{text}'; "
        "box.dispatchEvent(new Event('input')); }"
    )


def choose(page: Page, control: int, place: int) -> None:
    """Choose value number `place` of a control of the explorer."""
    page.run(
        f"{{ const box = document.querySelectorAll('#controls select')[{control}]; box.selectedIndex = {place}; "
        "box.dispatchEvent(new Event('change')); }"
    )


def test_every_figure_is_drawn_and_the_console_is_empty(page: Page) -> None:
    assert page.run("document.querySelectorAll('.plot').length") >= 10
    page.wait(DRAWN)
    assert page.console_errors() == []


VIEWS = [(390, False), (390, True), (1400, False), (1400, True)]
"""Widths of a window, and whether the scheme is dark."""


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [*(("report", *view) for view in VIEWS), ("comparison", 390, False), ("comparison", 1400, True)],
)
def test_nothing_overlaps_leaves_its_place_or_is_faint(
    chromium: Browser, request: pytest.FixtureRequest, name: str, width: int, dark: bool
) -> None:
    other = chromium.open(request.getfixturevalue(name), width=width, dark=dark)
    other.wait(DRAWN)
    assert other.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert [other.run(check) for check in (OVERLAPS, OUTSIDE, FAINT)] == [[], [], []]
    assert other.console_errors() == []


def test_the_checks_find_what_they_are_for(chromium: Browser, report: Path) -> None:
    other = chromium.open(report, width=390)
    other.wait(DRAWN)
    other.run("Plotly.relayout('plot-explore', { 'legend.y': 0.6 }).then(() => 0)")
    assert "legend over curves: plot-explore" in other.run(OVERLAPS)
    other.run("Plotly.relayout('plot-explore', { 'xaxis.title.text': 'many words '.repeat(20) }).then(() => 0)")
    assert any("many words" in text for text in other.run(OUTSIDE))
    other.run("document.querySelector('h1').style.cssText = 'color: #888; margin-bottom: -40px'; 0")
    assert any("made-up" in text for text in other.run(OVERLAPS))
    assert any(text.startswith("made-up") for text in other.run(FAINT))


def test_numbers_in_heat_maps_are_legible_on_every_colour(page: Page) -> None:
    steps = "Array.from({ length: 101 }, (_, i) => scaled(i / 100))"
    pairs = page.run(
        f"{steps}.map((rgb) => ['#' + rgb.map((n) => Math.round(n).toString(16).padStart(2, '0')).join(''), written(rgb)])"
    )
    assert len(pairs) == 101
    assert min(contrast(cell, ink) for cell, ink in pairs) >= 4.5


def test_a_link_restores_the_choices_of_the_explorer(chromium: Browser, report: Path) -> None:
    first = chromium.open(report)
    choose(first, 0, 1)
    choose(first, 1, 1)
    first.run("document.querySelectorAll('#controls input')[1].click()")
    address = first.run("location.href")
    assert address.startswith("file://")
    assert "metric=goodput_mbit_s" in address
    controls = "[...document.querySelectorAll('#controls select, #controls input')]"
    chosen = f"{controls}.map((item) => [item.ariaLabel, item.value, item.checked])"
    other = chromium.open(report, fragment=address.partition("#")[2])
    other.wait(DRAWN)
    assert other.run(chosen) == first.run(chosen)
    assert other.run("document.querySelector('#plot-explore .ytitle').textContent") == "goodput [Mbit/s]"
    assert other.run("document.querySelector('#plot-explore').layout.yaxis.type") == "log"
    assert first.console_errors() == other.console_errors() == []


def test_a_link_with_names_this_report_does_not_have_is_followed_as_far_as_it_goes(chromium: Browser, report: Path) -> None:
    other = chromium.open(report, fragment="explore?metric=nothing&x=nowhere&lines=loss&at.protocol.name=srm&logx=perhaps")
    other.wait(DRAWN)
    assert other.run("document.querySelector('#plot-explore .ytitle').textContent") == "completion time [s]"
    assert "loss 10%" in other.run(
        "[...document.querySelectorAll('#plot-explore .legendtext')].map((text) => text.textContent)"
    )
    assert other.console_errors() == []


def test_on_a_phone_a_row_is_a_block_with_names_and_heads_open_on_demand(chromium: Browser, report: Path) -> None:
    other = chromium.open(report, width=390)
    head = "document.querySelector('#table-points th').checkVisibility()"
    assert other.run(head) is False
    other.run("document.querySelector('#table-points .heads').click()")
    assert other.run(head) is True
    cell = "document.querySelector('#table-points tbody td')"
    assert other.run(f"getComputedStyle({cell}, '::before').content") == '"receivers"'
    assert other.run(f"{cell}.getBoundingClientRect().right <= 390")
    theme = other.run("(({ left, right }) => [left, right])(document.getElementById('theme').getBoundingClientRect())")
    assert 0 <= theme[0] < theme[1] <= 390


def test_the_comparison_has_the_differences_and_a_colour_for_each_sweep(chromium: Browser, comparison: Path) -> None:
    other = chromium.open(comparison)
    other.wait(DRAWN)
    rows = other.run(
        "[...document.querySelectorAll('.verdicts tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    verdicts = {row[0]: (row[2], row[-1]) for row in rows}
    assert verdicts["completion time [s]"][1] == "differs"
    assert verdicts["NACKs sent [count]"] == ("+0", "equal in every pair")
    legend = other.run("[...document.querySelectorAll('#plot-explore .legendtext')].map((text) => text.textContent)")
    assert [text[:3] for text in legend] == ["A: ", "B: "]


def test_the_button_switches_to_dark_mode_and_figures_follow(page: Page) -> None:
    colour = "getComputedStyle(document.querySelector('#plot-effects .xtick text')).fill"
    before = page.run(colour)
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.wait(f"{colour} !== '{before}'")
    page.run("document.getElementById('theme').click()")
    page.wait(f"{colour} === '{before}'")


@pytest.mark.parametrize(("column", "text", "shown"), [(0, "> 20", 12), (0, "10..20", 24), (1, "srm", 18), (3, "goodput", 12)])
def test_filters_keep_the_matching_rows(page: Page, column: int, text: str, shown: int) -> None:
    write_filter(page, "points", column, text)
    assert count(page, "points") == f"{shown} of 36 rows"
    assert page.run("document.querySelectorAll('#table-points tbody tr').length") == shown
    write_filter(page, "points", column, "")
    assert count(page, "points") == "36 of 36 rows"


def test_a_click_on_a_heading_sorts_and_a_second_reverses(page: Page) -> None:
    first = "Number(document.querySelector('#table-points tbody tr td').textContent)"
    heading = "document.querySelector('#table-points th button').click()"
    page.run(heading)
    assert page.run(first) == 10
    page.run(heading)
    assert page.run(first) == 50


def test_the_explorer_draws_the_selection(page: Page) -> None:
    title = "document.querySelector('#plot-explore .ytitle').textContent"
    assert page.run(title) == "completion time [s]"
    choose(page, 0, 1)
    page.wait(f"{title} === 'goodput [Mbit/s]'")
    lines = "document.querySelectorAll('#plot-explore .scatterlayer .trace .lines path.js-line').length"
    both = page.run(lines)
    choose(page, 2, 0)
    page.wait(f"{lines} < {both}")
    assert page.console_errors() == []


def test_the_page_can_be_printed(page: Page) -> None:
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type/Page/") >= 3
    assert page.console_errors() == []
